//! File systems made with a known stripe.

use plumb_stack::dump;
use plumb_stack::node::keys;
use plumb_stack::{Builder, Stack};
use plumb_testkit::{require, temp_dir};

use super::support::{image, named, run};

fn of_file(name: &str, text: &str) -> Stack {
    let mut builder = Builder::default();
    let read = dump::read_bytes(name, text.as_bytes(), &mut builder).expect("reads");
    assert!(read.is_verified);
    dump::join(&mut builder);
    builder.finish()
}

fn file_system_sizes(stack: &Stack, name: &str) -> [Option<u64>; 3] {
    [keys::FS_BLOCK, keys::FS_STRIPE_UNIT, keys::FS_STRIPE_WIDTH]
        .map(|key| named(stack, name).1.number(key).map(|bytes| bytes.0))
}

#[test]
fn xfs_with_a_stripe() {
    require!(Tool("mkfs.xfs"), Tool("xfs_info"));
    let dir = temp_dir("xfs");
    image(dir.path(), "image", 4096);
    let stripe = ["-q", "-f", "-b", "size=2048", "-d", "su=64k,sw=3", "image"];
    run("mkfs.xfs", &stripe, dir.path());
    let stack = of_file("info", &run("xfs_info", &["image"], dir.path()));
    assert_eq!(
        file_system_sizes(&stack, "image"),
        [Some(2048), Some(64 << 10), Some(192 << 10)]
    );
    // The stripe unit of the log is another thing.
    run(
        "mkfs.xfs",
        &["-q", "-f", "-d", "noalign", "-l", "su=32k", "image"],
        dir.path(),
    );
    let stack = of_file("info", &run("xfs_info", &["image"], dir.path()));
    assert_eq!(file_system_sizes(&stack, "image"), [Some(4096), None, None]);
}

/// Neither tool prints its device: the name of the file does.
#[test]
fn ext4_with_a_stripe() {
    require!(Tool("mke2fs"), Tool("dumpe2fs"), Tool("tune2fs"));
    let dir = temp_dir("ext4");
    image(dir.path(), "image", 64);
    let stripe = [
        "-q",
        "-F",
        "-t",
        "ext4",
        "-b",
        "4096",
        "-E",
        "stride=16,stripe_width=48",
        "image",
    ];
    run("mke2fs", &stripe, dir.path());
    for (program, flag) in [("dumpe2fs", "-h"), ("tune2fs", "-l")] {
        let print = run(program, &[flag, "image"], dir.path());
        let stack = of_file("/somewhere/dumpe2fs-sdb3.txt", &print);
        assert_eq!(
            file_system_sizes(&stack, "sdb3"),
            [Some(4096), Some(64 << 10), Some(192 << 10)],
            "{program}"
        );
        assert_eq!(
            named(&stack, "sdb3")
                .1
                .value(keys::CONTENT)
                .map(|word| word.text()),
            Some("ext4")
        );
    }
    run("mke2fs", &["-q", "-F", "-t", "ext3", "image"], dir.path());
    let stack = of_file("md0.txt", &run("tune2fs", &["-l", "image"], dir.path()));
    assert_eq!(file_system_sizes(&stack, "md0")[1..], [None, None]);
    assert_eq!(
        named(&stack, "md0")
            .1
            .value(keys::CONTENT)
            .map(|word| word.text()),
        Some("ext3")
    );
}

/// A stripe given at mount, in sectors of 512 bytes as xfs(5) says, in all three ways of printing mounts.
#[test]
fn a_stripe_given_at_mount() {
    let options = "rw,relatime,attr2,inode64,sunit=128,swidth=384,noquota";
    for text in [
        format!("/dev/sdb1 /data xfs {options} 0 0\n"),
        format!("/dev/sdb1 on /data type xfs ({options})\n"),
        format!("TARGET SOURCE    FSTYPE OPTIONS\n/data  /dev/sdb1 xfs    {options}\n"),
    ] {
        let stack = of_file("mounts", &text);
        assert_eq!(
            file_system_sizes(&stack, "/data")[1..],
            [Some(64 << 10), Some(192 << 10)],
            "{text}"
        );
    }
    let stack = of_file("mounts", &format!("/dev/sdb1 /data ext4 {options} 0 0\n"));
    assert_eq!(
        file_system_sizes(&stack, "/data")[1..],
        [None, None],
        "they are options of XFS"
    );
}
