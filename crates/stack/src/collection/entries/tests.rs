//! Archives that are whole, hostile and damaged.

use std::path::Path;

use tar::Header;

use super::*;
use crate::collection::{LEVEL, Packer};

type Add<'a> = &'a dyn Fn(&mut Packer<Vec<u8>>) -> io::Result<()>;

/// The result for an archive: the files, or the message.
fn unpacked(add: Add<'_>) -> Result<FileTree, String> {
    let mut packer = Packer::new(Vec::new()).expect("an archive in memory");
    add(&mut packer).expect("an entry");
    let tar = packer.tar.into_inner().expect("the archive");
    let bytes = zstd::encode_all(&tar[..], LEVEL).expect("a frame");
    let read = read("c.tar.zst", &bytes).map(|(_, tree)| tree);
    read.map_err(|error| error.to_string())
}

#[track_caller]
fn refused(add: Add<'_>, words: &str) {
    match unpacked(add) {
        Err(error) => assert!(error.contains(words), "{error}"),
        Ok(_) => panic!("it was taken, expected {words}"),
    }
}

fn header(kind: EntryType, len: u64) -> Header {
    Packer::<Vec<u8>>::header(kind, len)
}

/// An entry with a path that the library would refuse to write.
fn raw(packer: &mut Packer<Vec<u8>>, kind: EntryType, path: &str, link: &str) -> io::Result<()> {
    let mut header = header(kind, 0);
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    packer.tar.append(&header, io::empty())
}

/// An entry that tells of the next one.
fn telling(packer: &mut Packer<Vec<u8>>, kind: EntryType, len: u64, byte: u8) -> io::Result<()> {
    let mut header = header(kind, len);
    header.as_old_mut().name[..4].copy_from_slice(b"next");
    header.set_cksum();
    packer.tar.append(&header, io::repeat(byte).take(len))
}

#[test]
fn packed_entries_come_back() {
    let long = format!("root/{}", ["name"; 60].join("/"));
    let tree = unpacked(&|packer| {
        packer.file(Path::new("root/sys/devices/sda/size"), b"2048\n")?;
        packer.file(Path::new("root/sys/devices/sda/size"), b"again\n")?;
        packer.file(Path::new(&long), b"long\n")?;
        packer.link(
            Path::new("root/sys/class/block/sda"),
            Path::new("../../devices/sda"),
        )
    });
    let tree = std::sync::Arc::new(tree.expect("a collection"));
    let root = plumb_sys::Directory::in_tree(&tree, "root").expect("a root");
    let size = root.read_below("sys/class/block/sda/size", 64);
    assert_eq!(size, Ok(b"2048\n".to_vec()), "through the link");
    assert_eq!(tree.file(&long), Ok(&b"long\n"[..]));
    assert!(tree.file(MARK).is_err());
}

/// Names by pax, as other programs write them.
#[test]
fn names_by_pax_are_taken() {
    let tree = unpacked(&|packer| {
        let (path, target) = (b"root/by/pax".as_slice(), b"../there".as_slice());
        let records = [
            ("mtime", b"12.5".as_slice()),
            ("path", path),
            ("linkpath", target),
        ];
        packer.tar.append_pax_extensions(records)?;
        raw(packer, EntryType::Symlink, "short", "")
    });
    let tree = std::sync::Arc::new(tree.expect("a collection"));
    let by = plumb_sys::Directory::in_tree(&tree, "root/by").expect("a directory");
    assert_eq!(by.link("pax").as_deref(), Ok("../there"));
}

#[test]
fn nothing_leads_out() {
    for path in [
        "../evil",
        "/etc/evil",
        "root/../../evil",
        "",
        ".",
        "root//evil",
        "/",
    ] {
        for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
            refused(
                &|packer| raw(packer, kind, path, "x"),
                "expected a path of plain names",
            );
        }
    }
    for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
        let through = |packer: &mut Packer<Vec<u8>>| {
            raw(packer, EntryType::Symlink, "root", "..")?;
            raw(packer, kind, "root/evil/x", "x")
        };
        refused(&through, "expected directories above it");
    }
    for kind in [EntryType::Link, EntryType::Char, EntryType::Fifo] {
        refused(
            &|packer| raw(packer, kind, "root/node", "root/x"),
            "expected a file, a directory or a link",
        );
    }
    let twice = |packer: &mut Packer<Vec<u8>>| {
        raw(packer, EntryType::Regular, "root/a", "")?;
        raw(packer, EntryType::Symlink, "root/a", "/etc/shadow")
    };
    refused(&twice, "found root/a twice");
}

#[test]
fn bombs_are_refused() {
    refused(
        &|packer| {
            let path = Path::new("root/zeros");
            let len = FILE_BYTES_MAX + 1;
            packer.tar.append_data(
                &mut header(EntryType::Regular, len),
                path,
                io::repeat(0).take(len),
            )
        },
        "expected less than 64 MiB a file",
    );
    let long = PATH_BYTES_MAX + 2;
    for kind in [EntryType::GNULongName, EntryType::GNULongLink] {
        let words = "expected a path of 4,096 bytes at most";
        refused(&|packer| telling(packer, kind, long, b'a'), words);
        let twice = |packer: &mut Packer<Vec<u8>>| {
            telling(packer, kind, 8, b'a')?;
            telling(packer, kind, 8, b'b')
        };
        refused(&twice, "found two names for one entry");
    }
    refused(
        &|packer| telling(packer, EntryType::XHeader, PAX_BYTES_MAX + 1, b'a'),
        "expected 64 KiB of extensions",
    );
    refused(
        &|packer| telling(packer, EntryType::XGlobalHeader, 8, b'a'),
        "expected a file, a directory or a link",
    );
    for key in ["size", "GNU.sparse.realsize"] {
        let words = "expected a length in the header alone";
        refused(
            &|packer| packer.tar.append_pax_extensions([(key, b"1".as_slice())]),
            words,
        );
    }
    let dumps = |packer: &mut Packer<Vec<u8>>| {
        let half = vec![b' '; DUMPS_BYTES_MAX as usize / 2];
        ["one", "two", "three"]
            .iter()
            .try_for_each(|name| packer.file(&Path::new(DUMPS).join(name), &half))
    };
    refused(&dumps, "entry 4: found dumps/three");
    let deep = ["d"; DEPTH_MAX + 1].join("/");
    refused(
        &|packer| packer.file(Path::new(&deep), b""),
        "expected 64 at most",
    );
}

