//! Dumps of real Solaris hosts against counts that others made, and the examples of documents.

use std::collections::BTreeMap;
use std::fs;

use plumb_geometry::Bytes;
use plumb_stack::Obstacle;
use plumb_stack::ProblemId;
use plumb_stack::dump::{self, DumpError, Input};
use plumb_stack::node::keys;
use plumb_stack::node_facts::MirrorReads;
use plumb_stack::{Builder, Kind, Node, NodeId, Placing, Stack, Verdict};
use plumb_testkit::require;
use plumb_testkit::soft_partitions::LISTING;
use serde_json::Value;

/// Bytes of a block in which Solaris counts.
const BLOCK: i128 = 512;

/// A file of the folder of real traces. Only after `require!(RealTraces)`.
fn real(name: &str) -> (String, String) {
    let folder = plumb_testkit::real_traces().expect("checked by the test");
    (
        name.to_owned(),
        fs::read_to_string(folder.join(name)).expect("a dump"),
    )
}

fn read(builder: &mut Builder, (name, text): &(String, String)) -> &'static str {
    let read = dump::read(&Input { name, text }, builder).expect("reads");
    assert_eq!(read.taken.passed_over, 0, "{name}");
    read.tool
}

fn stack_of(dumps: &[(String, String)]) -> Stack {
    let mut builder = Builder::default();
    for dump in dumps {
        read(&mut builder, dump);
    }
    dump::join(&mut builder);
    builder.finish()
}

fn text(text: &str) -> (String, String) {
    ("text".to_owned(), text.to_owned())
}

fn named<'a>(stack: &'a Stack, name: &str) -> (NodeId, &'a Node) {
    let id = stack.find(name).unwrap_or_else(|| panic!("no {name}"));
    (id, stack.node(id))
}

/// The exact position of byte 0 of a layer on another, if there is one.
fn shift(stack: &Stack, top: &str, on: &str) -> Option<i128> {
    let (top, on) = (named(stack, top).0, stack.find(on)?);
    let landings = stack.landings(top).all;
    let landing = landings
        .iter()
        .find(|landing| landing.on == on && landing.upper == Bytes(0))?;
    landing.period.is_none().then_some(landing.shift)
}

fn verdicts(stack: &Stack, top: &str) -> Vec<Verdict> {
    stack
        .standings(named(stack, top).0)
        .into_iter()
        .map(|one| one.verdict)
        .collect()
}

/// Everything of the host in `solaris-svm` but the label that is empty.
fn svm_host() -> Stack {
    let folder = plumb_testkit::real_traces()
        .expect("checked by the test")
        .join("solaris-svm");
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file"))
        .collect();
    names.retain(|file| file.metadata().expect("its length").len() > 0);
    names.sort_by_key(fs::DirEntry::file_name);
    assert_eq!(names.len(), 15);
    let dumps: Vec<_> = names
        .iter()
        .map(|file| {
            real(&format!(
                "solaris-svm/{}",
                file.file_name().to_string_lossy()
            ))
        })
        .collect();
    stack_of(&dumps)
}

