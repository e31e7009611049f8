//! `plumb probe` with influences beside the medium: caches, credits that run out, another reader; and grids that
//! devices declare without having them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::direct::DirectReader;
use crate::common::probed::{ProbeDocument, probe};
use crate::common::recorded;
use plumb_testkit::charging::{ChargedCells, Credits, cached_blocks};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::{require, temp_dir};
use serde_json::Value;

/// Never anything else than the truth, or nothing.
fn must_be_right_or_open(probed: &ProbeDocument, granularity: u64, offset: u64) {
    assert!(
        probed.is_right(granularity, offset) || probed.is_open(),
        "{}",
        probed.result
    );
}

/// A cache that begins empty is passed by; one that holds everything answers at its own speed, which is no verdict.
#[test]
fn a_cache_before_blocks_with_a_delay() {
    require!(
        Patience,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("fusermount3")
    );
    let device = cached_blocks(2048, "1ms", None);
    let cold = probe(device.path(), "--limit 8s");
    must_be_right_or_open(&cold, 4096, 0);
    let found = &cold.result["cache"]["found"];
    let ns = |name: &str| found[name].as_u64().expect("a time");
    assert!(
        found["held"]["reads"]
            .as_u64()
            .is_some_and(|reads| reads >= 64),
        "{found}"
    );
    assert!(
        ns("first_ns") > 1_000_000 && ns("again_ns") * 2 < ns("first_ns"),
        "{found}"
    );
    drop(device);

    let device = cached_blocks(32, "1ms", None);
    // Whole, without the page cache of this host: the server answers.
    run(Command::new("dd")
        .args(["bs=1M", "iflag=direct", "of=/dev/null", "status=none"])
        .arg(format!("if={}", device.path().display())));
    let warm = probe(device.path(), "--limit 4s");
    must_be_right_or_open(&warm, 4096, 0);
    assert_ne!(warm.verdict(), "no-penalty", "{}", warm.result);
    // On a machine that is busy with other tests the way to the server takes most of the time.
    if warm.result["cache"]["found"]["first_ns"]
        .as_u64()
        .is_some_and(|ns| ns < QUIET_NS)
    {
        let reason = warm.reason();
        assert!(
            reason.starts_with("not backed by media: cache speed"),
            "{reason}"
        );
        assert_eq!(
            warm.result["commands"],
            Value::Array(Vec::new()),
            "writing would fill the cache"
        );
    }
}

/// A read through two processes takes less where no other keeps them waiting.
const QUIET_NS: u64 = 45_000;

/// A stated cache: nothing is read that it may hold.
#[test]
fn a_target_that_is_smaller_than_its_cache() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let file = folder.path().join("small");
    fs::write(&file, vec![7; 4 << 20]).expect("room");
    // Only then its file system tells that it was written.
    fs::File::open(&file)
        .and_then(|file| file.sync_all())
        .expect("written");
    let probed = probe(&file, "--cache 3m");
    assert_eq!(
        (probed.verdict(), &probed.result["reads"]),
        ("inconclusive", &0.into()),
        "{}",
        probed.result
    );
    let reason = probed.reason();
    insta::assert_snapshot!(recorded(reason));
    assert_eq!(probed.result["cache"]["stated_bytes"], 3 << 20);
}

/// Credits run out in the middle: the remaining throttle counts reads, for any cost behind it.
#[test]
fn a_throttle_that_sets_in_hides_no_grid() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let credits = Some(Credits {
        reads: 3000,
        per_second: 250,
    });
    let folder = temp_dir("credits");
    let image = folder.path().join("image");
    fs::write(&image, vec![7; 96 << 20]).expect("room");
    let cells = ChargedCells {
        units_per_second: 3000,
        image: Some(&image),
        credits,
        ..ChargedCells::of_ratio(4096, 1024, 1.25)
    };
    let device = cells.up();
    let probed = probe(device.path(), "--margin 12 --limit 8s");
    must_be_right_or_open(&probed, 4096, 3072);
    assert_ne!(probed.verdict(), "no-penalty", "{}", probed.result);
    // Its start and amount are tested on simulated devices (crates/load/tests/probe/beside.rs). Here other tests may
    // delay the server: it saves up credits in the meantime, and the pace goes up and down.
    let paces = probed.result["pace"].as_array().expect("paces");
    assert!(!paces.is_empty(), "{}", probed.result);
}

