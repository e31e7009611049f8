//! LVM: groups made without activating anything, so that no device mapper is needed.

use plumb_geometry::Bytes;
use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, Placing, Stack};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, grid, node, problems, run, run_of};

const PVS: [&str; 3] = ["one.img", "two.img", "three.img"];

/// Three physical volumes, the last one with data off by 3584 bytes.
struct LvmHost {
    images: Images,
    loops: Vec<String>,
    // Detached with the host.
    _devices: Vec<LoopDevice>,
    folder: String,
}

impl LvmHost {
    fn new() -> LvmHost {
        let images = Images::new();
        let attach = |name: &&str| LoopDevice::attach(images.make(name, 64 * MIB).as_ref(), &[]);
        let devices: Vec<LoopDevice> = PVS.iter().map(attach).collect();
        let path = |device: &LoopDevice| device.path().to_str().expect("a path of text").to_owned();
        let loops = devices.iter().map(path).collect();
        let folder = images
            .path("lvm")
            .to_str()
            .expect("a path of text")
            .to_owned();
        std::fs::create_dir(&folder).expect("a folder");
        let host = LvmHost {
            images,
            loops,
            _devices: devices,
            folder,
        };
        let [one, two, three] = [0, 1, 2].map(|at| host.loops[at].clone());
        host.lvm(&["pvcreate", "-q", "--dataalignment", "1m", &one, &two]);
        host.lvm(&[
            "pvcreate",
            "-q",
            "--dataalignment",
            "1m",
            "--dataalignmentoffset",
            "3584b",
            &three,
        ]);
        host
    }

    fn make_group(&self) {
        let devices = self.loops.iter().map(String::as_str);
        let arguments: Vec<&str> = ["vgcreate", "-q", "-s", "1m", "plumb_vg"]
            .into_iter()
            .chain(devices)
            .collect();
        self.lvm(&arguments);
    }

    /// With settings that see these devices only.
    fn lvm(&self, arguments: &[&str]) -> String {
        let accepted: String = self
            .loops
            .iter()
            .map(|one| format!("\"a|^{one}$|\","))
            .collect();
        let settings = format!(
            "devices{{filter=[{accepted}\"r|.*|\"] use_devicesfile=0}} global{{use_lvmpolld=0}} \
             backup{{backup=0 archive=0}} activation{{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0}}"
        );
        let folder = format!("LVM_SYSTEM_DIR={}", self.folder);
        let (program, rest) = arguments.split_first().expect("a program");
        let mut all = vec![
            folder.as_str(),
            program,
            "--driverloaded",
            "n",
            "--config",
            &settings,
        ];
        all.extend(rest);
        run("env", &all, "")
    }

    /// One column of `pvs` or `lvs --segments`, by the first column.
    fn column(&self, report: &[&str], columns: &str) -> Vec<Vec<String>> {
        let fixed = [
            "--noheadings",
            "--units",
            "b",
            "--nosuffix",
            "--separator",
            "|",
            "-o",
            columns,
        ];
        let text = self.lvm(&[report, &fixed].concat());
        text.lines()
            .map(|line| line.trim().split('|').map(str::to_owned).collect())
            .collect()
    }

    /// The image's name for a device that LVM names.
    fn image(&self, device: &str) -> &'static str {
        let at = self
            .loops
            .iter()
            .position(|one| one == device)
            .expect("one of ours");
        PVS[at]
    }

    fn stack(&self) -> Stack {
        self.images.stack(&PVS)
    }
}

/// `/dev/loop0(5)`.
fn place(device: &str) -> (&str, u64) {
    let (device, extent) = device.split_once('(').expect("a device and an extent");
    (
        device,
        extent.trim_end_matches(')').parse().expect("an extent"),
    )
}

