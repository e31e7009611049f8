//! Situations in which no move may go on: each is made out of one in which a move may, by changing one thing. The preflight
//! refuses each of them for its own reason.

use std::io;

use plumb_sys::{KernelPartition, Limits};

use super::memory_disk::MemoryDisk;
use super::preflight::{Scene, judge};
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
        let label = plumb_label::read(&self.scene.disk, Some(512));
        let label = label.ok().flatten();
        let now = CurrentDisk {
            words: DiskWords::of_disk(
                "/dev/sda".to_owned(),
                self.scene.identity.clone(),
                label.as_ref(),
                Host::attachment(&self.scene),
            ),
            has_label: label.is_some(),
            disk: &self.scene.disk,
            is_named: false,
        };
        Recovery::check(&self.status, direction, OnLoss::Stop, &now, self)
    }
}

#[test]
fn a_safe_move_goes_on_and_back() {
    for kind in [NewKind::Gpt, NewKind::Mbr] {
        for (direction, expected) in [
            (Direction::Forward, Ending::Moved),
            (Direction::Back, Ending::RolledBack),
        ] {
            let mut stopped = Stopped::new(kind);
            let recovery = stopped.check(direction).expect("nothing is unsafe");
            let disk = MemoryDisk(&mut stopped.scene.disk);
            let moving = Move::recover(recovery, &mut stopped.journal, disk);
            let mut moving = moving.expect("the journal that was checked");
            while moving.step().expect("memory does not fail").is_none() {}
            drop(moving);
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
