//! The reader of logs of writes, compared with QEMU's log of writes by qemu-io.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use plumb_testkit::log_writes::{Tear, WriteLog};
use plumb_testkit::loop_device::run;
use plumb_testkit::{Rng, require, temp_dir};

const DISK_BYTES: u64 = 1 << 20;
/// qemu-io's patterns: number of the byte, start, length. Between the second and the third write is a flush.
const WRITES: [(u8, u64, u64); 4] = [
    (1, 0, 65_536),
    (2, 4_096, 8_192),
    (3, 8_192, 4_096),
    (4, 524_288, 1_536),
];

fn logged(dir: &Path) -> WriteLog {
    let (image, log) = (dir.join("image"), dir.join("log"));
    for (path, size) in [(&image, DISK_BYTES), (&log, 0)] {
        File::create(path)
            .and_then(|file| file.set_len(size))
            .expect("room");
    }
    let options = format!(
        "driver=blklogwrites,file.driver=file,file.filename={},log.driver=file,log.filename={},log-super-update-interval=1",
        image.display(),
        log.display()
    );
    let mut command = Command::new("qemu-io");
    command.args(["--image-opts", &options]);
    for (at, (pattern, start, len)) in WRITES.into_iter().enumerate() {
        if at == 2 {
            command.args(["-c", "flush"]);
        }
        command.args(["-c", &format!("write -P {pattern} {start} {len}")]);
    }
    run(&mut command);
    WriteLog::open(&log).expect("a log")
}

fn image(dir: &Path, bytes: &[u8]) -> File {
    let path = dir.join("again");
    std::fs::write(&path, bytes).expect("room");
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("it")
}

#[test]
fn a_disk_is_made_again_from_its_log() {
    require!(Tool("qemu-io"));
    let dir = temp_dir("log-writes");
    let log = logged(dir.path());
    let writes: Vec<(u64, u64)> = log
        .entries()
        .iter()
        .filter(|entry| entry.len_bytes > 0)
        .map(|it| (it.at, it.len_bytes))
        .collect();
    assert_eq!(writes, WRITES.map(|(_, start, len)| (start, len)));
    assert!(
        log.entries()[2].is_flush && log.entries()[2].len_bytes == 0,
        "{:?}",
        log.entries()
    );
    let again = image(dir.path(), &vec![0; DISK_BYTES as usize]);
    log.replay(0..log.entries().len(), &again).expect("room");
    let read = |name: &str| std::fs::read(dir.path().join(name)).expect("an image");
    assert!(read("again") == read("image"), "as QEMU left it");
    // A part of it: the content before the third write.
    let again = image(dir.path(), &vec![0; DISK_BYTES as usize]);
    log.replay(0..2, &again).expect("room");
    let bytes = read("again");
    assert_eq!(
        [
            bytes[0],
            bytes[4_096],
            bytes[8_192],
            bytes[12_288],
            bytes[524_288]
        ],
        [1, 2, 2, 1, 0]
    );
}

/// Flushed data stay; of the rest every block is old, new, or destroyed, and nothing else changes.
#[test]
fn a_power_cut_damages_unflushed_writes_only() {
    require!(Tool("qemu-io"));
    let dir = temp_dir("log-writes");
    let log = logged(dir.path());
    // Behind the last write and before the flush with which qemu-io ends.
    let end = log
        .entries()
        .iter()
        .rposition(|entry| entry.len_bytes > 0)
        .expect("writes")
        + 1;
    let mut rng = Rng::new(7);
    let (mut lost, mut whole, mut torn, mut spoiled) = (0, 0, 0, 0);
    for tear in [Tear::Sectors, Tear::Blocks(4_096)] {
        for _ in 0..100 {
            let again = image(dir.path(), &vec![9; DISK_BYTES as usize]);
            let survived = log.cut(end, tear, &mut rng, &again).expect("room");
            assert_eq!(
                (
                    survived.durable,
                    survived.lost + survived.whole + survived.torn
                ),
                (2, 2)
            );
            (lost, whole, torn) = (
                lost + survived.lost,
                whole + survived.whole,
                torn + survived.torn,
            );
            let bytes = std::fs::read(dir.path().join("again")).expect("an image");
            let is_right = |at: usize| match at {
                4_096..8_192 => bytes[at] == 2,
                0..4_096 | 12_288..65_536 => bytes[at] == 1,
                8_192..12_288 | 524_288..528_384 => true,
                _ => bytes[at] == 9,
            };
            assert_eq!((0..bytes.len()).find(|at| !is_right(*at)), None, "{tear:?}");
            let (third, fourth) = (&bytes[8_192..12_288], &bytes[524_288..528_384]);
            let is_clean = third.iter().all(|byte| [2, 3].contains(byte))
                && fourth[..1_536].iter().all(|byte| [4, 9].contains(byte))
                && fourth[1_536..].iter().all(|byte| *byte == 9);
            assert!(is_clean || tear != Tear::Sectors);
            spoiled += u32::from(!is_clean);
        }
    }
    assert!(
        [lost, whole, torn].iter().all(|count| *count > 100) && spoiled > 10,
        "{lost} {whole} {torn} {spoiled}"
    );
}

/// QEMU counts an entry before the one before it is complete: missing ones come later.
#[test]
fn a_log_can_be_read_while_it_grows() {
    require!(Tool("qemu-io"));
    let dir = temp_dir("log-writes");
    let whole = logged(dir.path()).entries().to_vec();
    let bytes = std::fs::read(dir.path().join("log")).expect("a log");
    let growing = dir.path().join("growing");
    for len in (512..bytes.len()).step_by(256) {
        std::fs::write(&growing, &bytes[..len]).expect("room");
        let mut log = WriteLog::open(&growing).expect("a log");
        assert_eq!(*log.entries(), whole[..log.entries().len()], "{len}");
        std::fs::write(&growing, &bytes).expect("room");
        log.read_on().expect("a log");
        assert_eq!(log.entries(), whole, "{len}");
    }
}
