//! Volume groups on loop devices, and superblocks of md made by hand, both with known places.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use plumb_geometry::{Bytes, ParityLayout};
use plumb_stack::Obstacle;
use plumb_stack::{Chunks, Placing, Stack};
use plumb_testkit::{require, temp_dir};

use super::support::{Loop, image, named, run, run_of, stack_of, why};

/// Two physical volumes whose first extent is 2,049 sectors in, with extents of 4 MiB.
struct GroupOnLoops {
    config: String,
    devices: [Loop; 2],
    name: String,
}

const PE_START: u64 = 2049 * 512;
const EXTENT: u64 = 4 << 20;
const LVM: &str = "pvs, vgs, lvs (JSON)";

impl GroupOnLoops {
    fn make(dir: &Path) -> GroupOnLoops {
        let devices = ["one", "two"].map(|name| {
            image(dir, name, 200);
            Loop::attach(dir, name, 512)
        });
        let accepted = devices
            .each_ref()
            .map(|device| format!("\"a|^{}$|\"", device.0))
            .join(",");
        let config = format!("devices {{ use_devicesfile=0 filter=[{accepted},\"r|.*|\"] }}");
        let group = GroupOnLoops {
            config,
            devices,
            name: format!("plumb{}", std::process::id()),
        };
        let place = [
            "-q",
            "-ff",
            "-y",
            "--dataalignment",
            "512k",
            "--dataalignmentoffset",
            "512b",
        ];
        group.lvm(dir, "pvcreate", &[&place[..], &group.names()].concat());
        group.lvm(
            dir,
            "vgcreate",
            &[&["-q", "-s", "4m", &group.name][..], &group.names()].concat(),
        );
        group
    }

    fn names(&self) -> [&str; 2] {
        [&self.devices[0].0, &self.devices[1].0]
    }

    /// Without the device mapper: nothing is activated.
    fn lvm(&self, dir: &Path, command: &str, args: &[&str]) -> String {
        let first = [command, "--config", &self.config, "--driverloaded", "n"];
        run("lvm", &[&first[..], args].concat(), dir)
    }

    fn create(&self, dir: &Path, args: &[&str]) {
        let first = ["-q", "-y", "-an", "-Zn", "-Wn"];
        self.lvm(dir, "lvcreate", &[&first[..], args].concat());
    }

    fn report(&self, dir: &Path, command: &str, args: &[&str]) -> String {
        self.lvm(
            dir,
            command,
            &[&["--reportformat", "json"][..], args].concat(),
        )
    }
}

impl Drop for GroupOnLoops {
    fn drop(&mut self) {
        let args = [
            "vgremove",
            "-q",
            "-ff",
            "-y",
            "--driverloaded",
            "n",
            "--config",
            &self.config,
            &self.name,
        ];
        let _ = std::process::Command::new("lvm").args(args).output();
    }
}

#[test]
fn volumes_of_lvm() {
    require!(Loop, Tool("lvm"));
    let dir = temp_dir("lvm");
    let group = GroupOnLoops::make(dir.path());
    let [one, two] = group.names();
    let (one, two) = (
        one.trim_start_matches("/dev/"),
        two.trim_start_matches("/dev/"),
    );
    // Extents 0 to 7 of the second; then 0 to 3 of the first and 8 to 11 of the second; then the rest of both.
    group.create(
        dir.path(),
        &[
            "-l",
            "8",
            "-n",
            "linear",
            &group.name,
            &format!("/dev/{two}"),
        ],
    );
    group.create(
        dir.path(),
        &[
            "-l",
            "8",
            "-i",
            "2",
            "-I",
            "64k",
            "-n",
            "striped",
            &group.name,
        ],
    );
    group.create(dir.path(), &["-l", "100%FREE", "-n", "rest", &group.name]);
    let exact = ["--units", "s"];
    let physical = group.report(
        dir.path(),
        "pvs",
        &[&exact[..], &["-o", "+pe_start"]].concat(),
    );
    let groups = group.report(dir.path(), "vgs", &["-o", "+vg_extent_size"]);
    let columns = "+devices,seg_start,stripe_size";
    let segments = group.report(
        dir.path(),
        "lvs",
        &[&exact[..], &["--segments", "-o", columns]].concat(),
    );
    let all = [(LVM, segments.as_str()), (LVM, &groups), (LVM, &physical)];
    let stack = stack_of(&all);
    let volume = |name: &str| format!("{}/{name}", group.name);
    assert_eq!(
        run_of(&stack, &volume("linear")),
        Some((PE_START, Some(8 * EXTENT), two.to_owned()))
    );
    let Placing::Chunks(Chunks {
        chunk,
        members,
        parity: 0,
        copies: 1,
        ..
    }) = &named(&stack, &volume("striped")).1.placing
    else {
        panic!("no stripe")
    };
    let places: Vec<_> = members
        .iter()
        .map(|it| (stack.node(it.node).name.as_str(), it.start.0))
        .collect();
    assert_eq!(
        (chunk.0, &places[..]),
        (
            64 << 10,
            &[(one, PE_START), (two, PE_START + 8 * EXTENT)][..]
        )
    );
    let Placing::Parts { parts } = &named(&stack, &volume("rest")).1.placing else {
        panic!("no parts")
    };
    let places: Vec<_> = parts
        .iter()
        .map(|part| (stack.node(part.node).name.as_str(), part.start.0))
        .collect();
    assert_eq!(
        places,
        [(one, PE_START + 4 * EXTENT), (two, PE_START + 12 * EXTENT)]
    );
    assert_eq!(parts[1].upper, parts[0].len.expect("a length"));
    assert_eq!(stack.problems().len(), 0, "{:?}", stack.problems());
    rounded_reports(&group, dir.path(), two);
}

