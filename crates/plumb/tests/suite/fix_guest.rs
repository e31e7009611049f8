//! `plumb fix` on disks that declare the start of their first whole block, and on members of arrays and volumes, in a
//! guest: see `lab/fix-guest`. The results come from the guest's kernel, sfdisk, sgdisk, mdadm and e2fsck.

use plumb_testkit::require;

#[test]
fn alignment_offsets_long_blocks_and_disks_in_use() {
    require!(Qemu, Tool("apt-get"));
    let said = crate::in_guests::run_lab("fix-guest", [env!("CARGO_BIN_EXE_plumb")]);
    let lines: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("GUEST: "))
        .collect();
    let expected = [
        "relabel disk-offset 3584",
        "relabel status 0",
        // 7 + 255 × 8; the kernel finds nothing missing to the next aligned byte.
        "relabel start 2047",
        "relabel offset 0",
        "relabel-sfdisk status 0",
        "relabel-sgdisk status 0",
        "undo status 0",
        // 34 = 7 + 3 × 8 + 3: five sectors are missing.
        "move from-offset 2560",
        "move-in-memory status 5",
        // A file system that begins within a block of its disk.
        "move-off-blocks status 5",
        "move status 0",
        "move start 2047",
        "move offset 0",
        "move-e2fsck status 0",
        "move file same",
        "member-of-array 5, as it should",
        "move-member status 0",
        "move-member metadata same",
        "move-member-e2fsck status 0",
        "below-dm 5, as it should",
        "whole-disk 5, as it should",
        "active-volume 5, as it should",
        "move-volume status 0",
        "move-volume active again",
        "cache-note 0, as it should",
        "scan 5, as it should",
        "stopped 6, as it should",
        "stopped-again 6, as it should",
        "stick 6, as it should",
        "resumed status 0",
        "resumed-e2fsck status 0",
        "zones 5, as it should",
        "blocks status 0",
        "blocks start 2048",
        "blocks-sfdisk status 0",
        "done",
    ];
    assert_eq!(lines, expected, "{said}");
    crate::common::assert_sfdisk_agrees(&said);
}