/// Another reader of the same loop device has its share of the I/O, which is reported; the grid is seen all the same.
/// And the loop device's declaration, blocks of 512 bytes, is refuted.
#[test]
fn another_reader_and_a_size_declared_too_small() {
    require!(Root, Loop, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let device = ChargedCells::of_ratio(4096, 1024, 2.0).up();
    let disk = LoopDevice::attach(
        device.path(),
        &["--direct-io=on", "--sector-size", "512", "--read-only"],
    );
    let is_over = AtomicBool::new(false);
    let probed = std::thread::scope(|scope| {
        scope.spawn(|| read_until(disk.path(), &is_over));
        let probed = probe(disk.path(), "--limit 10s");
        is_over.store(true, Ordering::Relaxed);
        probed
    });
    must_be_right_or_open(&probed, 4096, 3072);
    let others = &probed.result["others"];
    assert!(
        others["share"].as_f64().is_some_and(|share| share > 0.1),
        "{others}"
    );
    assert_eq!(others["writes"], 0, "{others}");
    if probed.verdict() == "misaligned" {
        assert_eq!(
            outcomes(&probed.result, "physical block"),
            [(512, "refuted")],
            "{}",
            probed.result["hints"]
        );
        assert_eq!(
            outcomes(&probed.result, "minimum I/O size"),
            [(512, "refuted")],
            "{}",
            probed.result["hints"]
        );
    }
}

/// The declarations of the target, and the outcome of the measurement for each.
fn outcomes<'a>(result: &'a Value, what: &str) -> Vec<(u64, &'a str)> {
    let hints = result["hints"].as_array().expect("hints");
    let hints = hints.iter().filter(|hint| hint["what"] == what);
    hints
        .map(|hint| {
            let granularity = hint["granularity_bytes"].as_u64().expect("a size");
            (granularity, hint["outcome"].as_str().expect("a word"))
        })
        .collect()
}

/// One read of 4 KiB after the other, past the page cache.
fn read_until(path: &Path, is_over: &AtomicBool) {
    let mut device = DirectReader::open(path, 4096);
    let mut start = 0;
    while !is_over.load(Ordering::Relaxed) {
        start = (start + 37 * 4096) % (512 << 20);
        device.read_at(start).expect("a read");
    }
}

/// Blocks of 4 KiB declared where there are such of 8 KiB, by a loop device whose own blocks are as long. A page shows it.
#[test]
fn a_block_of_4_kib_declared_over_cells_of_8_kib() {
    require!(Root, Loop, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let device = ChargedCells::of_ratio(8192, 4096, 2.0).up();
    let flags = ["--direct-io=on", "--sector-size", "4096", "--read-only"];
    let disk = LoopDevice::attach(device.path(), &flags);
    let folder = temp_dir("page");
    let page = folder.path().join("page.html");
    let probed = probe(
        disk.path(),
        &format!("--limit 10s --grid 16k --html {}", page.display()),
    );
    must_be_right_or_open(&probed, 8192, 4096);
    let text = fs::read_to_string(&page).expect("a page");
    assert!(
        text.contains("Statements of the device and layers"),
        "{text}"
    );
    if probed.verdict() == "misaligned" {
        assert_eq!(
            outcomes(&probed.result, "physical block"),
            [(4096, "refuted")],
            "{}",
            probed.result["hints"]
        );
        assert_eq!(
            outcomes(&probed.result, "array unit"),
            [(16_384, "refuted")],
            "{}",
            probed.result["hints"]
        );
        for words in [
            "Reads of 8 KiB by where they start",
            ">boundary<",
            ">on the grid<",
            "none seen: data that was read",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
