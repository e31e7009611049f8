//! Broken journals, other disks, and other writers.

use std::ops::ControlFlow;

use plumb_testkit::Rng;

use super::case::{Case, EMULATED, Setting};
use super::medium::{Flushes, SimDisk, SimStore};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Ending, Journal, JournalError, JournalRecord};
use crate::moving::{Move, MoveError, Stage, status};
use crate::mutation::Mutations;

const CASE: Case = Case {
    blocks: EMULATED,
    from: 34,
    to: 64,
    len: 100,
    units: 1,
    at_once: 2,
    flushes: Flushes::Changing,
    label: 8,
};
const BLOCK: u64 = 4096;

fn both(setting: &Setting) -> (SimDisk, SimStore) {
    (
        SimDisk(setting.world.clone()),
        SimStore(setting.world.clone()),
    )
}

/// A move that was stopped before its step number `steps`.
fn stopped(steps: usize) -> Setting {
    let setting = Setting::new(&CASE, 7);
    let (disk, store) = both(&setting);
    let mut moving = Move::start(setting.checked_plan(), disk, store).expect("a good plan");
    for _ in 0..steps {
        assert_eq!(moving.step().expect("no failure"), None);
    }
    setting
}

/// The starts of records, in their order.
fn records(setting: &Setting) -> Vec<u64> {
    let (_, mut store) = both(setting);
    let mut head = [0; BLOCK as usize];
    let starts = (0..store.len_bytes() / BLOCK).map(|block| block * BLOCK);
    let is_record = |at: &u64| {
        store.read_at(*at, &mut head).expect("within");
        head.starts_with(b"PLUMBJRN")
    };
    starts.filter(is_record).collect()
}

/// Changes bytes of a journal.
fn spoil(setting: &Setting, at: u64, change: impl Fn(&mut [u8])) {
    let world = &mut setting.world.borrow_mut();
    let mut block = [0; BLOCK as usize];
    world.journal.read(at, &mut block);
    change(&mut block);
    world.journal.write(at, &block);
}

/// Only the last record can be torn by a crash. Every other one that cannot be read stops everything, and nothing is
/// written then.
#[test]
fn a_broken_record_is_not_taken_for_the_end() {
    let setting = stopped(12);
    let (disk, store) = both(&setting);
    let records = records(&setting);
    assert!(records.len() > 12, "{records:?}");
    let last = records.len() - 1;
    for (number, at) in records.iter().enumerate() {
        // In the number, the sum and the payload.
        for byte in [25, 57, 70] {
            spoil(&setting, *at, |block| block[byte] ^= 0x10);
            let before = setting.world.borrow().disk.mark();
            let journal = setting.world.borrow().journal.mark();
            match Move::resume(store.clone(), disk.clone()) {
                Err(MoveError::Journal(JournalError::None)) => assert_eq!(number, 0),
                Err(MoveError::Journal(JournalError::Damaged { number: told, .. })) => {
                    assert!(
                        number != last && told == number as u64,
                        "{number} reported as {told}"
                    );
                }
                Ok(_) => assert_eq!(number, last),
                Err(other) => panic!("record {number}: {other}"),
            }
            if number != last {
                assert_eq!(
                    setting.world.borrow().disk.mark(),
                    before,
                    "the disk was written"
                );
            }
            setting.world.borrow_mut().disk.back_to(before);
            setting.world.borrow_mut().journal.back_to(journal);
            spoil(&setting, *at, |block| block[byte] ^= 0x10);
        }
    }
    assert!(Move::resume(store, disk).is_ok());
}