fn expected() -> Value {
    let all: Value = serde_json::from_str(&real("EXPECTED.json").1).expect("JSON");
    all["solaris-svm"].clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Every slice of every label, number by number.
#[test]
fn slices_of_a_real_host() {
    require!(RealTraces);
    let (stack, expected) = (svm_host(), expected());
    let (mut slices, mut off) = (0, 0);
    for (device, label) in expected["disks"].as_object().expect("disks") {
        let disk = device
            .strip_suffix("s2")
            .expect("a label is asked for at slice 2");
        let (disk_id, node) = named(&stack, disk);
        assert_eq!(node.kind, Kind::Disk);
        assert_eq!(
            node.number(keys::CYLINDER_SECTORS),
            label["sectors_per_cyl"].as_u64()
        );
        assert_eq!(
            node.grids[0].granularity().0,
            number(&label["bytes_per_sector"])
        );
        let found = stack.above(disk_id).len();
        assert_eq!(
            found,
            label["slices"].as_object().expect("slices").len(),
            "{disk}"
        );
        for (index, slice) in label["slices"].as_object().expect("slices") {
            let name = format!("{disk}s{index}");
            let (_, node) = named(&stack, &name);
            let start = shift(&stack, &name, disk).expect("a start");
            let first = start / BLOCK;
            assert_eq!(first, i128::from(number(&slice["first"])), "{name}");
            assert_eq!(node.size, Some(Bytes(number(&slice["count"]) * 512)));
            assert_eq!(
                first + i128::from(number(&slice["count"])) - 1,
                i128::from(number(&slice["last"]))
            );
            let tag = slice["tag"].as_str().map(|tag| tag.parse().expect("a tag"));
            assert_eq!(node.number(keys::PARTITION_TAG), tag);
            assert_eq!(node.word(keys::PARTITION_FLAGS), slice["flag"].as_str());
            assert_eq!(node.number(keys::PARTITION_NUMBER), index.parse().ok());
            assert_eq!(first % 8, i128::from(number(&slice["first_mod_8"])));
            assert_eq!(first % 16, i128::from(number(&slice["first_mod_16"])));
            let past = number(&slice["first_byte_mod_4096"]);
            assert_eq!(start % 4096, i128::from(past));
            check_verdict(&verdicts(&stack, &name), past, &name);
            slices += 1;
            off += u64::from(past != 0);
        }
    }
    assert_eq!(slices, number(&expected["counts"]["slices_nonzero_count"]));
    assert_eq!(off, number(&expected["counts"]["slices_first_not_mod_8"]));
    assert_eq!((slices, off), (38, 22));
    assert_eq!(stack.problems(), []);
}

/// On 4 KiB that nobody stated is not *aligned*.
fn check_verdict(verdicts: &[Verdict], past: u64, name: &str) {
    match verdicts {
        [Verdict::Misaligned { by }] => assert_eq!(by.0, past, "{name}"),
        [Verdict::Unknown { .. }] => assert_eq!(past, 0, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
}

/// Every soft partition at its place in its slice and on its disk.
#[test]
fn soft_partitions_of_a_real_host() {
    require!(RealTraces);
    let (stack, expected) = (svm_host(), expected());
    let listed = expected["soft_partitions"].as_array().expect("a list");
    let mut off = 0;
    for one in listed {
        let (name, slice) = (
            one["name"].as_str().expect("a name"),
            one["component"].as_str().expect("a slice"),
        );
        let disk = slice.strip_suffix("s0").expect("slice 0");
        let (_, node) = named(&stack, name);
        assert_eq!(node.kind, Kind::SoftPartition);
        assert_eq!(node.size, Some(Bytes(number(&one["b"]) * 512)));
        let Placing::Parts { parts } = &node.placing else {
            panic!("{name}")
        };
        assert_eq!(parts.len() as u64, number(&one["extent"]) + 1);
        let in_slice = shift(&stack, name, slice).expect("a place") / BLOCK;
        assert_eq!(in_slice, i128::from(number(&one["o"])));
        assert_eq!(in_slice % 8, i128::from(number(&one["o_mod_8"])));
        assert_eq!(number(&one["b"]) % 8, number(&one["b_mod_8"]));
        let on_disk = shift(&stack, name, disk).expect("a place");
        assert_eq!(
            on_disk / BLOCK,
            i128::from(number(&one["abs_sector"])),
            "{name}"
        );
        assert_eq!(
            on_disk / BLOCK - in_slice,
            i128::from(number(&one["slice_first"]))
        );
        assert_eq!(on_disk / BLOCK % 8, i128::from(number(&one["abs_mod_8"])));
        let past = number(&one["abs_byte_mod_4096"]);
        assert_eq!(on_disk % 4096, i128::from(past));
        check_verdict(&verdicts(&stack, name), past, name);
        off += u64::from(past != 0);
    }
    let all = stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::SoftPartition)
        .count();
    assert_eq!((all, listed.len(), off), (40, 40, 38));
    for (key, count) in [
        ("soft_partition_extents", 40),
        ("o_not_mod_8", 40),
        ("abs_known", 40),
        ("abs_not_mod_8", 38),
    ] {
        assert_eq!(number(&expected["counts"][key]), count, "{key}");
    }
}

/// Layers above the soft partitions have their positions; a disk without a label is unknown.
#[test]
fn mirrors_of_a_real_host() {
    require!(RealTraces);
    let stack = svm_host();
    let (_, d120) = named(&stack, "d120");
    assert_eq!(d120.kind, Kind::Mirror);
    assert_eq!(
        d120.value(keys::READ_POLICY).map(|word| word.text()),
        Some("geometric")
    );
    assert_eq!(d120.number(keys::RESYNC_PASS), Some(1));
    assert_eq!(
        shift(&stack, "d120", "c3t11d0"),
        Some((5778 + 15_728_643) * BLOCK)
    );
    assert_eq!(
        shift(&stack, "d120", "c4t11d0"),
        Some((5778 + 15_728_643) * BLOCK)
    );
    // The first component of a volume holds the label itself: the root file system is where its slice is.
    assert_eq!(shift(&stack, "d10", "c1t0d0"), Some(0));
    let mirrors = stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::Mirror)
        .count();
    assert_eq!(mirrors, 25);
    let volumes = stack
        .nodes()
        .filter(|(_, node)| node.value(keys::MANAGER).map(|word| word.text()) == Some("svm"))
        .count();
    assert_eq!(volumes, 25 + 50 + 40);
    assert_eq!(
        stack
            .host()
            .and_then(|host| host.value(keys::SYSTEM).map(|word| word.text())),
        Some("solaris")
    );
}

#[test]
fn an_empty_file_is_an_error_and_nothing_else_is_lost() {
    let mut builder = Builder::default();
    read(&mut builder, &text("d1 1 1 c0t0d0s3\n"));
    let empty = dump::read(
        &Input {
            name: "c0t0d0s2.txt",
            text: "",
        },
        &mut builder,
    );
    let file = "c0t0d0s2.txt".to_owned();
    assert_eq!(empty, Err(DumpError::Empty { file }));
    dump::join(&mut builder);
    let stack = builder.finish();
    let lost = stack.landings(named(&stack, "d1").0).lost;
    assert_eq!(lost.len(), 1);
    let disk = "c0t0d0".to_owned();
    assert_eq!(lost[0].1, Obstacle::NoLabel { disk });
    assert_eq!(stack.tops(), [named(&stack, "d1").0]);
}

/// Kind, placing by name, grids and facts of each node: a stack without numbers of nodes and sources.
fn outline(stack: &Stack) -> BTreeMap<String, String> {
    let name = |id: &NodeId| stack.node(*id).name.clone();
    let describe = |node: &Node| {
        let places = match &node.placing {
            Placing::Parts { parts } => parts
                .iter()
                .map(|part| {
                    format!(
                        "{:?} {} {:?} {:?}",
                        part.upper,
                        name(&part.node),
                        part.start,
                        part.len
                    )
                })
                .collect(),
            Placing::Unknown { members, why } => members
                .iter()
                .map(name)
                .chain([format!("{why:?}")])
                .collect::<Vec<String>>(),
            other => other.below().iter().map(name).collect(),
        };
        let facts = serde_json::to_value(&node.facts).expect("JSON");
        let facts: Vec<String> = facts
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, fact)| format!("{key} {}", fact["value"]))
            .collect();
        format!(
            "{:?} {places:?} {:?} {facts:?}",
            node.kind,
            node.grids.len()
        )
    };
    stack
        .nodes()
        .map(|(_, node)| (node.name.clone(), describe(node)))
        .collect()
}

