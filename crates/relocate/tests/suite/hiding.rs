//! libblkid's results for real formats before, during and after a move: the format, nothing, and the format again at
//! the new place alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_label::{Disk as _, FileDisk};
use plumb_relocate::journal::write_unchecked;
use plumb_relocate::moving::{Copying, JournalId, recover_unchecked};
use plumb_relocate::signatures::survey;
use plumb_relocate::{Direction, Disk, DiskOffset, Ending, Marker, Move, Plan, Stage, Unit};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, temp_dir};

const SECTOR: u64 = 512;
const MIB: u64 = 1 << 20;

/// An image as a disk. Without power cuts it needs no flush.
struct FileImage {
    file: File,
    len: u64,
}

impl FileImage {
    fn open(path: &Path, len: u64) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.expect("an image");
        file.set_len(len).expect("room");
        Self { file, len }
    }
}

impl Disk for FileImage {
    fn len_bytes(&self) -> u64 {
        self.len
    }

    fn logical_block_bytes(&self) -> u32 {
        512
    }

    fn physical_block_bytes(&self) -> u32 {
        4096
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, at)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A format, the tool that makes it in a file, and libblkid's name for it.
struct HiddenFormat {
    kind: &'static str,
    len_mib: u64,
    make: &'static [&'static str],
}

const FORMATS: [HiddenFormat; 10] = [
    HiddenFormat {
        kind: "ext4",
        len_mib: 24,
        make: &["mkfs.ext4", "-q", "-F"],
    },
    HiddenFormat {
        kind: "xfs",
        len_mib: 320,
        make: &["mkfs.xfs", "-q"],
    },
    HiddenFormat {
        kind: "btrfs",
        len_mib: 128,
        make: &["mkfs.btrfs", "-q"],
    },
    HiddenFormat {
        kind: "ntfs",
        len_mib: 16,
        make: &["mkfs.ntfs", "-q", "-F", "-H16", "-S63", "-p34", "-s512"],
    },
    HiddenFormat {
        kind: "vfat",
        len_mib: 64,
        make: &["mkfs.fat", "-F32"],
    },
    HiddenFormat {
        kind: "exfat",
        len_mib: 16,
        make: &["mkfs.exfat"],
    },
    HiddenFormat {
        kind: "swap",
        len_mib: 8,
        make: &["mkswap", "-q"],
    },
    HiddenFormat {
        kind: "crypto_LUKS",
        len_mib: 32,
        make: &[
            "cryptsetup",
            "luksFormat",
            "-q",
            "--type=luks1",
            "--key-file=/proc/version",
            "--iter-time=1",
        ],
    },
    HiddenFormat {
        kind: "crypto_LUKS",
        len_mib: 32,
        make: &[
            "cryptsetup",
            "luksFormat",
            "-q",
            "--type=luks2",
            "--key-file=/proc/version",
            "--pbkdf=pbkdf2",
            "--pbkdf-force-iterations=1000",
        ],
    },
    HiddenFormat {
        kind: "bcache",
        len_mib: 16,
        make: &["make-bcache", "-B"],
    },
];

/// A partition with a format.
fn made(format: &HiddenFormat) -> Vec<u8> {
    let folder = temp_dir("format");
    let part = folder.path().join("part");
    File::create(&part)
        .and_then(|file| file.set_len(format.len_mib * MIB))
        .expect("room");
    let (program, arguments) = format.make.split_first().expect("a program");
    let made = Command::new(program)
        .args(arguments)
        .arg(&part)
        .limited_output();
    assert!(
        made.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&made.stderr)
    );
    std::fs::read(&part).expect("the partition")
}

/// A superblock of md version 1 at a byte of a partition of `len` bytes, as the kernel's md_p.h has it.
fn md_1(len: u64, at: u64) -> Vec<u8> {
    let mut block = vec![0_u8; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &1_u32.to_le_bytes());
    put(16, b"uuid of an array");
    put(32, b"host:0");
    put(72, &1_u32.to_le_bytes());
    put(80, &(len / SECTOR / 2).to_le_bytes());
    put(92, &2_u32.to_le_bytes());
    put(144, &(at / SECTOR).to_le_bytes());
    put(220, &128_u32.to_le_bytes());
    let words = block
        .chunks(4)
        .map(|word| u64::from(u32::from_le_bytes(word.try_into().expect("4 bytes"))));
    let sum: u64 = words.sum();
    let folded = ((sum & 0xffff_ffff) + (sum >> 32)) as u32;
    block[216..220].copy_from_slice(&folded.to_le_bytes());
    block
}

