//! Answers of the kernel held against those of the system's own tools.

use std::path::Path;
use std::process::Command;

use plumb_sys::{BlockDevice, SysError, extents};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::{require, temp_dir};

fn output(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program)
        .args(arguments)
        .output()
        .expect(program);
    assert!(
        out.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn limits_are_those_of_blockdev() {
    require!(Loop, Tool("blockdev"));
    let dir = temp_dir("limits");
    let image = dir.path().join("image");
    std::fs::write(&image, vec![0; 1 << 20]).expect("an image");
    let device = LoopDevice::attach(&image, &["--sector-size", "4096"]);
    let limits = BlockDevice::open(device.path())
        .and_then(|device| device.limits())
        .expect("its limits");
    assert_eq!(limits.logical_block_bytes, 4096, "as it was attached");
    let path = device.path().to_str().expect("a plain name");
    let questions = [
        "--getsize64",
        "--getss",
        "--getpbsz",
        "--getiomin",
        "--getioopt",
        "--getalignoff",
    ];
    let asked: Vec<&str> = questions.into_iter().chain([path]).collect();
    let expected: Vec<i64> = output("blockdev", &asked)
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    let found = [
        limits.size_bytes as i64,
        i64::from(limits.logical_block_bytes),
        i64::from(limits.physical_block_bytes),
        i64::from(limits.minimum_io_bytes),
        i64::from(limits.optimal_io_bytes),
        i64::from(limits.alignment_offset_bytes),
    ];
    assert_eq!(found[..], expected[..], "{path}");
    assert_eq!(limits.logical_block_bytes, 4096, "as it was attached");
}

#[test]
fn only_block_devices_are_opened() {
    let file = temp_dir("no-device");
    let path = file.path().join("sda");
    std::fs::write(&path, "x").expect("a file");
    assert!(matches!(
        BlockDevice::open(&path),
        Err(SysError::NotABlockDevice { .. })
    ));
    let error = BlockDevice::open(Path::new("/dev/no-such-device")).expect_err("no such device");
    assert!(matches!(error, SysError::NotThere { .. }), "{error}");
}

/// A file with a hole and two runs, written in an order that keeps them apart; `filefrag` counts blocks.
#[test]
fn extents_are_those_of_filefrag() {
    require!(Tool("filefrag"));
    let dir = temp_dir("extents");
    let path = dir.path().join("file");
    let file = std::fs::File::create(&path).expect("a file");
    for at in [3u64 << 20, 0, 8 << 20] {
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 300_000], at).expect("write");
        file.sync_all().expect("sync");
    }
    let found = match extents::of_file(&path, 100) {
        Err(SysError::NotSupported { .. }) => {
            plumb_testkit::skip!("the file system under the temporary directory knows no extents");
        }
        found => found.expect("extents"),
    };
    assert_eq!(
        (found.size_bytes, found.is_cut),
        ((8 << 20) + 300_000, false)
    );
    let text = output(
        "filefrag",
        &["-v", "-b512", path.to_str().expect("a plain name")],
    );
    let number = |text: &str| {
        text.trim_matches(|c: char| !c.is_ascii_digit())
            .parse::<u64>()
            .expect("a number")
            * 512
    };
    // "   0:        0..     607:  123456.. 124063:    608:  …": three columns apart by colons, starts before the dots.
    let expected: Vec<(u64, u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let mut columns = line.split(':');
            columns.next()?.trim().parse::<u32>().ok()?;
            let (logical, physical, len) = (columns.next()?, columns.next()?, columns.next()?);
            Some((
                number(logical.split("..").next()?),
                number(physical.split("..").next()?),
                number(len),
            ))
        })
        .collect();
    let ours: Vec<_> = found
        .extents
        .iter()
        .map(|one| (one.logical_bytes, one.physical_bytes, one.len_bytes))
        .collect();
    assert!(ours.len() >= 3, "{ours:?}");
    assert_eq!(ours, expected);
    assert!(extents::of_file(&path, 2).expect("extents").is_cut);
    assert!(
        extents::of_file(dir.path(), 2).is_err(),
        "a directory has none"
    );
}