#[test]
fn volumes_are_at_the_offsets_of_lvs() {
    require!(Loop, Tool("pvcreate"), Tool("lvs"));
    let host = LvmHost::new();
    assert_eq!(
        node(&host.stack(), "three.img")
            .number(keys::PE_START)
            .map(|bytes| bytes.0),
        Some(MIB + 3584)
    );
    host.make_group();
    let make = |options: &[&str]| {
        let fixed = ["lvcreate", "-an", "-Zn", "-Wn"];
        host.lvm(&[&fixed, options, &["plumb_vg"]].concat());
    };
    make(&["-l", "5", "-n", "one"]);
    make(&["-l", "6", "-i", "3", "-I", "64k", "-n", "striped"]);
    host.lvm(&["lvextend", "-l", "+4", "plumb_vg/one", &host.loops[2]]);
    let stack = host.stack();
    let rows = host.column(&["pvs"], "pv_name,pe_start,vg_extent_size");
    assert_eq!(rows.len(), 3);
    let mut starts = std::collections::HashMap::new();
    for row in rows {
        let number = |at: usize| row[at].parse::<u64>().expect("bytes");
        let pv = node(&stack, host.image(&row[0]));
        assert_eq!(
            (
                pv.number(keys::PE_START).map(|bytes| bytes.0),
                pv.number(keys::PE_SIZE).map(|bytes| bytes.0)
            ),
            (Some(number(1)), Some(number(2)))
        );
        assert_eq!(
            grid(pv, CellKind::VolumeExtent).grid.offset().0,
            number(1) % number(2)
        );
        starts.insert(row[0].clone(), number(1));
    }
    let mut found = 0;
    let columns = "lv_name,seg_start,seg_size,stripe_size,devices";
    for row in host.column(&["lvs", "--segments"], columns) {
        let expected: Vec<(&str, Bytes)> = row[4]
            .split(',')
            .map(|device| {
                let (device, extent) = place(device);
                (host.image(device), Bytes(starts[device] + extent * MIB))
            })
            .collect();
        let volume = node(&stack, &format!("plumb_vg/{}", row[0]));
        let lies: Vec<(&str, Bytes)> = match &volume.placing {
            Placing::Chunks(chunks) => {
                assert_eq!(chunks.chunk.0.to_string(), row[3]);
                chunks
                    .members
                    .iter()
                    .map(|one| (stack.node(one.node).name.as_str(), one.start))
                    .collect()
            }
            Placing::Parts { parts } => {
                let is_this = |part: &&plumb_stack::Part| part.upper.0.to_string() == row[1];
                let part = parts.iter().find(is_this).expect("a run that begins there");
                assert_eq!(
                    part.len.map(|len| len.0.to_string()).as_ref(),
                    Some(&row[2])
                );
                vec![(stack.node(part.node).name.as_str(), part.start)]
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(lies, expected, "{row:?}");
        found += 1;
    }
    assert_eq!((found, problems(&stack)), (3, vec![]));
    assert_eq!(node(&stack, "plumb_vg/striped").kind, Kind::Stripe);
    // Data on the third device are off by its start.
    let one = stack.find("plumb_vg/one").expect("it");
    let shifts: Vec<i128> = stack
        .landings(one)
        .all
        .iter()
        .skip(1)
        .map(|landing| landing.shift.rem_euclid(4096))
        .collect();
    assert_eq!(shifts, [0, 3584]);
}

/// The metadata are written round and round their area: after many changes the text passes its end.
#[test]
fn a_text_that_goes_round_is_read() {
    require!(Loop, Tool("pvcreate"), Tool("vgs"));
    let host = LvmHost::new();
    host.make_group();
    host.lvm(&[
        "lvcreate", "-an", "-Zn", "-Wn", "-l", "5", "-n", "one", "plumb_vg",
    ]);
    let mut rounds_split = 0;
    for round in 0..10 {
        // Tags make the text long.
        let tags: Vec<String> = (0..1200)
            .map(|at| format!("tag-{round}-{at}-{}", "x".repeat(100)))
            .collect();
        for option in ["--addtag", "--deltag"] {
            let mut arguments = vec!["vgchange", "-q"];
            arguments.extend(tags.iter().flat_map(|tag| [option, tag.as_str()]));
            arguments.push("plumb_vg");
            host.lvm(&arguments);
            let stack = host.stack();
            assert_eq!(
                (run_of(&stack, "plumb_vg/one").1, problems(&stack)),
                (MIB, vec![]),
                "round {round}"
            );
            rounds_split += u32::from(is_split(
                &std::fs::read(host.images.path("one.img")).expect("an image"),
            ));
        }
    }
    assert!(rounds_split > 0, "no text passed the end");
}

/// Whether the text of the first area, which begins at 4 KiB, goes over its end: length, then place and length of it.
fn is_split(image: &[u8]) -> bool {
    let number =
        |at: usize| u64::from_le_bytes(image[4096 + at..][..8].try_into().expect("eight bytes"));
    number(40) + number(48) > number(32)
}

/// A physical volume that was away while the group changed has an older text.
#[test]
fn the_newest_text_counts() {
    require!(Loop, Tool("pvcreate"));
    let host = LvmHost::new();
    host.make_group();
    let before = std::fs::read(host.images.path("one.img")).expect("an image");
    host.lvm(&[
        "lvcreate", "-an", "-Zn", "-Wn", "-l", "5", "-n", "one", "plumb_vg",
    ]);
    host.images.write("one.img", 0, &before[..MIB as usize]);
    for order in [["one.img", "two.img"], ["two.img", "one.img"]] {
        let stack = host.images.stack(&order);
        assert_eq!(
            run_of(&stack, "plumb_vg/one"),
            ("one.img".to_owned(), MIB, Some(5 * MIB))
        );
    }
}

#[test]
fn a_volume_that_was_not_seen_is_missing_and_no_end() {
    require!(Loop, Tool("pvcreate"));
    let host = LvmHost::new();
    host.make_group();
    host.lvm(&[
        "lvcreate", "-an", "-Zn", "-Wn", "-l", "6", "-i", "3", "-I", "64k", "-n", "striped",
        "plumb_vg",
    ]);
    let stack = host.images.stack(&PVS[..2]);
    let Placing::Chunks(chunks) = &node(&stack, "plumb_vg/striped").placing else {
        panic!("no stripe")
    };
    let names = chunks
        .members
        .iter()
        .map(|member| stack.node(member.node).name.as_str());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["one.img", "two.img", "plumb_vg:missing-pv2"]
    );
    // A byte of the text is another: its checksum no longer fits.
    let bytes = std::fs::read(host.images.path("one.img")).expect("an image");
    let at = bytes[..MIB as usize]
        .windows(12)
        .rposition(|text| text == b"extent_count")
        .expect("a text");
    host.images.write("one.img", at as u64, b"E");
    let stack = host.images.stack(&PVS[..1]);
    assert_eq!(problems(&stack), [ProblemId::BrokenSuperblock]);
}

/// Kinds that only a kernel with the device mapper makes, as LVM itself accepts them from a backup.
#[test]
fn raid_and_thin_volumes_have_hidden_volumes_below() {
    require!(Loop, Tool("pvcreate"), Tool("vgcfgrestore"));
    let host = LvmHost::new();
    host.make_group();
    host.lvm(&[
        "lvcreate", "-an", "-Zn", "-Wn", "-l", "1", "-n", "one", "plumb_vg",
    ]);
    let file = host
        .images
        .path("backup")
        .to_str()
        .expect("a path of text")
        .to_owned();
    host.lvm(&["vgcfgbackup", "-q", "-f", &file, "plumb_vg"]);
    let text = std::fs::read_to_string(&file).expect("a backup");
    let (before, after) = text.split_once("logical_volumes {").expect("volumes");
    std::fs::write(
        &file,
        format!("{before}logical_volumes {{\n{}{after}", more_volumes()),
    )
    .expect("a backup");
    host.lvm(&["vgcfgrestore", "-q", "--force", "-f", &file, "plumb_vg"]);
    // LVM reads them correctly.
    let mut kinds = host.column(&["lvs"], "lv_name,segtype,stripe_size,chunk_size");
    kinds.sort();
    let expected = [
        "one|linear|0|0",
        "pool|thin-pool|0|131072",
        "raid|raid5|65536|0",
        "thin|thin|0|0",
    ];
    assert_eq!(
        kinds.iter().map(|row| row.join("|")).collect::<Vec<_>>(),
        expected
    );
    let stack = host.stack();
    let Placing::Chunks(raid) = &node(&stack, "plumb_vg/raid").placing else {
        panic!("no chunks")
    };
    let names: Vec<&str> = raid
        .members
        .iter()
        .map(|member| stack.node(member.node).name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "plumb_vg/raid_rimage_0",
            "plumb_vg/raid_rimage_1",
            "plumb_vg/raid_rimage_2"
        ]
    );
    assert_eq!(
        (raid.chunk.0, raid.parity, raid.stripe_bytes()),
        (64 * KIB, 1, Some(Bytes(128 * KIB)))
    );
    // In the kernel's words: raid5_ls.
    assert_eq!(
        raid.layout,
        Some(plumb_geometry::ParityLayout::LeftSymmetric)
    );
    assert_eq!(
        run_of(&stack, names[1]),
        ("two.img".to_owned(), MIB + 11 * MIB, Some(2 * MIB))
    );
    let Placing::Blocks { block, member } = node(&stack, "plumb_vg/thin").placing else {
        panic!("no blocks")
    };
    assert_eq!(
        (block, stack.node(member.node).name.as_str()),
        (Bytes(128 * KIB), "plumb_vg/pool")
    );
    assert_eq!(run_of(&stack, "plumb_vg/pool").0, "plumb_vg/pool_tdata");
    assert_eq!(
        grid(node(&stack, "plumb_vg/pool"), CellKind::Cluster).granularity(),
        Bytes(128 * KIB)
    );
    assert_eq!(problems(&stack), [] as [ProblemId; 0]);
}