/// A journal with right sums that somebody has made up directs no write beyond the units of both places, and no place in it ends
/// the program.
#[test]
fn units_written_again_are_those_of_the_move() {
    let setting = stopped(12);
    let (old, new) = (setting.plan.old_place(), setting.plan.new_place());
    let behind = old.end.max(new.end).next_multiple_of(BLOCK);
    let within = new.start.next_multiple_of(BLOCK);
    for (at, len, is_possible) in [
        (within, BLOCK, true),
        (within, 2 * BLOCK, false),
        (within, BLOCK - 512, false),
        (within, 0, false),
        (within + 512, BLOCK, false),
        (behind, BLOCK, false),
        (setting.plan.disk_bytes, BLOCK, false),
        (u64::MAX, 1, false),
        (u64::MAX - BLOCK + 1, BLOCK, false),
        (u64::MAX - BLOCK, BLOCK, false),
    ] {
        let mark = setting.world.borrow().mark();
        let (disk, store) = both(&setting);
        let (mut journal, _) =
            Journal::open(store.clone(), Mutations::default()).expect("a journal");
        let record = JournalRecord::Mend {
            at,
            bytes: vec![0xa5; len as usize],
        };
        journal.append_durable(&record).expect("room");
        let before = setting.world.borrow().disk.mark();
        let resumed = Move::resume(store, disk);
        if is_possible {
            assert!(resumed.is_ok(), "byte {at}, {len} bytes");
        } else {
            let is_damage = matches!(
                resumed.as_ref().map(|_| ()),
                Err(MoveError::Journal(JournalError::Damaged { .. }))
            );
            assert!(is_damage, "byte {at}, {len} bytes");
            assert_eq!(setting.world.borrow().disk.mark(), before, "byte {at}");
        }
        setting.world.borrow_mut().back_to(mark);
    }
}

#[test]
fn random_journals_end_no_program() {
    let setting = stopped(20);
    let (disk, store) = both(&setting);
    let mut rng = Rng::announced("broken journals", 11);
    let records = records(&setting);
    for _ in 0..3_000 {
        let mark = setting.world.borrow().mark();
        for _ in 0..rng.between(1, 4) {
            let record = records[rng.below(records.len() as u64) as usize];
            let (bytes, len) = (rng.next_u64().to_le_bytes(), rng.between(1, 8) as usize);
            let at = rng.below(200) as usize;
            spoil(&setting, record, |block| {
                block[at..at + len].copy_from_slice(&bytes[..len])
            });
        }
        let _ = status(store.clone());
        let _ = Move::resume(store.clone(), disk.clone());
        setting.world.borrow_mut().back_to(mark);
    }
}

#[test]
fn another_disk_is_refused() {
    let setting = stopped(8);
    let (disk, store) = both(&setting);
    let longer = setting.plan.disk_bytes + 4096;
    setting.world.borrow_mut().disk_bytes = longer;
    let error = Move::resume(store.clone(), disk.clone())
        .err()
        .expect("another disk");
    assert!(
        matches!(&error, MoveError::Plan(error) if error.found == longer),
        "{error}"
    );
    setting.world.borrow_mut().disk_bytes -= 4096;
    assert!(Move::resume(store, disk).is_ok());
}

/// A journal that is too short for the move is refused before anything is written.
#[test]
fn a_short_file_is_refused() {
    let setting = Setting::new(&CASE, 7);
    let (disk, store) = both(&setting);
    setting.world.borrow_mut().journal_bytes -= 1;
    let error = Move::start(setting.checked_plan(), disk, store)
        .err()
        .expect("too short");
    assert!(
        matches!(error, MoveError::Journal(JournalError::Full { .. })),
        "{error}"
    );
    setting.check_ending(None).expect("untouched");
}

/// Stopped and resumed before every step, with two hundred stops more than the move has steps.
#[test]
fn a_move_can_be_stopped_anywhere_and_often() {
    for turns_back in [false, true] {
        let setting = stopped(0);
        let mut ending = None;
        for round in 0.. {
            let (disk, store) = both(&setting);
            let begin = if turns_back && round > 14 {
                Move::rollback
            } else {
                Move::resume
            };
            let mut moving = begin(store, disk).expect("it goes on");
            let stopped = moving.run(|_| ControlFlow::Break(())).expect("no failure");
            assert_eq!(stopped, None);
            if round < 200 && round % 8 != 0 {
                continue;
            }
            // The verified part is not recorded: after a stop, verification begins again.
            ending = match moving.progress().stage {
                Stage::Verifying => moving.run(|_| ControlFlow::Continue(())),
                _ => moving.step(),
            }
            .expect("no failure");
            if ending.is_some() {
                break;
            }
        }
        setting.check_ending(ending).expect("right");
        let expected = if turns_back {
            Ending::RolledBack
        } else {
            Ending::Moved
        };
        assert_eq!(ending, Some(expected));
        let (disk, store) = both(&setting);
        let told = status(store.clone()).expect("a journal");
        assert_eq!((told.ending, told.progress.stage), (ending, Stage::Done));
        let again = Move::resume(store, disk).err().expect("it has ended");
        assert!(matches!(again, MoveError::Ended { .. }), "{again}");
    }
}

