//! The stripe parameters that file systems keep: ext4, XFS, btrfs.

use plumb_geometry::Bytes;
use plumb_plan::filesystem;
use plumb_testkit::{require, temp_dir};

use crate::tools::{IMAGE, image, run, sh, way};

fn on_stripe(kind: filesystem::Type, device: &str) -> filesystem::FilesystemRequest {
    filesystem::FilesystemRequest {
        kind,
        device: device.to_owned(),
        mount: None,
        chunk: Some(Bytes(64 << 10)),
        data_members: 3,
        block: None,
        physical: Bytes(4096),
        page: None,
    }
}

#[test]
fn ext4_follows_the_plan() {
    require!(Tool("mkfs.ext4"), Tool("dumpe2fs"), Tool("tune2fs"));
    let folder = temp_dir("plan-ext4");
    let device = image(folder.path(), IMAGE);
    let read = || {
        let out = sh(
            folder.path(),
            &format!("dumpe2fs -h '{device}' 2>/dev/null"),
        );
        let of = |name: &str| {
            let line = out.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        };
        (of("RAID stride:"), of("RAID stripe width:"))
    };
    // 64 KiB are 16 blocks of 4 KiB, and three of them 48.
    let plan = filesystem::plan(&on_stripe(filesystem::Type::Ext4, &device)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    assert_eq!(read(), (Some(16), Some(48)));
    let mut wider = on_stripe(filesystem::Type::Ext4, &device);
    wider.data_members = 5;
    let plan = filesystem::plan(&wider).expect("a plan");
    run(
        folder.path(),
        way(&plan, "on the file system that is there"),
    );
    assert_eq!(read(), (Some(16), Some(80)));
}

#[test]
fn xfs_follows_the_plan() {
    require!(Tool("mkfs.xfs"), Tool("xfs_db"));
    let folder = temp_dir("plan-xfs");
    // Below about 1 GiB mkfs.xfs passes over the stripe; the image is sparse.
    let device = image(folder.path(), 2 << 30);
    let plan = filesystem::plan(&on_stripe(filesystem::Type::Xfs, &device)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    let out = sh(
        folder.path(),
        &format!("xfs_db -r -c 'sb 0' -c 'print unit width' '{device}'"),
    );
    assert_eq!(
        out.split_whitespace().collect::<Vec<_>>(),
        ["unit", "=", "16", "width", "=", "48"]
    );
}

/// Without a stripe the tools take block and sector as they are printed, and tell of no stripe.
#[test]
fn without_a_stripe_block_and_sector_are_kept() {
    require!(
        Tool("mkfs.xfs"),
        Tool("xfs_db"),
        Tool("mkfs.ext4"),
        Tool("dumpe2fs")
    );
    let folder = temp_dir("plan-no-stripe");
    let device = image(folder.path(), 2 << 30);
    let alone = |kind| filesystem::FilesystemRequest {
        chunk: None,
        data_members: 1,
        ..on_stripe(kind, &device)
    };
    let plan = filesystem::plan(&alone(filesystem::Type::Xfs)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    let out = sh(
        folder.path(),
        &format!("xfs_db -r -c 'sb 0' -c 'print blocksize sectsize unit' '{device}'"),
    );
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "blocksize",
            "=",
            "4096",
            "sectsize",
            "=",
            "4096",
            "unit",
            "=",
            "0"
        ]
    );
    let folder = temp_dir("plan-no-stripe-ext4");
    let other = image(folder.path(), 2 << 30);
    let plan = filesystem::plan(&filesystem::FilesystemRequest {
        device: other.clone(),
        ..alone(filesystem::Type::Ext4)
    });
    run(
        folder.path(),
        way(&plan.expect("a plan"), "when it is made"),
    );
    let out = sh(folder.path(), &format!("dumpe2fs -h '{other}' 2>/dev/null"));
    assert!(
        out.lines()
            .any(|line| line.starts_with("Block size:") && line.ends_with("4096")),
        "{out}"
    );
    assert!(!out.contains("RAID stride"), "{out}");
}

/// A chunk larger than the log allows: the tool must not refuse the plan's value.
#[test]
fn xfs_takes_a_large_chunk() {
    require!(Tool("mkfs.xfs"), Tool("xfs_db"));
    let folder = temp_dir("plan-xfs-large");
    let device = image(folder.path(), 2 << 30);
    let mut request = on_stripe(filesystem::Type::Xfs, &device);
    request.chunk = Some(Bytes(512 << 10));
    run(
        folder.path(),
        way(
            &filesystem::plan(&request).expect("a plan"),
            "when it is made",
        ),
    );
    let out = sh(
        folder.path(),
        &format!("xfs_db -r -c 'sb 0' -c 'print unit width logsunit' '{device}'"),
    );
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "unit", "=", "128", "width", "=", "384", "logsunit", "=", "32768"
        ]
    );
}

#[test]
fn btrfs_follows_the_plan() {
    require!(Tool("mkfs.btrfs"), Tool("btrfs"));
    let folder = temp_dir("plan-btrfs");
    let device = image(folder.path(), 256 << 20);
    let plan = filesystem::plan(&on_stripe(filesystem::Type::Btrfs, &device)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    let out = sh(
        folder.path(),
        &format!("btrfs inspect-internal dump-super '{device}'"),
    );
    let of = |name: &str| {
        let line = out
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line");
        line.trim().to_owned()
    };
    assert_eq!(
        (of("sectorsize"), of("nodesize")),
        ("4096".to_owned(), "16384".to_owned())
    );
}