/// Texts of volumes as LVM writes them.
fn more_volumes() -> String {
    let mut text = String::new();
    let mut number = 0;
    let mut add = |name: &str, is_visible: bool, segment: &str| {
        number += 1;
        let visible = if is_visible { ", \"VISIBLE\"" } else { "" };
        text += &format!(
            "{name} {{\nid = \"aaaaaa-bbbb-cccc-dddd-eeee-ffff-00{number:04}\"\nstatus = [\"READ\", \"WRITE\"{visible}]\n\
             flags = []\nsegment_count = 1\nsegment1 {{\nstart_extent = 0\n{segment}\n}}\n}}\n"
        );
    };
    let linear = |count: u32, pv: &str, extent: u32| {
        format!(
            "extent_count = {count}\ntype = \"striped\"\nstripe_count = 1\nstripes = [\"{pv}\", {extent}]"
        )
    };
    let raids: Vec<String> = (0..3)
        .map(|at| format!("\"raid_rmeta_{at}\", \"raid_rimage_{at}\""))
        .collect();
    let raid = format!(
        "extent_count = 4\ntype = \"raid5\"\ndevice_count = 3\nstripe_size = 128\nregion_size = 1024\nraids = [{}]",
        raids.join(", ")
    );
    add("raid", true, &raid);
    for at in 0..3 {
        let pv = format!("pv{at}");
        add(&format!("raid_rmeta_{at}"), false, &linear(1, &pv, 10));
        add(&format!("raid_rimage_{at}"), false, &linear(2, &pv, 11));
    }
    add(
        "pool",
        true,
        "extent_count = 6\ntype = \"thin-pool\"\nmetadata = \"pool_tmeta\"\npool = \"pool_tdata\"\n\
        transaction_id = 1\nchunk_size = 256\ndiscards = \"passdown\"\nzero_new_blocks = 1",
    );
    add("pool_tmeta", false, &linear(2, "pv0", 20));
    add("pool_tdata", false, &linear(6, "pv1", 20));
    add(
        "thin",
        true,
        "extent_count = 20\ntype = \"thin\"\nthin_pool = \"pool\"\ntransaction_id = 0\ndevice_id = 1",
    );
    text
}

/// The header of the metadata has a checksum of its own, at its first byte.
#[test]
fn a_metadata_header_is_believed_only_with_its_checksum() {
    require!(Root, Loop, Tool("pvcreate"), Tool("vgcreate"));
    let host = LvmHost::new();
    host.make_group();
    assert_eq!(problems(&host.stack()), [] as [ProblemId; 0]);
    // Behind the first of its places for a text.
    let at = 4096 + 30;
    let byte = host.images.byte(PVS[0], at);
    host.images.write(PVS[0], at, &[!byte]);
    let stack = host.stack();
    assert_eq!(problems(&stack), [ProblemId::BrokenSuperblock]);
    insta::assert_snapshot!(stack.problems()[0].text);
}