/// As people print them: `pe_start` of 2,049 sectors reads 1.00m, as 2,048 would.
fn rounded_reports(group: &GroupOnLoops, dir: &Path, device: &str) {
    let segments = group.report(
        dir,
        "lvs",
        &[
            "--segments",
            "-o",
            "+devices,seg_start,stripe_size,vg_extent_size",
        ],
    );
    let rounded = group.report(dir, "pvs", &["-o", "+pe_start"]);
    assert!(rounded.contains("\"1.00m\""), "{rounded}");
    let linear = format!("{}/linear", group.name);
    let stack = stack_of(&[(LVM, &segments), (LVM, &rounded)]);
    assert_eq!(
        why(&stack, &linear),
        Obstacle::FirstExtentNotPrinted {
            device: format!("/dev/{device}")
        }
    );
    assert!(
        stack.notes().iter().any(|note| note.contains("is rounded")),
        "{:?}",
        stack.notes()
    );
    // Everything else survives rounding.
    let exact = group.report(dir, "pvs", &["--units", "b", "-o", "+pe_start"]);
    let stack = stack_of(&[(LVM, &segments), (LVM, &exact)]);
    assert_eq!(
        run_of(&stack, &linear),
        Some((PE_START, Some(8 * EXTENT), device.to_owned()))
    );
}

/// A superblock of format 1.2 (`struct mdp_superblock_1` of the kernel's `md_p.h`): RAID 5 of three, chunks of 64 KiB.
fn write_superblock(file: &Path, slot: u16, data_sectors: u64) {
    const DEVICES: u16 = 3;
    let mut block = [0u8; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..][..bytes.len()].copy_from_slice(bytes);
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &1u32.to_le_bytes());
    put(16, b"sixteen bytes id");
    put(32, b"host:7");
    put(72, &5u32.to_le_bytes()); // level
    put(76, &2u32.to_le_bytes()); // layout: left-symmetric
    put(80, &40_960u64.to_le_bytes()); // used sectors of each
    put(88, &128u32.to_le_bytes()); // chunk, sectors
    put(92, &u32::from(DEVICES).to_le_bytes());
    put(128, &data_sectors.to_le_bytes());
    put(136, &65_536u64.to_le_bytes()); // sectors of data
    put(144, &8u64.to_le_bytes()); // superblock at 4 KiB
    put(160, &u32::from(slot).to_le_bytes());
    put(168, &[slot as u8 + 1; 16]);
    put(208, &u64::MAX.to_le_bytes());
    put(220, &u32::from(DEVICES).to_le_bytes());
    for device in 0..DEVICES {
        put(256 + 2 * usize::from(device), &device.to_le_bytes());
    }
    // Words added up with their carries, as `calc_sb_1_csum` does; the last may be half of one.
    let sum: u64 = block[..256 + 2 * usize::from(DEVICES)]
        .chunks(4)
        .map(|word| {
            word.iter()
                .rev()
                .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
        })
        .sum();
    let sum = (sum & 0xffff_ffff) as u32 + (sum >> 32) as u32;
    block[216..220].copy_from_slice(&sum.to_le_bytes());
    let file = OpenOptions::new().write(true).open(file).expect("a file");
    file.write_all_at(&block, 4096).expect("a block");
}

fn check_array(stack: &Stack, array: &str, starts: [u64; 3]) {
    let Placing::Chunks(chunks) = &named(stack, array).1.placing else {
        panic!("{:?}", named(stack, array).1.placing)
    };
    assert_eq!((chunks.chunk, chunks.parity), (Bytes(64 << 10), 1));
    assert_eq!(chunks.layout, Some(ParityLayout::LeftSymmetric));
    assert_eq!(chunks.stripe_bytes(), Some(Bytes(128 << 10)));
    let found: Vec<u64> = chunks.members.iter().map(|member| member.start.0).collect();
    assert_eq!(found, starts.map(|start| start * 512));
}

