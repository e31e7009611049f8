//! GRUB's core image is found by its sectors: the images are those that GRUB itself has made and installed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use plumb_testkit::loop_device::{Mounted, run};
use plumb_testkit::require;

use crate::fix_preflight::disk::{PreflightDisk, assert_done, assert_refused, disk_bytes};

/// GRUB on a disk, with its files on partition 1; whether it may use lists of blocks.
fn install(disk: &PreflightDisk, on: &std::path::Path, args: &[&str]) {
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let mounted = Mounted::mount(&disk.node(1), &disk.at());
    let boot = format!("--boot-directory={}", disk.at().display());
    let mut grub = Command::new("grub-install");
    grub.args([
        "--target=i386-pc",
        "--modules=part_msdos part_gpt ext2",
        &boot,
    ])
    .args(args)
    .arg(on);
    run(&mut grub);
    assert!(disk.at().join("grub/i386-pc/core.img").exists());
    drop(mounted);
}

#[test]
fn a_core_image_in_the_gap() {
    require!(
        Loop,
        Tool("sfdisk"),
        Tool("mkfs.ext4"),
        Tool("grub-install")
    );
    let disk = PreflightDisk::sfdisk(120_000, "label: dos\nstart=2048, size=80000, type=83\n");
    install(&disk, disk.device.path(), &[]);
    assert_refused(
        &disk.fix_move(1, &["--to", "63s"]),
        5,
        &["GRUB's core image is in its new place", "of the disk"],
    );
    // Without the code that leads there it is seen all the same.
    let (image, mut boot) = (disk.image_file(), vec![0; 440]);
    image
        .read_exact_at(&mut boot, 0)
        .and_then(|()| image.write_all_at(&[0; 440], 0))
        .expect("the image");
    let words = ["may hold a boot loader", "as GRUB's core image does"];
    assert_refused(&disk.fix_move(1, &["--to", "1s"]), 5, &words);
    image
        .write_all_at(&boot, 0)
        .and_then(|()| image.sync_all())
        .expect("the image");
    // Away from it: the embedded image finds /boot by the partition's number.
    assert_done(&disk.fix_move(1, &["--to", "4096s", "--yes", &disk.name(1)]));
    // Behind the image, where nothing is.
    assert_done(&disk.fix_move(1, &["--to", "1024s", "--yes", &disk.name(1)]));
}

/// Remains in the gap of a partition that began there are written once more, and hide no boot loader.
#[test]
fn back_into_the_gap() {
    require!(Loop, Tool("sfdisk"), Tool("mkfs.ext4"), Tool("mkfs.vfat"));
    for mkfs in [&["mkfs.ext4", "-q", "-F"][..], &["mkfs.vfat", "-F32"]] {
        let disk = PreflightDisk::sfdisk(120_000, "label: dos\nstart=63, size=100000, type=83\n");
        disk.fill(1);
        run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(disk.node(1)));
        let data = disk.bytes_of(1);
        assert_done(&disk.fix_move(1, &["--to", "2048s", "--yes", &disk.name(1)]));
        let gap = disk_bytes(&disk)[63 * 512..2_048 * 512].to_vec();
        assert!(gap.iter().any(|byte| *byte != 0), "something is left there");
        // A place at which the leftovers would not be written once more.
        assert_refused(
            &disk.fix_move(1, &["--to", "64s"]),
            5,
            &["may hold a boot loader", "no code"],
        );
        assert_done(&disk.fix_move(1, &["--to", "63s", "--yes", &disk.name(1)]));
        assert!(
            disk.start(1) == Some(63) && disk.bytes_of(1) == data,
            "{mkfs:?}"
        );
    }
}

/// Loaders other than GRUB: one sector among the remains is enough.
#[test]
fn unknown_loaders_are_refused() {
    require!(Loop, Tool("sfdisk"));
    let disk = PreflightDisk::sfdisk(120_000, "label: dos\nstart=63, size=100000, type=83\n");
    disk.fill(1);
    assert_done(&disk.fix_move(1, &["--to", "2048s", "--yes", &disk.name(1)]));
    let image = disk.image_file();
    let put = |at: u64, bytes: &[u8]| {
        image
            .write_all_at(bytes, at)
            .and_then(|()| image.sync_all())
            .expect("room")
    };
    // U-Boot for boards of Allwinner is at 8 or 128 KiB, without code in the boot sector.
    put(128 << 10, b"\x16\0\0\xeaeGON.BT0");
    let refused = disk.fix_move(1, &["--to", "63s"]);
    assert_refused(
        &refused,
        5,
        &[
            "sectors 256 to 256",
            "boards load",
            "dd if=/dev/zero",
            "seek=256 count=1",
        ],
    );
    put(0, b"\xfa\x31\xc0");
    assert_refused(
        &disk.fix_move(1, &["--to", "63s"]),
        5,
        &["boot sector has code, which may load more"],
    );
    // As the help says.
    put(128 << 10, &[0; 512]);
    assert_done(&disk.fix_move(1, &["--to", "63s", "--yes", &disk.name(1)]));
}

#[test]
fn lists_of_blocks() {
    require!(
        Loop,
        Tool("sfdisk"),
        Tool("mkfs.ext4"),
        Tool("grub-install")
    );
    // No room before the first partition: the image stays a file, and its blocks are listed.
    let disk = PreflightDisk::sfdisk(120_000, "label: dos\nstart=34, size=80000, type=83\n");
    install(&disk, disk.device.path(), &["--force"]);
    let words = [
        "GRUB's core image is in it",
        "boot sector of the disk",
        "grub-install",
    ];
    assert_refused(&disk.fix_move(1, &["--to", "2048s"]), 5, &words);
    // In the partition's own first sector.
    let disk = PreflightDisk::sfdisk(120_000, "label: dos\nstart=2050, size=80000, type=83\n");
    install(&disk, &disk.node(1), &["--force"]);
    let words = ["GRUB's core image is in it", "boot sector of partition 1"];
    assert_refused(&disk.fix_move(1, &["--to", "4096s"]), 5, &words);
    assert!(fs::metadata(disk.journal()).is_err());
}

/// A GPT has a partition for it.
#[test]
fn a_partition_for_the_core_image() {
    require!(
        Loop,
        Tool("sgdisk"),
        Tool("mkfs.ext4"),
        Tool("grub-install")
    );
    let disk = PreflightDisk::gpt(&[(4_130, 84_000), (34, 2_081)]);
    run(Command::new("sgdisk")
        .args(["-t2:ef02"])
        .arg(disk.device.path()));
    run(Command::new("partx")
        .arg("--update")
        .arg(disk.device.path()));
    install(&disk, disk.device.path(), &[]);
    assert_refused(
        &disk.fix_move(2, &["--to", "2050s"]),
        5,
        &["it holds GRUB's core image", "grub-install"],
    );
    assert_done(&disk.fix_move(1, &["--to", "4096s", "--yes", &disk.name(1)]));
}