/// Directories and names alone: an archive of zeros in between, packed very small.
#[test]
fn directories_have_no_more_memory_than_files() {
    // Each entry makes 63 directories of its own.
    let per_entry = (DEPTH_MAX - 1) as u64 * 512;
    let enough = MEMORY_BYTES_MAX / per_entry + 1;
    let deep = ["d"; DEPTH_MAX - 1].join("/");
    refused(
        &|packer| {
            (0..enough).try_for_each(|number| {
                packer.tar.append_data(
                    &mut header(EntryType::Directory, 0),
                    format!("{number}/{deep}"),
                    io::empty(),
                )
            })
        },
        "expected less than 64 MiB a file, and 512 MiB with all names",
    );
}

#[test]
fn other_archives_and_damage() {
    let message = |bytes: &[u8]| {
        let read = read("c.tar.zst", bytes).map(drop);
        read.expect_err("no collection").to_string()
    };
    let mut other = tar::Builder::new(Vec::new());
    other
        .append_data(&mut header(EntryType::Regular, 2), "README", &b"hi"[..])
        .expect("an entry");
    let other = zstd::encode_all(&other.into_inner().expect("it")[..], LEVEL).expect("a frame");
    assert!(
        message(&other).contains("entry 1: found README with \"hi\""),
        "{}",
        message(&other)
    );
    assert!(message(&other[..other.len() / 2]).contains("cannot be unpacked"));
    let empty = zstd::encode_all(&[][..], LEVEL).expect("a frame");
    assert!(message(&empty).contains("found nothing"));
}

/// Reading any archive ends with an answer.
#[test]
fn damaged_archives_have_an_answer() {
    let mut packer = Packer::new(Vec::new()).expect("an archive in memory");
    let long = ["directory"; 30].join("/");
    let files = [
        ("root/sys/devices/sda/size", "2048\n"),
        ("root/sys/devices/sda/dev", "8:0\n"),
        (
            "root/proc/self/mountinfo",
            "1 1 8:0 / / rw - ext4 /dev/sda rw\n",
        ),
        ("answers.json", "{}"),
        ("devices.json", r#"{"devices": [], "images": []}"#),
        ("dumps/zpool-status", "  pool: tank\n"),
        (&long, "long"),
    ];
    let added = files
        .iter()
        .try_for_each(|(path, text)| packer.file(Path::new(path), text.as_bytes()));
    added.expect("room");
    let link = packer.link(
        Path::new("root/sys/class/block/sda"),
        Path::new("../../devices/sda"),
    );
    link.expect("room");
    let whole = packer.tar.into_inner().expect("the archive");
    let mut taken = 0;
    for seed in 0..3000 {
        let mut random = plumb_testkit::Rng::new(seed);
        let mut tar = whole.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(tar.len() as u64) as usize;
            tar[at] = [0, b'/', b'.', b'7', b'L', b'x', 0xff][random.below(7) as usize];
        }
        right_sums(&mut tar);
        let bytes = zstd::encode_all(&tar[..], 1).expect("a frame");
        let Ok(contents) = crate::collection::Contents::read("c.tar.zst", &bytes) else {
            continue;
        };
        taken += 1;
        let _ = contents.own_name();
        let Ok(collected) = contents.collected() else {
            continue;
        };
        if let Ok(root) = contents.root(&collected.answers) {
            let mut builder = crate::Builder::default();
            let _ = crate::linux::collect(&root, &mut builder);
        }
    }
    // Most damage is in content, and any content is accepted.
    assert!(taken > 300, "{taken}");
}

/// Writes the checksum of each header that the lengths lead to.
fn right_sums(tar: &mut [u8]) {
    let mut at = 0;
    while let Some(block) = tar.get_mut(at..at + 512) {
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        if block.iter().all(|byte| *byte == 0) {
            return;
        }
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
        let Ok(len) = header.entry_size() else {
            return;
        };
        let blocks = len.div_ceil(512).saturating_add(1);
        at = usize::try_from(blocks.saturating_mul(512))
            .ok()
            .and_then(|len| at.checked_add(len))
            .unwrap_or(usize::MAX - 512);
    }
}

/// The last bytes of a frame are its checksum, behind everything that is in it.
#[test]
fn a_wrong_checksum_is_damage() {
    let mut frame = zstd::stream::write::Encoder::new(Vec::new(), LEVEL).expect("a frame");
    frame.include_checksum(true).expect("it can");
    let packer = Packer::new(frame).expect("an archive");
    let frame = packer.tar.into_inner().expect("the archive");
    let mut bytes = frame.finish().expect("a frame");
    read("c.tar.zst", &bytes).expect("a collection of nothing");
    *bytes.last_mut().expect("some") ^= 1;
    let error = read("c.tar.zst", &bytes).map(drop).expect_err("damage");
    assert!(error.to_string().contains("cannot be unpacked"), "{error}");
}
