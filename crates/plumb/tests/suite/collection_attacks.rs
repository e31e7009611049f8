//! Malicious collections.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::fake_sysfs::FakeDisk;
use plumb_testkit::require;
use tar::{Builder, EntryType, Header};

use crate::common::Ran;
use crate::common::collection::{FORM, FORM_OF_FILES, Lab, NO_ANSWERS, NO_DEVICES};

/// Memory that a check of a hostile collection may map: the sum of its limits, with room for code and threads.
const MAPPED_KIB: u64 = 2 << 20;

fn header(kind: EntryType, name: &str, len: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(len);
    header.set_mode(0o644);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    header
}

type Add<'a> = &'a dyn Fn(&mut Builder<&mut dyn io::Write>) -> io::Result<()>;

/// A collection of these entries, made as a stream: most of them would not fit into memory.
fn pack(path: &Path, form: &str, add: Add<'_>) {
    let file = fs::File::create(path).expect("room");
    let mut frame = zstd::stream::write::Encoder::new(file, 1).expect("a frame");
    {
        let mut tar = Builder::new(&mut frame as &mut dyn io::Write);
        let mark = header(EntryType::Regular, "plumb-collection", form.len() as u64);
        tar.append(&mark, form.as_bytes()).expect("the mark");
        add(&mut tar).expect("an entry");
        tar.finish().expect("the end");
    }
    frame.finish().expect("the frame");
}

/// A check of it with bounded memory.
fn check(path: &Path) -> Ran {
    check_with(path, &std::env::temp_dir())
}

fn check_with(path: &Path, temporary: &Path) -> Ran {
    let script = format!("ulimit -v {MAPPED_KIB}; exec \"$0\" check --from \"$1\"");
    let ran = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_plumb")])
        .arg(path)
        .env("TMPDIR", temporary)
        .output();
    Ran::from_output(ran.expect("a shell"))
}

#[test]
fn bombs_of_names_take_no_memory() {
    require!(Patience);
    let lab = Lab::new();
    let path = lab.path("bomb.tar.zst");
    // 1 GiB in some 100 kB.
    let len = (1 << 30) - (1 << 20);
    let kinds = [
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::XHeader,
    ];
    let messages = kinds.map(|kind| {
        pack(&path, FORM, &|tar| {
            tar.append(&header(kind, "next", len), io::repeat(b'a').take(len))
        });
        assert!(fs::metadata(&path).expect("it is there").len() < 1_000_000);
        check(&path).ends(5).complaint()
    });
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn bombs_of_directories_and_depth() {
    require!(Patience);
    let lab = Lab::new();
    let path = lab.path("bomb.tar.zst");
    let deep = ["d"; 65].join("/");
    pack(&path, FORM, &|tar| {
        tar.append_data(&mut header(EntryType::Directory, "", 0), &deep, io::empty())
    });
    // The entry at which a limit is met depends on the sizes of types.
    let expected = || {
        let complaint = check(&path).ends(5).complaint();
        let (_, expected) = complaint.split_once(", expected ").expect("a limit");
        expected.to_owned()
    };
    let mut messages = vec![expected()];
    // 100,000 entries, each with 60 directories of its own.
    let deep = ["d"; 60].join("/");
    pack(&path, FORM, &|tar| {
        (0..100_000).try_for_each(|number| {
            let name = format!("{number}/{deep}");
            tar.append_data(&mut header(EntryType::Directory, "", 0), name, io::empty())
        })
    });
    messages.push(expected());
    // Files that are small alone.
    pack(&path, FORM, &|tar| {
        (0..20).try_for_each(|number| {
            let name = format!("root/{number}");
            let zeros = io::repeat(0).take(60 << 20);
            tar.append(&header(EntryType::Regular, &name, 60 << 20), zeros)
        })
    });
    messages.push(expected());
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Values of JSON take a hundred times as much memory as their text.
#[test]
fn a_dump_of_many_small_values() {
    let lab = Lab::new();
    let mut host = lab.host("values");
    host.disk(&FakeDisk::named("sda"));
    let values = "{\"a\":1},".repeat((30 << 20) / 8);
    let text = format!("{{\"blockdevices\": [{values}{{}}]}}");
    let path = lab.pack(&host, "values", FORM_OF_FILES, &[("dumps/lsblk", &text)]);
    let said = check(&path).ends(3).said();
    let (_, limit) = said.split_once(" bytes of memory, ").expect("a limit");
    insta::assert_snapshot!(limit);
}

/// One device's bytes, listed a thousand times.
#[test]
fn a_list_copies_no_bytes() {
    let lab = Lab::new();
    let mut host = lab.host("copies");
    host.disk(&FakeDisk::named("sda"));
    let device = |number: u32| {
        format!(
            "{{\"name\": \"sd{number}\", \"folder\": \"0-sda\", \"size_bytes\": 16777216, \"read\": [], \"failed\": [], \
             \"refused\": null}}"
        )
    };
    let devices: Vec<String> = (0..1000).map(device).collect();
    let listed = format!("{{\"devices\": [{}], \"images\": []}}", devices.join(","));
    let zeros = "\0".repeat(16 << 20);
    let entries = [
        NO_ANSWERS,
        ("devices.json", &listed),
        ("sectors/0-sda/0", &zeros),
    ];
    let path = lab.pack(&host, "copies", FORM, &entries);
    insta::assert_snapshot!(check(&path).ends(5).complaint());
}

/// A collection whose host is that of its reader.
#[test]
fn a_root_that_leads_to_this_host() {
    let lab = Lab::new();
    let path: PathBuf = lab.path("mine.tar.zst");
    for name in ["root", "root/sys", "root/sys/class/block"] {
        let target = match name {
            "root" => "/",
            "root/sys" => "/sys",
            _ => "/sys/class/block",
        };
        pack(&path, FORM_OF_FILES, &|tar| {
            let mut header = header(EntryType::Symlink, "", 0);
            tar.append_link(&mut header, name, target)
        });
        check(&path).ends(5);
    }
}

/// Nothing is unpacked: neither a signal nor a crash can leave anything behind.
#[test]
fn a_check_needs_no_temporary_directory() {
    let lab = Lab::new();
    let mut host = lab.host("plain");
    host.disk(&FakeDisk::named("sda"));
    host.partition("sda", 1, 2048, 1 << 30);
    let path = lab.pack(&host, "plain", FORM, &[NO_ANSWERS, NO_DEVICES]);
    check_with(&path, Path::new("/nowhere/at/all")).ends(0);
}
