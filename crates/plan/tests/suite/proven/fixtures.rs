//! The same for every dump of the fuzzer's seeds, for all of them of one system together, and for the real hosts.

use std::path::{Path, PathBuf};

use plumb_geometry::Bytes;
use plumb_stack::dump::{self, Input};
use plumb_stack::{Builder, Stack};
use plumb_testkit::require;

use super::{advised, violations};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// The readable part of the dumps.
fn stack<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Stack {
    let mut builder = Builder::default();
    for path in paths {
        let bytes = std::fs::read(path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        let name = path.display().to_string();
        // Not every file is the output of a tool.
        let _ = dump::read(
            &Input {
                name: &name,
                text: &text,
            },
            &mut builder,
        );
    }
    dump::join(&mut builder);
    builder.finish()
}

/// Findings and recommended remedies of a stack, for any page.
fn hold(name: &str, stack: &Stack) -> (usize, u64) {
    let mut sums = (0, 0);
    for page in [None, Some(Bytes(2048)), Some(Bytes(8192))] {
        let diagnosis = advised(stack, page);
        let (recommended, wrong) = violations(stack, page, &diagnosis);
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        sums.0 += diagnosis.findings.len();
        sums.1 += recommended;
    }
    sums
}

#[test]
fn remedies_for_the_seeds_of_dumps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/dump");
    let files = files(&folder);
    assert!(files.len() > 30, "{} seeds", files.len());
    let mut sums = (0, 0);
    for file in &files {
        let (found, remedied) = hold(&file.display().to_string(), &stack([file]));
        sums = (sums.0 + found, sums.1 + remedied);
    }
    let (found, remedied) = hold("all seeds", &stack(&files));
    println!(
        "{} findings, {} remedies",
        sums.0 + found,
        sums.1 + remedied
    );
    assert!(sums.0 + found > 0);
}

#[test]
fn remedies_for_real_hosts() {
    require!(RealTraces);
    let traces = plumb_testkit::real_traces().expect("checked");
    let host = files(&traces.join("solaris-svm"));
    let (found, remedied) = hold("solaris-svm", &stack(&host));
    println!("solaris-svm: {found} findings, {remedied} remedies");
    assert!(found > 100, "{found} findings at three pages");
    for folder in ["solaris-prints", "partition"] {
        for file in files(&traces.join(folder)) {
            hold(&file.display().to_string(), &stack([&file]));
        }
    }
}