#[test]
fn superblocks_of_md() {
    require!(Tool("mdadm"));
    let dir = temp_dir("md");
    let starts = [2048, 2056, 4095];
    for (slot, start) in starts.into_iter().enumerate() {
        let name = format!("sd{}", char::from(b'a' + slot as u8));
        image(dir.path(), &name, 48);
        write_superblock(&dir.path().join(&name), slot as u16, start);
    }
    // In the wrong order: slots count.
    let print = run("mdadm", &["--examine", "sdc", "sda", "sdb"], dir.path());
    assert_eq!(print.matches(" - correct").count(), 3, "{print}");
    check_array(&stack_of(&[("mdadm --examine", &print)]), "md/7", starts);
    // With the running array: the same array under its own name.
    let running = "Personalities : [raid5]\nmd0 : active raid5 sdc[2] sdb[1] sda[0]\n      \
                   40960 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/3] [UUU]\n\nunused devices: <none>\n";
    let dumps = [
        ("/proc/mdstat", running),
        ("mdadm --examine", print.as_str()),
    ];
    for dumps in [dumps, [dumps[1], dumps[0]]] {
        let stack = stack_of(&dumps);
        check_array(&stack, "md0", starts);
        assert_eq!(stack.find("md/7"), None);
    }
    // And alone, without a source for the start of the data.
    let stack = stack_of(&[("/proc/mdstat", running)]);
    assert_eq!(
        why(&stack, "md0"),
        Obstacle::DataStartInSuperblock {
            member: "sda".to_owned()
        }
    );
    let old = running.replace("super 1.2 ", "");
    check_array(&stack_of(&[("/proc/mdstat", &old)]), "md0", [0; 3]);
}

/// A disk that was replaced: mdstat numbers it 3, and it is in slot 1.
#[test]
fn slots_of_md() {
    let mdstat = "Personalities : [raid5]\nmd0 : active raid5 sdd[3] sdc[2] sda[0]\n      \
                  40960 blocks super 1.0 level 5, 64k chunk, algorithm 2 [3/3] [UUU]\n";
    let detail = "/dev/md0:\n Version : 1.0\n Raid Level : raid5\n Raid Devices : 3\n Layout : left-symmetric\n \
                  Chunk Size : 64K\n Number Major Minor RaidDevice State\n 0 8 0 0 active sync /dev/sda\n \
                  3 8 48 1 active sync /dev/sdd\n 2 8 32 2 active sync /dev/sdc\n";
    for dumps in [
        [("/proc/mdstat", mdstat), ("mdadm --detail", detail)],
        [("mdadm --detail", detail), ("/proc/mdstat", mdstat)],
    ] {
        let stack = stack_of(&dumps);
        let Placing::Chunks(chunks) = &named(&stack, "md0").1.placing else {
            panic!("no chunks")
        };
        let names: Vec<&str> = chunks
            .members
            .iter()
            .map(|it| stack.node(it.node).name.as_str())
            .collect();
        assert_eq!(names, ["sda", "sdd", "sdc"]);
        assert_eq!(stack.problems().len(), 0, "{:?}", stack.problems());
    }
}

/// Tables, LVM and lsblk of one volume, in either order: one node, one place.
#[test]
fn tables_name_devices_by_number() {
    let table = "vg-lv: 0 8192 linear 259:1 2048\nluks-a: 0 4096 crypt aes :64:x 0 253:0 16 1 sector_size:4096\n";
    let alone = stack_of(&[("dmsetup table", table)]);
    let number = "259:1".to_owned();
    assert_eq!(
        named(&alone, "259:1").1.opaque,
        Some(Obstacle::NumberAlone { number })
    );
    let lsblk = r#"{"blockdevices": [{"name": "nvme0n1", "type": "disk", "maj:min": "259:0", "children": [
        {"name": "nvme0n1p1", "type": "part", "maj:min": "259:1", "start": 63, "size": 1048576000, "children": [
        {"name": "vg-lv", "kname": "dm-0", "maj:min": "253:0", "type": "lvm", "children": [
        {"name": "luks-a", "kname": "dm-1", "maj:min": "253:1", "type": "crypt"}]}]}]}]}"#;
    for dumps in [
        [("lsblk -J", lsblk), ("dmsetup table", table)],
        [("dmsetup table", table), ("lsblk -J", lsblk)],
    ] {
        let stack = stack_of(&dumps);
        let volume = named(&stack, "vg/lv").0;
        assert_eq!(stack.find("/dev/mapper/vg-lv"), Some(volume));
        assert_eq!(
            run_of(&stack, "dm-0").map(|run| (run.0, run.2)),
            Some((2048 * 512, "nvme0n1p1".to_owned()))
        );
        let landings = stack.landings(named(&stack, "luks-a").0).all;
        let disk = named(&stack, "nvme0n1").0;
        let shift = landings
            .iter()
            .find(|landing| landing.on == disk)
            .map(|landing| landing.shift);
        assert_eq!(shift, Some((16 + 2048 + 63) * 512));
        assert_eq!(stack.problems().len(), 0, "{:?}", stack.problems());
    }
    let stack = stack_of(&[("lsblk -J", lsblk)]);
    assert_eq!(why(&stack, "vg/lv"), Obstacle::MappedStartNotPrinted);
}