/// `metastat` and `metastat -p` of one host have the same facts, except that only the first has lengths and the disks
/// that move with their data.
#[test]
fn both_forms_of_metastat_give_one_stack() {
    require!(RealTraces);
    let [short, full] =
        ["p", "full"].map(|form| real(&format!("solaris-prints/metastat_pora5ds_{form}.txt")));
    assert_eq!(read(&mut Builder::default(), &short), "metastat -p");
    assert_eq!(read(&mut Builder::default(), &full), "metastat");
    let (from_short, from_full) = (
        stack_of(std::slice::from_ref(&short)),
        stack_of(std::slice::from_ref(&full)),
    );
    assert_eq!(outline(&from_short), outline(&from_full));
    assert_eq!(outline(&from_full).len(), 5 + 5 + 5);
    for (name, blocks) in [
        ("d61", 209_715_200),
        ("d59", 100_663_296),
        ("d52", 134_217_728 + 41_943_040),
        ("d51", 20_971_520),
    ] {
        let name = format!("pora5ds/{name}");
        for stack in [&from_short, &from_full] {
            assert_eq!(
                named(stack, &name).1.size,
                Some(Bytes(blocks * 512)),
                "{name}"
            );
        }
    }
    assert_eq!(
        named(&from_full, "pora5ds/d50").1.size,
        Some(Bytes(574_636_032 * 512))
    );
    for both in [[short.clone(), full.clone()], [full, short]] {
        let stack = stack_of(&both);
        assert_eq!(outline(&stack), outline(&from_full));
        assert_eq!(stack.problems(), []);
    }
}

/// Without labels the second row's begin is not known; with them it is.
#[test]
fn rows_begin_where_those_before_end() {
    require!(RealTraces);
    let short = real("solaris-prints/metastat_pora5ds_p.txt");
    let stack = stack_of(std::slice::from_ref(&short));
    let lost = stack.landings(named(&stack, "pora5ds/d61").0).lost;
    let row = Some("c2t5005076300CB0B15d0s0".to_owned());
    assert_eq!(lost[0].1, Obstacle::RowLength { row });
    let mut dumps = vec![short];
    for disk in 0..5 {
        let label = "0 4 00 16384 114927206 114943589\n".to_owned();
        dumps.push((format!("c2t5005076300CB0B15d{disk}"), label));
    }
    let stack = stack_of(&dumps);
    // Extents of 255852672 begin in row 2, 25998260 blocks behind its begin: 255852672 − 2 · 114927206.
    let disk = "c2t5005076300CB0B15d2";
    assert_eq!(
        shift(&stack, "pora5ds/d61", disk),
        Some((255_852_672 - 2 * 114_927_206 + 16_384) * BLOCK)
    );
    assert_eq!(
        shift(&stack, "pora5ds/d51", "c2t5005076300CB0B15d0"),
        Some((32 + 16_384) * BLOCK)
    );
}

