//! Makes seeds of the targets `saved_label`, `move_journal` and `marker` with Plumb's own writers: `relocate_seeds
//! fuzz/seeds`.

use std::io;
use std::path::Path;

use plumb_geometry::Bytes;
use plumb_relocate::disk::{Disk, JournalStore};
use plumb_relocate::journal::write_unchecked;
use plumb_relocate::labels::change::ChangeStep;
use plumb_relocate::labels::saved::SavedLabel;
use plumb_relocate::moving::{ByteChange, Copying, JournalId, recover_unchecked};
use plumb_relocate::{Direction, DiskOffset, Move, PartOffset, Plan, Unit, labels};

const DISK_BYTES: u64 = 1 << 20;
/// Blocks of the journals.
pub const BLOCK: usize = 4096;

fn main() {
    let seeds = std::env::args().nth(1).expect("the folder of the seeds");
    write(Path::new(&seeds));
}

/// Writes all of them below a folder.
pub fn write(seeds: &Path) {
    let put = |target: &str, name: &str, bytes: &[u8]| {
        let folder = seeds.join(target);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), bytes).expect("a file");
    };
    put("saved_label", "two-writes", &saved_label().encode());
    put("marker", "hidden", &marked(plan()));
    let moves = [
        ("windows", Copying::Windows(8192), 1),
        ("groups", Copying::Windows(4096), 3),
        ("batches", Copying::Batches(8192), 1),
    ];
    for (name, copying, at_once) in moves {
        let plan = Plan {
            copying,
            at_once,
            ..plan()
        };
        // A move that has ended does not continue: the others show more.
        for (state, steps, is_back) in [
            ("begun", 0, false),
            ("half", 6, false),
            ("whole", 1000, false),
            ("back", 6, true),
        ] {
            put(
                "move_journal",
                &format!("{name}-{state}"),
                &journal(plan.clone(), steps, is_back),
            );
        }
    }
}

fn saved_label() -> SavedLabel {
    let write = |at, old: u8, new: u8| ChangeStep::Write {
        at: Bytes(at),
        old: vec![old; 512],
        new: vec![new; 512],
    };
    let steps = [write(1_048_064, 0, 1), ChangeStep::Flush, write(512, 2, 3)];
    SavedLabel {
        disk_bytes: 1 << 20,
        sector_bytes: 512,
        unix_s: 1_795_341_600,
        device: "/dev/sdb".to_owned(),
        identity: "naa.5000c500a1b2c3d4".to_owned(),
        what: "relabel".to_owned(),
        change: labels::Change::from_steps(steps).expect("places apart"),
    }
}

/// A short move to the right.
pub fn plan() -> Plan {
    let label = |old, new| ByteChange {
        at: DiskOffset(446),
        old: vec![old; 4],
        new: vec![new; 4],
    };
    let fix_up = ByteChange {
        at: PartOffset(8192),
        old: vec![0; 4],
        new: vec![9; 4],
    };
    Plan {
        partition: "sdb1".to_owned(),
        disk: "seed".to_owned(),
        disk_bytes: DISK_BYTES,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
        journal: JournalId(*b"0123456789abcdef"),
        journal_path: "/j".to_owned(),
        from: DiskOffset(17_408),
        to: DiskOffset(65_536),
        len: 53_248,
        unit: Unit {
            bytes: 4096,
            offset: 0,
        },
        copying: Copying::Windows(8192),
        at_once: 1,
        hide: vec![label(0, 1)],
        finish: vec![label(1, 2)],
        signatures: std::iter::once(1024..2048).collect(),
        strays: Vec::new(),
        fix_ups: vec![fix_up],
    }
}

/// The first bytes of a partition whose signatures are hidden.
fn marked(plan: Plan) -> Vec<u8> {
    let mut store = vec![0; plan.journal_bytes(BLOCK as u32) as usize];
    let mut disk = BlankDisk(vec![0; DISK_BYTES as usize]);
    let from = plan.from.0 as usize;
    let mut going = begun(&plan, &mut disk, &mut store);
    // The label, and then the signature.
    go(&mut going, 2);
    drop(going);
    disk.0[from..from + 8192].to_vec()
}

/// The inside of a journal of a move after a number of steps, and then some back.
fn journal(plan: Plan, steps: usize, is_back: bool) -> Vec<u8> {
    let mut store = vec![0; plan.journal_bytes(BLOCK as u32) as usize];
    let mut disk = BlankDisk(vec![0; DISK_BYTES as usize]);
    let mut going = begun(&plan, &mut disk, &mut store);
    go(&mut going, steps);
    drop(going);
    if is_back {
        go(
            &mut recover_unchecked(Direction::Back, &mut store, &mut disk)
                .expect("a move on its way"),
            2,
        );
    }
    inside(&store)
}

/// A move of a plan that no preflight has seen, gone on with from its journal.
pub fn begun<'a>(
    plan: &Plan,
    disk: &'a mut BlankDisk,
    store: &'a mut Vec<u8>,
) -> Move<&'a mut BlankDisk, &'a mut Vec<u8>> {
    let saved: Vec<Vec<u8>> = plan
        .signatures
        .iter()
        .map(|range| vec![0; (range.end - range.start) as usize])
        .collect();
    write_unchecked(&mut *store, plan, &saved).expect("a journal that is long enough");
    recover_unchecked(Direction::Forward, store, disk).expect("a plan that is possible")
}

/// Takes a number of steps, or all.
pub fn go<D: Disk, J: JournalStore>(going: &mut Move<D, J>, steps: usize) {
    for _ in 0..steps {
        if going.step().expect("memory takes everything").is_some() {
            return;
        }
    }
}

/// Records without their heads.
fn inside(journal: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in (0..journal.len()).step_by(BLOCK).map(|at| &journal[at..]) {
        if record.starts_with(b"PLUMBJRN") {
            let payload_bytes = u64::from_le_bytes(record[40..48].try_into().expect("eight bytes"));
            bytes.push(record[32]);
            bytes.extend(
                u16::try_from(payload_bytes)
                    .expect("a short record")
                    .to_le_bytes(),
            );
            bytes.extend(&record[64..64 + payload_bytes as usize]);
        }
    }
    bytes
}

/// A disk of zeros before anything was written.
pub struct BlankDisk(pub Vec<u8>);

impl BlankDisk {
    fn place(&mut self, at: u64, len: usize) -> io::Result<&mut [u8]> {
        self.0
            .get_mut(at as usize..at as usize + len)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Disk for BlankDisk {
    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn logical_block_bytes(&self) -> u32 {
        512
    }

    fn physical_block_bytes(&self) -> u32 {
        4096
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(self.place(at, buffer.len())?);
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.place(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
