//! Situations in which no move may go on: each is made out of one in which a move may, by changing one thing. The preflight
//! refuses each of them for its own reason.

use std::io;

use plumb_sys::{KernelPartition, Limits};

use super::memory_disk::MemoryDisk;
use super::preflight::{Scene, judge};
use crate::disk::Disk;
use crate::labels::NewKind;
use crate::moving::{JournalId, Move, MoveError, OnLoss, status};
use crate::mutation::Mutations;
use crate::preflight::{
    Checked, CurrentDisk, Direction, DiskWords, Host, NotThisDisk, Recovery, RecoveryHost,
    RecoveryRefusal, SurveyMode,
};
use crate::{Ending, Status};

/// A move that has come to the middle of its data.
struct Stopped {
    scene: Scene,
    journal: Vec<u8>,
    status: Status,
    physical_block_bytes: u32,
}

impl RecoveryHost for Stopped {
    fn is_read_only(&self) -> bool {
        self.scene.is_read_only
    }

    fn limits(&self) -> Limits {
        Limits {
            physical_block_bytes: self.physical_block_bytes,
            ..Host::limits(&self.scene)
        }
    }

    fn writers(&self) -> io::Result<Vec<String>> {
        Ok(self.scene.writers.clone())
    }

    fn partitions(&self) -> io::Result<Vec<KernelPartition>> {
        Ok(self.scene.known.clone())
    }

    fn neighbour_users(&self, number: u32) -> Vec<String> {
        let users = self.scene.neighbour_users.get(&number);
        users.cloned().unwrap_or_default()
    }
}

impl Stopped {
    fn new(kind: NewKind) -> Stopped {
        let mut scene = Scene::safe(kind);
        let checked = judge(&scene, &scene, Mutations::default(), SurveyMode::default());
        let checked = checked.expect("nothing is unsafe");
        let mut journal = vec![0; checked.get().journal_bytes(4096) as usize];
        let disk = MemoryDisk(&mut scene.disk);
        let mut moving = Move::start(checked, disk, &mut journal).expect("a good plan");
        while moving.progress().bytes == 0 {
            assert_eq!(moving.step().expect("memory does not fail"), None);
        }
        drop(moving);
        // The kernel has removed it.
        scene.known.retain(|known| known.number != 1);
        let status = status(&mut journal).expect("a move");
        Stopped {
            scene,
            journal,
            status,
            physical_block_bytes: 4096,
        }
    }

    fn check(&self, direction: Direction) -> Result<Checked<Recovery>, RecoveryRefusal> {
        self.check_on(&self.scene.disk, direction, OnLoss::Stop)
    }

    /// The same with the disk as `disk` reads it.
    fn check_on(
        &self,
        disk: &dyn plumb_label::Disk,
        direction: Direction,
        on_loss: OnLoss,
    ) -> Result<Checked<Recovery>, RecoveryRefusal> {
        let label = plumb_label::read(disk, Some(512)).ok().flatten();
        let now = CurrentDisk {
            words: DiskWords::of_disk(
                "/dev/sda".to_owned(),
                self.scene.identity.clone(),
                label.as_ref(),
                Host::attachment(&self.scene),
            ),
            has_label: label.is_some(),
            disk,
            is_named: false,
        };
        Recovery::check(&self.status, direction, on_loss, &now, self)
    }
}

/// A disk with a physical block that cannot be read until it is written.
struct DamagedDisk<'a> {
    bytes: &'a mut Vec<u8>,
    /// First byte of the block.
    hole: Option<u64>,
}

impl DamagedDisk<'_> {
    const BLOCK: u64 = 4096;

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let is_hit = |hole: u64| at < hole + Self::BLOCK && hole < at + buffer.len() as u64;
        if self.hole.is_some_and(is_hit) {
            return Err(io::Error::from_raw_os_error(5));
        }
        buffer.copy_from_slice(&self.bytes[at as usize..][..buffer.len()]);
        Ok(())
    }
}

impl plumb_label::Disk for DamagedDisk<'_> {
    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let is_inside = at + buffer.len() as u64 <= self.bytes.len() as u64;
        is_inside
            .then_some(())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.read(at, buffer)
    }
}