/// The same label as two tools print it.
#[test]
fn an_efi_label_of_format_and_of_prtvtoc() {
    require!(RealTraces);
    let [format, prtvtoc] = ["format_print_efi", "prtvtoc_efi_c2t0d0p0"]
        .map(|name| real(&format!("solaris-prints/{name}.txt")));
    let prtvtoc = stack_of(&[prtvtoc]);
    let (_, disk) = named(&prtvtoc, "c2t0d0");
    assert_eq!(
        (disk.size, disk.value(keys::LABEL).map(|word| word.text())),
        (Some(Bytes(2_925_506_559 * 512)), Some("efi"))
    );
    let format = stack_of(&[(String::from("c2t0d0"), format.1)]);
    for slice in ["s0", "s1", "s6", "s8"] {
        let name = format!("c2t0d0{slice}");
        let ((_, a), (_, b)) = (named(&prtvtoc, &name), named(&format, &name));
        assert_eq!(
            (a.size, shift(&prtvtoc, &name, "c2t0d0")),
            (b.size, shift(&format, &name, "c2t0d0")),
            "{name}"
        );
        assert_eq!(a.number(keys::PARTITION_TAG), b.number(keys::PARTITION_TAG));
        assert_eq!(a.word(keys::PARTITION_FLAGS), b.word(keys::PARTITION_FLAGS));
    }
    assert_eq!(stack_len(&format), stack_len(&prtvtoc));
    assert_eq!(
        named(&prtvtoc, "c2t0d0s6").1.word(keys::MOUNT),
        Some("/jbod1")
    );
    // The label's 34 sectors are 17 KiB.
    assert_eq!(
        verdicts(&prtvtoc, "c2t0d0s0"),
        [Verdict::Misaligned { by: Bytes(1024) }]
    );
}

fn stack_len(stack: &Stack) -> usize {
    stack.nodes().count()
}

#[test]
fn a_vtoc_of_format() {
    require!(RealTraces);
    let sun = stack_of(&[real("solaris-prints/format_print_smi_sun146g.txt")]);
    // 286698624 blocks in 14087 cylinders, as the drive's name has it: 24 heads with 848 sectors.
    let (_, disk) = named(&sun, "format_print_smi_sun146g");
    assert_eq!(disk.number(keys::CYLINDER_SECTORS), Some(24 * 848));
    assert_eq!(
        shift(
            &sun,
            "format_print_smi_sun146gs0",
            "format_print_smi_sun146g"
        ),
        Some(0)
    );
    assert_eq!(sun.notes().len(), 1, "{:?}", sun.notes());
    let x86 = stack_of(&[(
        String::from("c0d0"),
        real("solaris-prints/format_print_smi_x86_13051.txt").1,
    )]);
    let parent = "c0d0 Solaris partition";
    assert_eq!(shift(&x86, "c0d0s9", parent), Some(16_065 * BLOCK));
    assert_eq!(named(&x86, "c0d0s9").1.size, Some(Bytes(32_130 * 512)));
    assert_eq!(shift(&x86, "c0d0s9", "c0d0"), None);
}