/// Somebody writes to the partition after the move has begun. It stops before it has lost the change, and a rollback
/// keeps it.
#[test]
fn foreign_writes_are_kept() {
    let setting = stopped(2);
    let (mut disk, store) = both(&setting);
    let at = setting.plan.from.0 + setting.plan.signatures[0].start;
    disk.write_at(at, &[0x77; 512]).expect("within");
    let mut moving = Move::resume(store.clone(), disk.clone()).expect("a journal");
    let error = moving.step().expect_err("somebody wrote");
    assert!(
        matches!(error, MoveError::Changed { at: told } if told == at),
        "{error}"
    );
    assert!(matches!(moving.step(), Err(MoveError::Stopped)));
    let mut back = Move::rollback(store, disk.clone()).expect("a journal");
    assert_eq!(
        back.run(|_| ControlFlow::Continue(())).expect("no failure"),
        Some(Ending::RolledBack)
    );
    let mut found = [0; 512];
    disk.read_at(at, &mut found).expect("within");
    assert_eq!(found, [0x77; 512]);
}

/// A label that is not the plan's: before the move, before it goes on, and while it goes on.
#[test]
fn another_label_stops_the_move() {
    let setting = Setting::new(&CASE, 7);
    let (mut disk, store) = both(&setting);
    let at = setting.plan.hide[0].at.0;
    disk.write_at(at, &[0x77; 512]).expect("within");
    let error = Move::start(setting.checked_plan(), disk, store)
        .err()
        .expect("another label");
    assert!(
        matches!(error, MoveError::Changed { at: told } if told == at),
        "{error}"
    );

    let setting = stopped(8);
    let (mut disk, store) = both(&setting);
    let at = setting.plan.finish[1].at.0;
    disk.write_at(at, &[0x77; 512]).expect("within");
    let error = Move::resume(store, disk).err().expect("another label");
    assert!(
        matches!(error, MoveError::Changed { at: told } if told == at),
        "{error}"
    );

    let setting = stopped(8);
    let (mut disk, store) = both(&setting);
    let mut moving = Move::resume(store, disk.clone()).expect("a journal");
    disk.write_at(at, &[0x77; 512]).expect("within");
    let error = moving
        .run(|_| ControlFlow::Continue(()))
        .expect_err("another label");
    assert!(
        matches!(error, MoveError::Changed { at: told } if told == at),
        "{error}"
    );
}

/// Interrupted at every read, write and flush of a move and of its rollback, with or without an image that may or may
/// not have been written: if the label has changed in the meantime, nothing is written, neither to the disk nor to the
/// journal.
#[test]
fn another_label_stops_pending_steps() {
    let (mut refused, mut pending) = (0, 0);
    let ways = [
        Move::resume as fn(SimStore, SimDisk) -> Result<_, MoveError>,
        Move::rollback,
    ];
    for (steps, begin) in [0, 12].into_iter().zip(ways) {
        for fails in 0.. {
            let setting = stopped(steps);
            let (mut disk, store) = both(&setting);
            let mut moving = begin(store.clone(), disk.clone()).expect("a journal");
            setting.world.borrow_mut().asked = 0;
            setting.world.borrow_mut().fails = Some(fails);
            let ended = moving.run(|_| ControlFlow::Continue(()));
            setting.world.borrow_mut().fails = None;
            if ended.is_ok() {
                // A read that fails is repeated: not every failure stops a move.
                if setting.world.borrow().asked <= fails {
                    break;
                }
                continue;
            }
            let (_, state) = Journal::look(store.clone(), Mutations::default()).expect("a journal");
            if state.ending.is_some() {
                continue;
            }
            let torn = state
                .pending
                .map_or(0..0, |image| image.at..image.at + image.image.len_bytes());
            let blocks = setting
                .plan
                .hide
                .iter()
                .flat_map(|change| change.range().step_by(512));
            for at in blocks.filter(|at| !torn.contains(at)) {
                let mark = setting.world.borrow().mark();
                disk.write_at(at, &[0x77; 512]).expect("within");
                let before = setting.world.borrow().mark();
                for begin in ways {
                    let error = begin(store.clone(), disk.clone())
                        .err()
                        .expect("another label");
                    assert!(
                        matches!(error, MoveError::Changed { at: told } if told == at),
                        "{at}: {error}"
                    );
                    assert!(
                        setting.world.borrow().mark() == before,
                        "something was written"
                    );
                }
                setting.world.borrow_mut().back_to(mark);
                refused += 1;
                pending += u32::from(!torn.is_empty());
            }
        }
    }
    assert!(
        refused > 500 && pending > 100,
        "{refused} times, {pending} of them with an image"
    );
}