impl Disk for DamagedDisk<'_> {
    fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn logical_block_bytes(&self) -> u32 {
        512
    }

    fn physical_block_bytes(&self) -> u32 {
        Self::BLOCK as u32
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        self.hole
            .take_if(|hole| at <= *hole && *hole + Self::BLOCK <= end);
        self.bytes[at as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_safe_move_goes_on_and_back() {
    for kind in [NewKind::Gpt, NewKind::Mbr] {
        for (direction, expected) in [
            (Direction::Forward, Ending::Moved),
            (Direction::Back, Ending::RolledBack),
        ] {
            let mut stopped = ended(kind, direction);
            stopped.status = status(&mut stopped.journal).expect("a move");
            assert_eq!(stopped.status.ending, Some(expected));
            let again = stopped.check(direction);
            assert!(
                matches!(again, Err(RecoveryRefusal::Ended { ending }) if ending == expected),
                "{again:?}"
            );
        }
    }
}

/// A move that went on, or back, to its end without a fault.
fn ended(kind: NewKind, direction: Direction) -> Stopped {
    let mut stopped = Stopped::new(kind);
    let recovery = stopped.check(direction).expect("nothing is unsafe");
    let disk = MemoryDisk(&mut stopped.scene.disk);
    let moving = Move::recover(recovery, &mut stopped.journal, disk);
    let mut moving = moving.expect("the journal that was checked");
    while moving.step().expect("memory does not fail").is_none() {}
    drop(moving);
    stopped
}

/// No unreadable block of a label keeps a move from going on or back: of a GPT the other copy is left, of an MBR the journal has
/// the bytes, as soon as the loss is accepted. Blocks that the move writes are readable afterwards, and nothing else differs.
#[test]
fn unreadable_blocks_of_a_label_keep_no_move_from_going_on() {
    let mut ended_moves = 0;
    for (kind, on_loss) in [(NewKind::Gpt, OnLoss::Stop), (NewKind::Mbr, OnLoss::Accept)] {
        for direction in [Direction::Forward, Direction::Back] {
            let expected = ended(kind, direction).scene.disk;
            let last = expected.len() as u64;
            let (first, copy) = match kind {
                NewKind::Gpt => (34 * 512, 33 * 512),
                _ => (512, 0),
            };
            let holes = (0..first).chain(last - copy..last);
            for hole in holes.step_by(512).map(|at| at - at % DamagedDisk::BLOCK) {
                let mut stopped = Stopped::new(kind);
                let mut disk = std::mem::take(&mut stopped.scene.disk);
                let mut damaged = DamagedDisk {
                    bytes: &mut disk,
                    hole: Some(hole),
                };
                let checked = stopped.check_on(&damaged, direction, on_loss);
                let checked =
                    checked.unwrap_or_else(|refusal| panic!("{kind:?}, {hole}: {refusal:?}"));
                let moving = Move::recover(checked, &mut stopped.journal, &mut damaged);
                let mut moving = moving.unwrap_or_else(|error| panic!("{kind:?}, {hole}: {error}"));
                let ending = loop {
                    match moving.step() {
                        Ok(None) => {}
                        Ok(Some(ending)) => break ending,
                        Err(error) => panic!("{kind:?}, {direction:?}, {hole}: {error}"),
                    }
                };
                assert_eq!(moving.lost(), [], "{kind:?}, {direction:?}, {hole}");
                drop(moving);
                let is_back = direction == Direction::Back;
                assert_eq!(ending == Ending::RolledBack, is_back, "{hole}");
                assert!(disk == expected, "{kind:?}, {direction:?}, {hole}");
                ended_moves += 1;
            }
        }
    }
    assert!(ended_moves > 60, "{ended_moves}");
}

/// A change that makes going on unsafe, and the refusal that it has to lead to.
struct Danger {
    name: &'static str,
    change: fn(&mut Stopped),
    is_meant: fn(&RecoveryRefusal) -> bool,
}

fn somebody() -> Vec<String> {
    vec!["somebody".to_owned()]
}

const DANGERS: [Danger; 8] = [
    Danger {
        name: "read-only",
        change: |stopped| stopped.scene.is_read_only = true,
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::ReadOnly),
    },
    Danger {
        name: "open for writing",
        change: |stopped| stopped.scene.writers = somebody(),
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::OpenForWriting { .. }),
    },
    Danger {
        name: "neighbour in use",
        change: |stopped| {
            stopped.scene.neighbour_users.insert(2, somebody());
        },
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::NeighbourInUse { number: 2, .. }),
    },
    Danger {
        name: "another disk",
        change: |stopped| stopped.scene.identity = "naa.6".to_owned(),
        is_meant: |refusal| {
            let RecoveryRefusal::NotThisDisk { source } = refusal else {
                return false;
            };
            matches!(source, NotThisDisk::OtherDisk { .. })
        },
    },
    Danger {
        name: "no label",
        change: |stopped| stopped.scene.disk.fill(0),
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::NotThisDisk { .. }),
    },
    Danger {
        name: "a longer disk",
        change: |stopped| stopped.status.plan.disk_bytes -= 512,
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::OtherSize { .. }),
    },
    Danger {
        name: "longer blocks",
        change: |stopped| stopped.physical_block_bytes = 16_384,
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::OtherBlocks { .. }),
    },
    Danger {
        name: "a forged label",
        change: |stopped| {
            let changes = &mut stopped.status.plan.finish;
            changes.last_mut().expect("a label").new[0] ^= 1;
        },
        is_meant: |refusal| matches!(refusal, RecoveryRefusal::NotDerived { .. }),
    },
];

#[test]
fn every_danger_keeps_a_move_from_going_on() {
    for kind in [NewKind::Gpt, NewKind::Mbr] {
        for danger in &DANGERS {
            for direction in [Direction::Forward, Direction::Back] {
                let mut stopped = Stopped::new(kind);
                (danger.change)(&mut stopped);
                let refusal = stopped.check(direction).map(|_| ());
                let refusal = refusal.expect_err(danger.name);
                assert!(
                    (danger.is_meant)(&refusal),
                    "{}, {direction:?}: {refusal:?}",
                    danger.name
                );
            }
        }
    }
}

#[test]
fn partitions_in_use_only_go_forward() {
    let mut stopped = Stopped::new(NewKind::Gpt);
    stopped.status.may_be_in_use = true;
    let back = stopped.check(Direction::Back);
    assert!(matches!(back, Err(RecoveryRefusal::MayBeInUse)), "{back:?}");
    stopped.check(Direction::Forward).expect("it goes on");
}

/// A check for one journal does not allow another.
#[test]
fn a_recovery_is_for_one_journal() {
    let mut stopped = Stopped::new(NewKind::Gpt);
    stopped.status.plan.journal = JournalId([9; 16]);
    let recovery = stopped
        .check(Direction::Forward)
        .expect("shown by its label");
    let before = stopped.scene.disk.clone();
    let disk = MemoryDisk(&mut stopped.scene.disk);
    let error = Move::recover(recovery, &mut stopped.journal, disk).err();
    assert!(
        matches!(error, Some(MoveError::OtherJournal { .. })),
        "{error:?}"
    );
    assert!(stopped.scene.disk == before, "something was written");
}