#[test]
fn a_paper_s_soft_partitions_follow_each_other() {
    let mut listing = String::from("# metastat -p |egrep 'd2'\n  d2 1 1 c5t1d0s0\n");
    for (name, start, len) in LISTING {
        listing.push_str(&format!("  {name} -p d2 -o {start} -b {len}\n"));
    }
    let stack = stack_of(&[text(&listing)]);
    let extents: Vec<(u64, u64)> = LISTING
        .iter()
        .rev()
        .map(|(name, ..)| match &named(&stack, name).1.placing {
            Placing::Parts { parts } => (
                parts[0].start.0 / 512,
                parts[0].len.expect("a length").0 / 512,
            ),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(extents.len(), 17);
    assert_eq!(extents[0].0, 1);
    for pair in extents.windows(2) {
        let [(start, len), (next, _)] = *pair else {
            unreachable!()
        };
        assert_eq!(next, start + len + 1, "behind {start}");
    }
}

/// The paper's stripe: 256 KiB over two slices, soft partitions at 512 and at 512 + 2097152 + 512.
#[test]
fn a_paper_s_commands() {
    let stack = stack_of(&[text(
        "# metainit d10 1 2 c3t1d0s7 c5t1d0s7 -i 256k\n# metainit d11 -p d10 -o 512 -b 2097152\n\n\
         # metainit d12 -p d10 -o 2098176 -b 2097152\n",
    )]);
    let Placing::Chunks(chunks) = &named(&stack, "d10").1.placing else {
        panic!("no stripe")
    };
    assert_eq!((chunks.chunk, chunks.members.len()), (Bytes(256 << 10), 2));
    assert_eq!(named(&stack, "d10").1.kind, Kind::Stripe);
    assert_eq!(shift(&stack, "d11", "d10"), Some(512 * BLOCK));
    assert_eq!(
        shift(&stack, "d12", "d10"),
        Some((512 + 2_097_152 + 512) * BLOCK)
    );
    assert_eq!(named(&stack, "d12").1.size, Some(Bytes(1 << 30)));
    for name in ["d11", "d12"] {
        assert_eq!(
            shift(&stack, name, "d10").map(|shift| shift % (256 << 10)),
            Some(0),
            "{name}"
        );
    }
}

/// As the paper does it first: the command chooses the place, and only `-A` says anything of it.
#[test]
fn places_that_metainit_chooses() {
    let stack = stack_of(&[text(
        "metainit d10 1 2 c3t1d0s7 c5t1d0s7 -i 256k\nmetainit d11 -p d10 1024m\nmetainit d12 -p d10 -A 256k 1g\n",
    )]);
    assert_eq!(named(&stack, "d11").1.size, Some(Bytes(1 << 30)));
    let volume = "d11".to_owned();
    assert_eq!(
        stack.landings(named(&stack, "d11").0).lost[0].1,
        Obstacle::ChosenByMetainit { volume }
    );
    let (d12, d10) = (named(&stack, "d12").0, named(&stack, "d10").0);
    let landing = stack
        .landings(d12)
        .all
        .into_iter()
        .find(|one| one.on == d10)
        .expect("it");
    assert_eq!((landing.shift, landing.period), (0, Some(Bytes(256 << 10))));
}

/// A hand-written md.tab may leave the interlace out; then it depends on the release.
#[test]
fn an_interlace_that_is_not_given() {
    let stack = stack_of(&[text("d10 1 2 c3t1d0s7 c5t1d0s7\n")]);
    let (d10, node) = named(&stack, "d10");
    let doubted: Vec<u64> = node
        .grids
        .iter()
        .filter(|fact| !fact.is_believed())
        .map(|fact| fact.granularity().0)
        .collect();
    assert_eq!(doubted, [16 << 10, 512 << 10]);
    let no_interlace = Obstacle::NoInterlace {
        old_bytes: Bytes(16 << 10),
        new_bytes: Bytes(512 << 10),
    };
    assert_eq!(stack.landings(d10).lost[0].1, no_interlace);
    assert!(
        stack
            .notes()
            .iter()
            .any(|note| note.starts_with("d10: no interlace")),
        "{:?}",
        stack.notes()
    );
    // metastat -p of the same volume settles it, in either order.
    let settled = "d10 1 2 c3t1d0s7 c5t1d0s7 -i 1024b\n";
    for both in [
        ["d10 1 2 c3t1d0s7 c5t1d0s7\n", settled],
        [settled, "d10 1 2 c3t1d0s7 c5t1d0s7\n"],
    ] {
        let stack = stack_of(&both.map(text));
        let Placing::Chunks(chunks) = &named(&stack, "d10").1.placing else {
            panic!("no stripe")
        };
        assert_eq!(chunks.chunk, Bytes(512 << 10));
        assert_eq!((stack.problems(), stack.notes()), (&[][..], &[][..]));
    }
}

/// The DiskSuite guide's example: 32 blocks of interlace, and data from block 330 on of each column. Computed from
/// metastat -p it is the same: 10 slots of a chunk and a block.
#[test]
fn columns_of_raid_5_begin_behind_the_pre_write_area() {
    let full = "d10: RAID\n    State: Okay        \n    Interlace: 32 blocks\n    Size: 10080 blocks\nOriginal device:\n\
        \x20   Size: 10496 blocks\n        Device              Start Block  Dbase State        Hot Spare\n\
        \x20       c0t0d0s1                 330     No    Okay        \n\
        \x20       c1t2d0s1                 330     No    Okay        \n\
        \x20       c2t3d0s1                 330     No    Okay \n";
    let short = "d10 -r /dev/dsk/c0t0d0s1 /dev/dsk/c1t2d0s1 /dev/dsk/c2t3d0s1 -k -i 32b\n";
    let starts = |stack: &Stack| match &named(stack, "d10").1.placing {
        Placing::Chunks(chunks) => {
            assert_eq!((chunks.chunk, chunks.parity), (Bytes(16 << 10), 1));
            chunks
                .members
                .iter()
                .map(|member| member.start.0 / 512)
                .collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let printed = stack_of(&[text(full)]);
    assert_eq!(starts(&printed), [330; 3]);
    assert_eq!(named(&printed, "d10").1.size, Some(Bytes(10_080 * 512)));
    assert_eq!(printed.notes(), &[] as &[String]);
    let computed = stack_of(&[text(short)]);
    assert_eq!(starts(&computed), [330; 3]);
    assert!(
        computed.notes()[0].contains("pre-write area"),
        "{:?}",
        computed.notes()
    );
    assert_eq!(
        named(&computed, "d10")
            .1
            .number(keys::PREWRITE)
            .map(|bytes| bytes.0),
        Some(330 * 512)
    );
    for both in [[full, short], [short, full]] {
        let stack = stack_of(&both.map(text));
        assert_eq!(
            (starts(&stack), stack.problems().len(), stack.notes().len()),
            (vec![330; 3], 0, 0)
        );
    }
    // A component that was attached later is no column of the stripe.
    let attached = format!(
        "{}        Concatenated Devices:\n            Size: 5248 blocks\n        c3t0d0s1 330 No Okay\n",
        full
    );
    let mut notes = Vec::new();
    for more in [
        attached.as_str(),
        "d10 -r c0t0d0s1 c1t2d0s1 c2t3d0s1 c3t0d0s1 -k -i 32b -o 3\n",
    ] {
        let stack = stack_of(&[text(more)]);
        assert_eq!(starts(&stack), [330; 3]);
        notes.extend_from_slice(stack.notes());
    }
    insta::assert_snapshot!(notes.join("\n\n"));
    // Twelve slots, and a column that holds the disk's label: it begins a cylinder later.
    let label = "* /dev/rdsk/c0t0d0s2 partition map\n* 512 bytes/sector\n* 2889 sectors/cylinder\n1 0 00 0 28890 28889\n";
    let twelve = "d10 -r c0t0d0s1 c1t2d0s1 c2t3d0s1 -k -i 32b -w 12\n";
    assert_eq!(
        starts(&stack_of(&[text(label), text(twelve)])),
        [2889 + 396, 396, 396]
    );
}

/// Only the very first component of a volume may hold the label in its data; replicas shift any.
#[test]
fn labels_and_replicas_shift_the_data_of_components() {
    let label = |disk: &str| {
        text(&format!(
            "* /dev/rdsk/{disk}s2 partition map\n* 512 bytes/sector\n* 2889 sectors/cylinder\n\
             0 4 00 0 288900 288899\n7 0 00 288900 28890 317789\n"
        ))
    };
    let replicas = text(
        "flags first blk block count\n a u 16 8192 /dev/dsk/c1t0d0s7\n a u 8208 8192 /dev/dsk/c1t0d0s7\n",
    );
    let volumes =
        text("d1 1 2 c1t0d0s0 c2t0d0s0 -i 32b\nd2 1 1 c1t0d0s7\nd3 2 1 c3t0d0s0 1 c4t0d0s0\n");
    let labels = ["c1t0d0", "c2t0d0", "c3t0d0", "c4t0d0"].map(label);
    let stack = stack_of(&[&labels[..], &[replicas, volumes]].concat());
    let Placing::Chunks(chunks) = &named(&stack, "d1").1.placing else {
        panic!("no stripe")
    };
    let starts: Vec<u64> = chunks
        .members
        .iter()
        .map(|member| member.start.0 / 512)
        .collect();
    assert_eq!(starts, [0, 2889]);
    // 16400 blocks of replicas end in the sixth cylinder.
    assert_eq!(shift(&stack, "d2", "c1t0d0s7"), Some(6 * 2889 * BLOCK));
    let Placing::Parts { parts } = &named(&stack, "d3").1.placing else {
        panic!("no concatenation")
    };
    let parts: Vec<_> = parts
        .iter()
        .map(|part| (part.upper.0 / 512, part.start.0 / 512))
        .collect();
    assert_eq!(parts, [(0, 0), (288_900, 2889)]);
}

/// Rows of several components are layers of their own, as long as whole chunks of the shortest component.
#[test]
fn stripes_one_behind_the_other() {
    let label = "* /dev/rdsk/c1t0d0s2 partition map\n* 512 bytes/sector\n* 100 sectors/cylinder\n\
                 0 4 00 1000 1000 1999\n1 4 00 2000 1010 3009\n3 4 00 4000 1000 4999\n";
    let volumes = "d1 2 2 c1t0d0s0 c1t0d0s1 -i 32b \\\n\t1 c1t0d0s3 -h hsp001\n";
    let stack = stack_of(&[text(label), text(volumes)]);
    let Placing::Parts { parts } = &named(&stack, "d1").1.placing else {
        panic!("no concatenation")
    };
    // 31 chunks of 32 blocks fit into 1000, on either.
    let parts: Vec<_> = parts
        .iter()
        .map(|part| (part.upper.0 / 512, stack.node(part.node).name.as_str()))
        .collect();
    assert_eq!(parts, [(0, "d1 row 0"), (2 * 31 * 32, "c1t0d0s3")]);
    assert_eq!(named(&stack, "d1 row 0").1.kind, Kind::Stripe);
}

/// Mirrors and stripes in full, after examples of the administration guide.
#[test]
fn metastat_in_full() {
    let full = "d0: Mirror\n    Submirror 0: d1\n      State: Okay        \n    Submirror 1: d2\n      State: Resyncing   \n\
        \x20   Resync in progress: 41 % done\n    Pass: 3\n    Read option: first (-r)\n    Write option: serial (-S)\n\
        \x20   Size: 5600 blocks (2.7 MB)\n\nd1: Submirror of d0\n    State: Okay        \n    Size: 5600 blocks (2.7 MB)\n\
        \x20   Stripe 0: (interlace: 32 blocks)\n\tDevice     Start Block  Dbase        State Reloc Hot Spare\n\
        \tc0t0d0s7          0     No            Okay   Yes c9t0d0s3\n\tc0t1d0s7       4096     Yes           Okay   Yes \n\n\n\
        d2: Submirror of d0\n    State: Resyncing   \n    Hot spare pool: hsp001\n    Size: 5600 blocks (2.7 MB)\n    Stripe 0:\n\
        \tDevice     Start Block  Dbase        State Reloc Hot Spare\n\tc0t2d0s7          0     No      Last Erred   Yes \n\n\
        hsp001: 1 hot spare\n        Device     Status      Length          Reloc\n        c9t0d0s3   In use      5600 blocks     Yes\n\n\
        Device Relocation Information:\nDevice   Reloc  Device ID\nc0t0d0   Yes    id1,sd@SIBM_E1\n";
    let stack = stack_of(&[text(full)]);
    let (_, d0) = named(&stack, "d0");
    assert_eq!((d0.kind, d0.size), (Kind::Mirror, Some(Bytes(5600 * 512))));
    assert_eq!(d0.value(keys::READ_POLICY), Some(&MirrorReads::First));
    assert_eq!(d0.word(keys::WRITE_POLICY), Some("serial"));
    assert_eq!(d0.number(keys::RESYNC_PASS), Some(3));
    let below: Vec<_> = d0
        .placing
        .below()
        .iter()
        .map(|id| stack.node(*id).name.as_str())
        .collect();
    assert_eq!(below, ["d1", "d2"]);
    let Placing::Chunks(chunks) = &named(&stack, "d1").1.placing else {
        panic!("no stripe")
    };
    let starts: Vec<u64> = chunks
        .members
        .iter()
        .map(|member| member.start.0 / 512)
        .collect();
    assert_eq!((starts, chunks.chunk), (vec![0, 4096], Bytes(16 << 10)));
    insta::assert_snapshot!(stack.notes().join("\n\n"));
    assert_eq!(
        named(&stack, "c0t0d0").1.word(keys::IDENTITY),
        Some("id1,sd@SIBM_E1")
    );
    assert!(stack.find("hsp001").is_none());
}

/// Real prints of iostat, the one with blanks and the one with commas.
#[test]
fn rates_of_devices() {
    require!(RealTraces);
    // One report each; reads and writes as awk adds them up.
    for (file, device, rate, writes) in [
        ("smartos_xzn_1.txt", "c0t0d0", 100.3_f64, 29.2_f64),
        ("smartos_xzn_2.txt", "c2d0", 225.2, 13.0),
        ("solaris_xr_csv.txt", "cmdk0", 0.3, 0.2),
        ("solaris_xM.txt", "sd1", 1484.1, 1474.2),
    ] {
        let mut builder = Builder::default();
        let (_, text) = real(&format!("iostat/{file}"));
        let read = dump::read(
            &Input {
                name: file,
                text: &text,
            },
            &mut builder,
        )
        .expect("reads");
        assert_eq!((read.tool, read.taken.passed_over), ("iostat", 0), "{file}");
        let stack = builder.finish();
        let found = |key| named(&stack, device).1.number(key);
        for (key, printed) in [
            (keys::IOS_PER_SECOND, rate),
            (keys::WRITES_PER_SECOND, writes),
        ] {
            let found: f64 = found(key).expect("a rate");
            assert!((found - printed).abs() < 1e-9, "{file}: {found}");
        }
    }
}

/// One load of 402 reads a second, seen on three layers.
#[test]
fn a_paper_s_rates() {
    let stack = stack_of(&[
        text("d26 -p d2 -o 10280614 -b 5132288\nd2 1 1 c5t1d0s0\n"),
        text(
            "device       r/s    w/s     kr/s   kw/s wait actv  svc_t  %w  %b\n md2        402.0    0.0  51458.7    0.0  0.0  0.9    2.3   0  93\n \
             md26       402.0    0.0  51460.5    0.0  0.0  0.9    2.3   0  93\n ssd3       402.0    0.0  51463.6    0.0  0.0  0.9    2.3   0  93\n",
        ),
    ]);
    for name in ["d2", "d26", "md26", "ssd3"] {
        assert_eq!(
            named(&stack, name).1.number(keys::IOS_PER_SECOND),
            Some(402.0),
            "{name}"
        );
    }
    assert_eq!(
        stack.above(named(&stack, "md2").0),
        [named(&stack, "d26").0]
    );
}

/// An extent has its header in the sector in front: d12 at 2,097,664 has it in the last sector of d11, and at 2,097,665
/// behind it. Each is reported once, with the earlier one that ends last.
#[test]
fn soft_partitions_over_each_other() {
    let problems = |volumes: &str| {
        let stack = stack_of(&[text(&format!("d10 1 1 c5t1d0s0\n{volumes}"))]);
        let problems = stack.problems().iter();
        let problems = problems.map(|one| {
            (
                one.id,
                one.node.map(|id| stack.node(id).name.clone()),
                one.text.clone(),
            )
        });
        problems.collect::<Vec<_>>()
    };
    let d11 = "d11 -p d10 -o 512 -b 2097152\n";
    assert_eq!(
        problems(&format!("{d11}d12 -p d10 -o 2097665 -b 100\n")),
        []
    );
    let found = problems(&format!("{d11}d12 -p d10 -o 2097664 -b 100\n"));
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].0, found[0].1.as_deref()),
        (ProblemId::OverlappingPartitions, Some("d12"))
    );
    let mut texts = vec![found[0].2.clone()];
    // d13 is within d11 and ends before it; d14 begins within d11 as well.
    let found = problems(&format!(
        "{d11}d13 -p d10 -o 600 -b 100\nd14 -p d10 -o 2000000 -b 200000\n"
    ));
    let names: Vec<Option<&str>> = found.iter().map(|one| one.1.as_deref()).collect();
    assert_eq!(names, [Some("d13"), Some("d14")]);
    texts.extend(found.into_iter().map(|one| one.2));
    // One volume over itself, in two extents.
    let found = problems("d11 -p d10 -o 512 -b 1000 -o 1000 -b 1000\n");
    assert_eq!(found.len(), 1);
    texts.push(found[0].2.clone());
    // One on the metadevice, one on the slice that it is made of.
    let over = "d11 -p d10 -o 512 -b 1000\nd12 -p c5t1d0s0 -o 1000 -b 1000\n";
    let found = problems(over);
    assert_eq!(found.len(), 1, "{found:?}");
    texts.push(found[0].2.clone());
    // Apart from d11, but not from d10, which has all of the slice.
    let found = problems("d11 -p d10 -o 512 -b 1000\nd12 -p c5t1d0s0 -o 1513 -b 1000\n");
    assert_eq!(found.len(), 1, "{found:?}");
    texts.push(found[0].2.clone());
    insta::assert_snapshot!(texts.join("\n\n"));
}

/// metainit gives a slice to one volume alone: others on it are of another day, or made over it.
#[test]
fn volumes_on_the_slice_of_another() {
    let overlapping = |volumes: &str| {
        let stack = stack_of(&[text(volumes)]);
        let names = stack
            .nodes()
            .filter(|(id, _)| stack.conflict(*id).is_some());
        let mut names: Vec<String> = names.map(|(_, node)| node.name.clone()).collect();
        names.sort();
        (stack.problems().len(), names.join(" "))
    };
    let found = |count: usize, names: &str| (count, names.to_owned());
    // Layers above each other do not overlap, nor do the sides of a mirror.
    let stacked =
        "d5 -m d6 d7 1\nd6 1 1 c1t0d0s0\nd7 1 1 c2t0d0s0\nd8 -p d5 -o 1 -b 100\nd9 1 1 d8\n";
    assert_eq!(overlapping(stacked), found(0, ""));
    assert_eq!(
        overlapping("d1 -p c1t0d0s0 -o 1 -b 100\nd5 -m d6 1\nd6 1 1 c1t0d0s0\n"),
        found(1, "d1 d6")
    );
    assert_eq!(
        overlapping("d6 1 1 c1t0d0s0\nd7 1 2 c1t0d0s0 c2t0d0s0 -i 32b\n"),
        found(1, "d6 d7")
    );
    assert_eq!(
        overlapping("d6 1 1 c1t0d0s0\nd7 1 1 c1t0d0s1\n"),
        found(0, "")
    );
}

/// Slices of one disk, and the one for all of it.
#[test]
fn slices_over_each_other() {
    let label = |second: u64| {
        let head = "* /dev/rdsk/c1t0d0s2 partition map\n*     512 bytes/sector\n*    2889 sectors/cylinder\n\
                    * Partition  Tag  Flags    Sector     Count    Sector  Mount Directory\n";
        let slice = |number: u64, tag: u64, first: u64, count: u64| {
            format!(
                "       {number}      {tag}    00  {first}  {count}  {}\n",
                first + count - 1
            )
        };
        [
            head.to_owned(),
            slice(0, 4, 2889, 28_890_000),
            slice(1, 4, second, 2889),
            slice(2, 5, 0, 71_127_180),
        ]
        .concat()
    };
    for (second, expected) in [(28_892_889, None), (28_890_000, Some("c1t0d0s1"))] {
        let stack = stack_of(&[text(&label(second))]);
        let found = stack
            .problems()
            .iter()
            .map(|one| (one.id, one.node.map(|id| stack.node(id).name.as_str())));
        let expected: Vec<_> = expected
            .map(|name| (ProblemId::OverlappingPartitions, Some(name)))
            .into_iter()
            .collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{second}");
    }
}
