//! The rules on a real Solaris host, against counts that another program made of the same dumps.

use std::fs;

use plumb_diagnose::layout::{Known, diagnose};
use plumb_stack::dump::{self, Input};
use plumb_stack::{Builder, Stack};
use plumb_testkit::require;

use crate::common::lab::JudgedLayout;

/// Everything of the host in `solaris-svm` that holds anything.
fn host() -> Stack {
    let folder = plumb_testkit::real_traces()
        .expect("checked by the test")
        .join("solaris-svm");
    let mut builder = Builder::default();
    for file in fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a dump");
        if !text.is_empty() {
            let name = path.display().to_string();
            dump::read(
                &Input {
                    name: &name,
                    text: &text,
                },
                &mut builder,
            )
            .expect("reads");
        }
    }
    dump::join(&mut builder);
    builder.finish()
}

/// A script that walks `metastat -p` and the starts of the labels by itself finds 39 top layers (metadevices that are
/// no part of another, and unused slices), 25 of them off 4 KiB; and of 40 soft partitions (38 misaligned) 36 that
/// begin a sector behind another or the beginning. d162 and d164 begin behind a hole.
#[test]
fn a_host_with_soft_partitions() {
    require!(RealTraces);
    let judged = JudgedLayout {
        diagnosis: diagnose(&host(), &Known::default(), None),
    };
    assert_eq!(judged.found_on("misaligned-partition").len(), 25);
    assert_eq!(
        judged.whys("misaligned-partition").len(),
        39 - 25,
        "on 4 KiB, which is assumed: unknown"
    );
    let drifted = judged.found_on("soft-partition-drift");
    assert_eq!(drifted.len(), 36);
    assert!(!drifted.contains(&"d162") && !drifted.contains(&"d164"));
    assert_eq!(judged.whys("soft-partition-drift").len(), 40 - 38);
    assert!(judged.is_silent("broken-label") && judged.is_silent("beyond-device"));
}