/// A partition that has come back can be mounted and written before the journal has its end. A rollback would put its first
/// signature over newer data: it is refused, with nothing written, and a resume leaves the newer data alone.
#[test]
fn a_partition_that_was_used_since_does_not_go_back() {
    let setting = stopped(0);
    let (mut disk, store) = both(&setting);
    let mut moving = Move::resume(store.clone(), disk.clone()).expect("a journal");
    while moving.progress().stage != Stage::Finishing {
        assert_eq!(moving.step().expect("no failure"), None);
    }
    let mut used = 0;
    loop {
        let at = setting.plan.to.0 + setting.plan.signatures[0].start;
        let mut found = [0; 512];
        disk.read_at(at, &mut found).expect("within");
        if found == setting.signature(0) {
            let mark = setting.world.borrow().mark();
            disk.write_at(at + 512, &[0x77; 512]).expect("within");
            disk.write_at(at, &[0x77; 512]).expect("within");
            let before = setting.world.borrow().disk.mark();
            let error = Move::rollback(store.clone(), disk.clone())
                .err()
                .expect("newer data");
            assert!(
                matches!(error, MoveError::Used { at: told } if told == at),
                "{error}"
            );
            assert_eq!(
                setting.world.borrow().disk.mark(),
                before,
                "something was written"
            );
            let mut forward = Move::resume(store.clone(), disk.clone()).expect("a journal");
            let ended = forward
                .run(|_| ControlFlow::Continue(()))
                .expect("no failure");
            assert_eq!(ended, Some(Ending::Moved));
            for at in [at, at + 512] {
                disk.read_at(at, &mut found).expect("within");
                assert_eq!(found, [0x77; 512]);
            }
            setting.world.borrow_mut().back_to(mark);
            used += 1;
        }
        if moving.step().expect("no failure").is_some() {
            break;
        }
    }
    assert!(used > 0);
}

/// Later copies would be invisible, or it is another disk.
#[test]
fn the_old_label_stops_a_resume_and_no_rollback() {
    let setting = stopped(8);
    let (mut disk, store) = both(&setting);
    for change in &setting.plan.hide {
        disk.write_at(change.at.0, &change.old).expect("within");
    }
    let error = Move::resume(store.clone(), disk.clone())
        .err()
        .expect("the old label");
    assert!(
        matches!(error, MoveError::Changed { at } if at == setting.plan.hide[0].at.0),
        "{error}"
    );
    let mut back = Move::rollback(store, disk).expect("a journal");
    assert_eq!(
        back.run(|_| ControlFlow::Continue(())).expect("no failure"),
        Some(Ending::RolledBack)
    );

    let setting = stopped(8);
    let (mut disk, store) = both(&setting);
    disk.write_at(setting.plan.hide[0].at.0, &[0x77; 512])
        .expect("within");
    let error = Move::rollback(store, disk).err().expect("another label");
    assert!(matches!(error, MoveError::Changed { .. }), "{error}");
}

/// The purpose of verification: data that did not arrive as they were written.
#[test]
fn a_byte_that_changed_is_found_again() {
    let setting = stopped(0);
    let (mut disk, store) = both(&setting);
    let mut moving = Move::resume(store, disk.clone()).expect("a journal");
    let watch = |progress: &crate::Progress| match progress.stage {
        Stage::Verifying => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert_eq!(moving.run(watch).expect("no failure"), None);
    let at = setting.plan.to.0 + 50 * 512;
    let mut sector = [0; 512];
    disk.read_at(at, &mut sector).expect("within");
    sector[3] ^= 1;
    disk.write_at(at, &sector).expect("within");
    let error = moving
        .run(|_| ControlFlow::Continue(()))
        .expect_err("a changed byte");
    let MoveError::Lost { ranges } = error else {
        panic!("{error}")
    };
    let byte = at - setting.plan.to.0;
    assert!(
        ranges.iter().any(|lost| lost.range.contains(&byte)),
        "{ranges:?}"
    );
}