/// One of version 0.90, which has its place from the end alone.
fn md_0(len: u64) -> Vec<u8> {
    let mut block = vec![0_u8; 4096];
    let words = [
        0xa92b_4efc_u32,
        0,
        90,
        0,
        0,
        7,
        1,
        1,
        (len / 1024 / 2) as u32,
        2,
        2,
    ];
    for (word, place) in words.iter().zip(block.chunks_mut(4)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    block
}

/// Formats whose tools need a real device, from their descriptions: libblkid's name, and the partition.
fn described() -> Vec<(&'static str, Vec<u8>)> {
    let len = 16 * MIB + 96 * SECTOR;
    let with = |len: u64, marks: Vec<(u64, Vec<u8>)>| {
        let mut bytes = vec![0; len as usize];
        for (at, mark) in marks {
            bytes[at as usize..at as usize + mark.len()].copy_from_slice(&mark);
        }
        bytes
    };
    let last = (len & !4095) - 8192;
    let old = (len & !65_535) - 65_536;
    // Four labels, each with a ring; blkid needs some of them, and searches none on less than 64 MiB.
    let pool = 64 * MIB + 96 * SECTOR;
    let end = pool & !((256 << 10) - 1);
    let labels = [0, 256 << 10, end - (512 << 10), end - (256 << 10)];
    let ring = |label: u64| (0..64).map(move |slot| label + (128 << 10) + slot * 1024);
    let uberblock = [0x00ba_b10c_u64, 5000, 4, 7, 9, 1_600_000_000]
        .map(u64::to_le_bytes)
        .concat();
    let zfs = labels
        .iter()
        .flat_map(|label| ring(*label))
        .map(|at| (at, uberblock.clone()))
        .collect();
    vec![
        ("linux_raid_member", with(len, vec![(0, md_1(len, 0))])),
        (
            "linux_raid_member",
            with(len, vec![(4096, md_1(len, 4096))]),
        ),
        (
            "linux_raid_member",
            with(len, vec![(last, md_1(len, last))]),
        ),
        ("linux_raid_member", with(len, vec![(old, md_0(len))])),
        ("zfs_member", with(pool, zfs)),
    ]
}

/// A disk image with a format at `from`, and the plan to move it.
struct HidingBench {
    disk: PathBuf,
    disk_bytes: u64,
    before: Vec<u8>,
    plan: Plan,
    _folder: Box<dyn std::any::Any>,
}

impl HidingBench {
    /// The free part of the new place contains the start of the same format, as an earlier move may have left it.
    fn new(before: Vec<u8>, from: u64, to: u64) -> Self {
        let folder = temp_dir("hiding");
        let disk = folder.path().join("disk");
        let disk_bytes = (from.max(to) * SECTOR + before.len() as u64 + MIB).next_multiple_of(MIB);
        let image = FileImage::open(&disk, disk_bytes);
        image
            .file
            .write_all_at(&before[..512 << 10], to * SECTOR)
            .expect("room");
        image
            .file
            .write_all_at(&before, from * SECTOR)
            .expect("room");
        let plan = plan(
            &disk,
            disk_bytes,
            from * SECTOR,
            to * SECTOR,
            before.len() as u64,
        );
        Self {
            disk,
            disk_bytes,
            before,
            plan,
            _folder: Box::new(folder),
        }
    }

    fn disk(&self) -> FileImage {
        FileImage::open(&self.disk, self.disk_bytes)
    }

    /// libblkid's result for a range of the disk, read as a device.
    fn found(&self, range: &Range<u64>) -> String {
        let (start, len) = (
            range.start.to_string(),
            (range.end - range.start).to_string(),
        );
        let arguments = ["-p", "-s", "TYPE", "-o", "value", "-O", &start, "-S", &len];
        let told = Command::new("blkid")
            .args(arguments)
            .arg(&self.disk)
            .limited_output();
        let text = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        match told.status.code() {
            Some(0) => text,
            Some(2) => String::new(),
            other => panic!(
                "blkid ended with {other:?}: {text} {}",
                String::from_utf8_lossy(&told.stderr)
            ),
        }
    }

    /// Nothing can be mounted or assembled, whichever of the entries a reader believes.
    fn check_hidden(&self, index: usize) {
        for range in [self.plan.old_place(), self.plan.union()] {
            assert_eq!(self.found(&range), "", "format {index}: {range:?}");
        }
    }

    /// At the start of an entry over both places, the journal is named.
    fn check_marker(&self) {
        let disk = FileDisk::new(File::open(&self.disk).expect("the disk")).expect("its size");
        let marker = Marker::at(&disk, self.plan.union().start)
            .expect("readable")
            .expect("a marker");
        assert_eq!(
            (marker.journal, marker.path.as_str()),
            (self.plan.journal, "/journal")
        );
    }

    fn bytes(&self, range: &Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.disk()
            .file
            .read_exact_at(&mut bytes, range.start)
            .expect("within the disk");
        bytes
    }
}

fn plan(disk: &Path, disk_bytes: u64, from: u64, to: u64, len: u64) -> Plan {
    let image = FileDisk::new(File::open(disk).expect("the disk")).expect("its size");
    assert_eq!(image.size_bytes(), disk_bytes);
    let survey =
        survey(&image, &(from..from + len), &(to..to + len), 512).expect("a readable disk");
    Plan {
        partition: "part".to_owned(),
        disk: "image".to_owned(),
        disk_bytes,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
        journal: JournalId(*b"hiding of format"),
        journal_path: "/journal".to_owned(),
        from: DiskOffset(from),
        to: DiskOffset(to),
        len,
        unit: Unit {
            bytes: 4096,
            offset: 0,
        },
        copying: Copying::Batches(4 * MIB),
        at_once: 1,
        hide: Vec::new(),
        finish: Vec::new(),
        signatures: survey.signatures,
        strays: survey.strays,
        fix_ups: Vec::new(),
    }
}

/// Goes on until `stage` comes next, or to the end.
fn run(moving: &mut Move<FileImage, &mut Vec<u8>>, stage: Stage) -> Option<Ending> {
    let watch = |progress: &plumb_relocate::Progress| match progress.stage == stage {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    moving.run(watch).expect("no failure")
}

#[test]
fn a_format_is_found_before_and_after_and_never_between() {
    require!(
        Tool("blkid"),
        Tool("mkfs.ext4"),
        Tool("mkfs.xfs"),
        Tool("mkfs.btrfs"),
        Tool("mkfs.ntfs"),
        Tool("mkfs.fat"),
        Tool("mkfs.exfat"),
        Tool("mkswap"),
        Tool("cryptsetup"),
        Tool("make-bcache"),
    );
    let formats = FORMATS.iter().map(|format| (format.kind, made(format)));
    for (index, (kind, before)) in formats.chain(described()).enumerate() {
        let (from, to) = if index % 2 == 0 {
            (34, 2048)
        } else {
            (2048, 63)
        };
        let bench = HidingBench::new(before, from, to);
        let plan = &bench.plan;
        assert_eq!(bench.found(&plan.old_place()), kind, "format {index}");

        let mut journal = vec![0; plan.journal_bytes(4096) as usize];
        // The label is left out here, so that no preflight knows the partition.
        let saved: Vec<Vec<u8>> = plan
            .signatures
            .iter()
            .map(|range| bench.bytes(&plan.from.of_partition(range)))
            .collect();
        write_unchecked(&mut journal, plan, &saved).expect("a journal that is long enough");
        let mut moving =
            recover_unchecked(Direction::Forward, &mut journal, bench.disk()).expect("a good plan");
        assert_eq!(run(&mut moving, Stage::Copying), None);
        bench.check_hidden(index);
        bench.check_marker();
        assert_eq!(run(&mut moving, Stage::Finishing), None);
        bench.check_hidden(index);
        bench.check_marker();

        if index % 3 == 0 {
            drop(moving);
            let mut back =
                recover_unchecked(Direction::Back, &mut journal, bench.disk()).expect("a journal");
            assert_eq!(run(&mut back, Stage::Done), Some(Ending::RolledBack));
            assert_eq!(bench.found(&plan.old_place()), kind);
            assert!(
                bench.bytes(&plan.old_place()) == bench.before,
                "{kind} came back changed"
            );
            assert_eq!(bench.found(&plan.new_place()), "");
        } else {
            assert_eq!(run(&mut moving, Stage::Done), Some(Ending::Moved));
            assert_eq!(bench.found(&plan.new_place()), kind);
            assert!(
                bench.bytes(&plan.new_place()) == bench.before,
                "{kind} arrived changed"
            );
            assert_eq!(bench.found(&plan.old_place()), "");
        }
    }
}
