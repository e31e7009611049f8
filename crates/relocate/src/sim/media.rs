//! The faults of a medium that once stopped a move for ever, or let it report success over wrong bytes.

use std::ops::ControlFlow;

use super::case::{Case, EMULATED, EMULATED_16K, EMULATED_OFFSET, Setting};
use super::crash::{Cache, Fate};
use super::medium::{Flushes, SimDisk, SimStore, Which, WriteFault};
use crate::disk::Disk;
use crate::journal::Ending;
use crate::moving::loss::covers;
use crate::moving::{LossKind, LostRange, Move, MoveError, OnLoss, Stage};
use crate::mutation::{Mutation, Mutations};

const SECTOR: u64 = 512;

/// The places overlap: a source is overwritten soon after it was copied.
const SHORT: Case = Case {
    blocks: EMULATED,
    from: 34,
    to: 64,
    len: 100,
    units: 1,
    at_once: 2,
    flushes: Flushes::Cheap,
    label: 8,
};

/// The places are apart: every source stays.
const LONG: Case = Case {
    to: 2048,
    len: 90,
    ..SHORT
};

type Begin = fn(SimStore, SimDisk) -> Result<Move<SimDisk, SimStore>, MoveError>;
const BEGINS: [Begin; 2] = [Move::resume, Move::rollback];

fn both(setting: &Setting) -> (SimDisk, SimStore) {
    (
        SimDisk(setting.world.clone()),
        SimStore(setting.world.clone()),
    )
}

/// A move after a number of steps; `None` if it has ended by then.
fn stopped(case: &Case, steps: u64) -> Option<Setting> {
    let setting = Setting::new(case, 7);
    let (disk, store) = both(&setting);
    let mut moving = Move::start(setting.checked_plan(), disk, store).expect("a good plan");
    for _ in 0..steps {
        if moving.step().expect("no failure").is_some() {
            return None;
        }
    }
    Some(setting)
}

/// Goes on, or back, to the end.
fn go(setting: &Setting, begin: Begin) -> Result<Ending, MoveError> {
    let (disk, store) = both(setting);
    let mut moving = begin(store, disk)?;
    loop {
        if let Some(ending) = moving.step()? {
            return Ok(ending);
        }
    }
}

/// A block of the new place, or of the label, that cannot be read is written again: its data are in the source, or in the
/// plan. Both directions end, and nothing is lost.
#[test]
fn blocks_that_are_written_anyway_need_not_be_read() {
    let mut ended = 0;
    for setting in (0..).step_by(3).map_while(|steps| stopped(&LONG, steps)) {
        let plan = &setting.plan;
        let label = plan
            .hide
            .iter()
            .flat_map(|change| change.range().step_by(4096));
        let sectors: Vec<u64> = plan
            .new_place()
            .step_by(5 * SECTOR as usize)
            .chain(label)
            .collect();
        for at in sectors {
            for begin in BEGINS {
                let mark = setting.world.borrow().mark();
                let bad = (Which::Disk, at / SECTOR);
                setting
                    .world
                    .borrow_mut()
                    .faults
                    .unreadable
                    .insert(bad, true);
                let ending = go(&setting, begin)
                    .unwrap_or_else(|error| panic!("sector {}: {error}", at / SECTOR));
                setting.check_ending(Some(ending)).expect("right");
                let mut world = setting.world.borrow_mut();
                world.faults.unreadable.clear();
                world.back_to(mark);
                ended += 1;
            }
        }
    }
    assert!(ended > 200, "{ended}");
}

/// Moves everything and turns back; `spoil` makes blocks of the old place unreadable before the rollback begins.
fn go_back_over(
    spoil: impl Fn(&Setting, u64),
    on_loss: OnLoss,
    mut check: impl FnMut(&Setting, u64, Result<Vec<LostRange>, MoveError>),
) -> u32 {
    let mut tried = 0;
    for setting in (0..).step_by(7).map_while(|steps| stopped(&LONG, steps)) {
        let (disk, store) = both(&setting);
        let moving = Move::resume(store, disk).expect("a journal");
        if moving.progress().stage != Stage::Verifying {
            continue;
        }
        drop(moving);
        for at in setting.plan.old_place().step_by(5 * SECTOR as usize) {
            let mark = setting.world.borrow().mark();
            spoil(&setting, at);
            let ended = roll_back(&setting, on_loss);
            check(&setting, at, ended);
            let mut world = setting.world.borrow_mut();
            world.faults.unreadable.clear();
            world.back_to(mark);
            tried += 1;
        }
    }
    tried
}

/// Goes back to the end; the bytes that are lost by then.
fn roll_back(setting: &Setting, on_loss: OnLoss) -> Result<Vec<LostRange>, MoveError> {
    let (disk, store) = both(setting);
    let mut back = Move::rollback_with(store, disk, on_loss, Mutations::default())?;
    while back.step()?.is_none() {}
    Ok(back.lost())
}

fn make_unreadable(setting: &Setting, at: u64) {
    let bad = (Which::Disk, at / SECTOR);
    let unreadable = &mut setting.world.borrow_mut().faults.unreadable;
    unreadable.insert(bad, true);
}

/// A block of the old place goes bad during the move, and the new place still has its bytes: a rollback writes them there.
#[test]
fn a_rollback_restores_old_blocks_from_the_new_place() {
    let tried = go_back_over(make_unreadable, OnLoss::Stop, |setting, at, ended| {
        let lost = ended.unwrap_or_else(|error| panic!("byte {at}: {error}"));
        assert_eq!(lost, [], "byte {at}");
        setting
            .check_ending(Some(Ending::RolledBack))
            .unwrap_or_else(|error| panic!("byte {at}: {error}"));
    });
    assert!(tried > 15, "{tried}");
}

/// It goes bad at both places: the rollback stops, and goes on after the user accepts the loss. Then the block is named, and
/// has zeros that can be read.
#[test]
fn a_rollback_names_and_fills_blocks_that_went_bad_at_both_places() {
    let spoil = |setting: &Setting, at: u64| {
        let plan = &setting.plan;
        make_unreadable(setting, at);
        make_unreadable(setting, at - plan.from.0 + plan.to.0);
    };
    let is_signature = |setting: &Setting, start: u64| {
        let mut signatures = setting.plan.signatures.iter();
        signatures.any(|range| range.contains(&start))
    };
    let stopped = go_back_over(spoil, OnLoss::Stop, |setting, at, ended| {
        let start = at - setting.plan.from.0;
        if !is_signature(setting, start) {
            let error = ended.expect_err("a lost block");
            assert!(matches!(error, MoveError::Lost { .. }), "{error}");
        }
    });
    let named = go_back_over(spoil, OnLoss::Accept, |setting, at, ended| {
        let lost = ended.unwrap_or_else(|error| panic!("byte {at}: {error}"));
        let start = at - setting.plan.from.0;
        if is_signature(setting, start) {
            setting
                .check_ending(Some(Ending::RolledBack))
                .unwrap_or_else(|error| panic!("byte {at}: {error}"));
            return;
        }
        let is_it = |lost: &LostRange| {
            lost.kind == LossKind::Unreadable && lost.range == (start..start + SECTOR)
        };
        assert!(lost.iter().any(is_it), "byte {at}: {lost:?}");
        let (mut disk, _) = both(setting);
        let mut found = [1; SECTOR as usize];
        disk.read_at(at, &mut found)
            .unwrap_or_else(|error| panic!("byte {at}: {error}"));
        assert_eq!(found, [0; SECTOR as usize], "byte {at}");
        let as_expected = setting.check_ending_but(Ending::RolledBack, &lost, false, &(0..0));
        as_expected.unwrap_or_else(|error| panic!("byte {at}: {error}"));
    });
    assert!(stopped > 15 && named > 15, "{stopped}, {named}");
}

/// The whole move, and the bad blocks of `spoil` before its rollback; how that ended.
fn go_back_after(
    case: &Case,
    on_loss: OnLoss,
    spoil: impl Fn(&Setting),
) -> (Setting, Result<Vec<LostRange>, MoveError>) {
    let setting = copied(case);
    spoil(&setting);
    let ended = roll_back(&setting, on_loss);
    (setting, ended)
}

/// All bytes of the old place become others.
fn spoil_old_place(setting: &Setting) {
    let place = setting.plan.old_place();
    let others = vec![0x5a; (place.end - place.start) as usize];
    setting.world.borrow_mut().disk.write(place.start, &others);
}

/// A rollback restores all of a bad old place as long as the new place has the bytes: most of them without an image in the journal,
/// because the journal has little room.
#[test]
fn a_rollback_restores_a_whole_old_place() {
    let long = Case {
        to: 16_384,
        len: 8_190,
        units: 16,
        ..LONG
    };
    let (setting, ended) = go_back_after(&long, OnLoss::Stop, spoil_old_place);
    assert_eq!(ended.expect("copies"), []);
    setting
        .check_ending(Some(Ending::RolledBack))
        .expect("right");
}

/// More images than the journal has room for: it keeps the room for its other records, and the rest is named.
#[test]
fn images_of_bad_blocks_do_not_fill_the_journal() {
    let many = Case {
        to: 16_384,
        len: 8_190,
        units: 1,
        ..LONG
    };
    let (setting, ended) = go_back_after(&many, OnLoss::Stop, spoil_old_place);
    let error = ended.expect_err("not enough room");
    assert!(matches!(error, MoveError::Lost { .. }), "{error}");
    let lost = roll_back(&setting, OnLoss::Accept).expect("it ends");
    let whole: u64 = lost
        .iter()
        .map(|lost| lost.range.end - lost.range.start)
        .sum();
    assert!(0 < whole && whole < setting.plan.len, "{whole}");
    setting
        .check_ending_but(Ending::RolledBack, &lost, false, &(0..0))
        .expect("right or named");
}

/// A block that stays bad after every write does not stop a rollback whose user accepts the loss.
#[test]
fn blocks_that_cannot_be_written_do_not_stop_a_rollback() {
    for at in [0, 40, 60] {
        let bad = |setting: &Setting| {
            let sector = setting.plan.from.0 / SECTOR + at;
            let unreadable = &mut setting.world.borrow_mut().faults.unreadable;
            unreadable.insert((Which::Disk, sector), false);
        };
        let (setting, ended) = go_back_after(&LONG, OnLoss::Stop, bad);
        // A signature is written with its image, and has to arrive.
        if at == 0 {
            ended.expect_err("a signature that cannot be written");
            continue;
        }
        let error = ended.expect_err("a lost block");
        assert!(matches!(error, MoveError::Lost { .. }), "{at}: {error}");
        let lost = roll_back(&setting, OnLoss::Accept).expect("it ends");
        let start = at * SECTOR;
        assert!(covers(&lost, &(start..start + SECTOR)), "{at}: {lost:?}");
        setting
            .check_ending_but(Ending::RolledBack, &lost, false, &(0..0))
            .unwrap_or_else(|error| panic!("{at}: {error}"));
    }
}

/// The move could not read a block, and its loss was accepted. After the turn it can be read again: nothing is lost.
#[test]
fn a_block_that_can_be_read_again_is_not_lost() {
    let setting = stopped(&LONG, 0).expect("steps");
    let sector = (Which::Disk, setting.plan.from.0 / SECTOR + 45);
    let mut world = setting.world.borrow_mut();
    world.faults.unreadable.insert(sector, true);
    drop(world);
    let (disk, store) = both(&setting);
    let mut moving =
        Move::resume_with(store, disk, OnLoss::Accept, Mutations::default()).expect("a journal");
    until(&mut moving, Stage::Finishing);
    assert_eq!(moving.lost().len(), 1);
    drop(moving);
    setting.world.borrow_mut().faults.unreadable.clear();
    let lost = roll_back(&setting, OnLoss::Stop).expect("nothing is lost");
    assert_eq!(lost, []);
    setting
        .check_ending(Some(Ending::RolledBack))
        .expect("right");
}

/// A rollback wipes its markers after the partition can be used again. If it stops there, a later one leaves newer data alone.
#[test]
fn a_rollback_leaves_newer_data_alone() {
    let left = Case {
        from: 2048,
        to: 34,
        ..LONG
    };
    let setting = copied(&left);
    let (disk, store) = both(&setting);
    let mut back = Move::rollback(store.clone(), disk.clone()).expect("a journal");
    while !setting.has_gone_back() {
        assert_eq!(back.step().expect("no failure"), None);
    }
    drop(back);
    let plan = &setting.plan;
    let newer: Vec<u64> = [plan.signatures[0].start, 20 * SECTOR, 60 * SECTOR]
        .iter()
        .map(|offset| plan.from.0 + offset)
        .collect();
    for at in &newer {
        setting.world.borrow_mut().disk.write(*at, &[0x77; 512]);
    }
    let lost = roll_back(&setting, OnLoss::Stop).expect("only markers are left");
    assert_eq!(lost, []);
    for at in newer {
        let mut found = [0; 512];
        setting.world.borrow().disk.read(at, &mut found);
        assert_eq!(found, [0x77; 512], "byte {at}");
    }
}

/// A physical block of the old place goes bad as a whole. Sectors of it that were not copied are named before they become zeros.
#[test]
fn sectors_beside_a_restored_block_are_named() {
    let (mut whole, mut named) = (0, 0);
    for setting in (0..).map_while(|steps| stopped(&LONG, steps)) {
        let (disk, store) = both(&setting);
        let stage = Move::resume(store, disk)
            .expect("a journal")
            .progress()
            .stage;
        let unit = setting.plan.unit.bytes;
        let place = setting.plan.old_place();
        let inner = place.start.next_multiple_of(unit)..place.end / unit * unit;
        for at in inner
            .step_by(unit as usize)
            .filter(|_| stage == Stage::Copying)
        {
            let mark = setting.world.borrow().mark();
            for sector in (at..at + unit).step_by(SECTOR as usize) {
                make_unreadable(&setting, sector);
            }
            let ended = roll_back(&setting, OnLoss::Stop).or_else(|error| match error {
                MoveError::Lost { .. } => roll_back(&setting, OnLoss::Accept),
                error => Err(error),
            });
            let lost = ended.unwrap_or_else(|error| panic!("byte {at}: {error}"));
            setting
                .check_ending_but(Ending::RolledBack, &lost, false, &(0..0))
                .unwrap_or_else(|error| panic!("byte {at}, {lost:?}: {error}"));
            match lost.is_empty() {
                true => whole += 1,
                false => named += 1,
            }
            let mut world = setting.world.borrow_mut();
            world.faults.unreadable.clear();
            world.back_to(mark);
        }
    }
    assert!(whole > 50 && named > 2, "{whole}, {named}");
}

/// A rollback has written the label back, and the disk has lost that, and a part of the data: the label is written once more, and
/// the data are compared, since nobody can have used the partition.
#[test]
fn a_label_that_was_lost_is_written_back() {
    let mut lost_labels = 0;
    let setting = copied(&LONG);
    let (disk, store) = both(&setting);
    let mut back = Move::rollback(store, disk).expect("a journal");
    until(&mut back, Stage::Verifying);
    loop {
        match back.step().expect("no failure") {
            None if back.progress().stage != Stage::Finishing => continue,
            None => {}
            Some(_) => break,
        }
        let mark = setting.world.borrow().mark();
        for change in &setting.plan.hide {
            let disk = &mut setting.world.borrow_mut().disk;
            disk.write(change.at.0, &change.new);
            disk.write(setting.plan.from.0 + 45 * SECTOR, &[0x5a; 512]);
        }
        let lost = roll_back(&setting, OnLoss::Stop).expect("the journal has the label");
        assert_eq!(lost, []);
        setting
            .check_ending(Some(Ending::RolledBack))
            .expect("right");
        setting.world.borrow_mut().back_to(mark);
        lost_labels += 1;
    }
    assert!(lost_labels > 3, "{lost_labels}");
}

/// The places overlap, so that the old bytes of a window are where the copy of another one was. Every byte with a copy
/// comes back: nothing overwrites a copy before its window has it.
#[test]
fn the_last_windows_are_restored_first() {
    let setting = copied(&SHORT);
    let (disk, store) = both(&setting);
    let place = setting.plan.old_place();
    let mut moved = vec![0; (place.end - place.start) as usize];
    setting.world.borrow().disk.read(place.start, &mut moved);
    let mut back = Move::rollback(store, disk).expect("a journal");
    until(&mut back, Stage::Copying);
    until(&mut back, Stage::Verifying);
    drop(back);
    // As if none of the writes had arrived.
    setting.world.borrow_mut().disk.write(place.start, &moved);
    let lost = roll_back(&setting, OnLoss::Stop).expect("all copies are there");
    assert_eq!(lost, []);
    setting
        .check_ending(Some(Ending::RolledBack))
        .expect("right");
}

/// A move after all its windows.
fn copied(case: &Case) -> Setting {
    let setting = stopped(case, 0).expect("steps");
    let (disk, store) = both(&setting);
    let mut moving = Move::resume(store, disk).expect("a journal");
    until(&mut moving, Stage::Verifying);
    setting
}

/// Takes steps until the next one is of that stage.
fn until(moving: &mut Move<SimDisk, SimStore>, stage: Stage) {
    while moving.progress().stage != stage {
        assert_eq!(moving.step().expect("no failure"), None);
    }
}

/// A disk drops a write without a word. A verification finds it; then a rollback does not say that all is as it was.
#[test]
fn a_dropped_write_is_not_rolled_back_as_if_nothing_was_lost() {
    let mut found = 0;
    for after in 0..60 {
        let setting = stopped(&SHORT, 0).expect("steps");
        let fault = (Which::Disk, after, WriteFault::Dropped);
        setting.world.borrow_mut().faults.write = Some(fault);
        if let Ok(ending) = go(&setting, Move::resume) {
            setting.check_ending(Some(ending)).expect("right");
            continue;
        }
        if let Ok(ending) = go(&setting, Move::rollback) {
            setting
                .check_ending(Some(ending))
                .unwrap_or_else(|error| panic!("write {after}: {error}"));
        }
        found += 1;
    }
    assert!(found > 10, "{found}");
}

/// Takes one step, and cuts the power at its end. `fate` has the number of a unit that is in the cache, from 1 on, and the number of all.
fn cut_in_next_step(setting: &Setting, fate: impl Fn(usize, usize) -> Fate) -> usize {
    let mark = setting.world.borrow().mark();
    setting.world.borrow_mut().events = Some(Vec::new());
    let (disk, store) = both(setting);
    let mut moving = Move::resume(store, disk).expect("a journal");
    moving.step().expect("no failure");
    drop(moving);
    let mut world = setting.world.borrow_mut();
    let events = world.events.take().expect("events");
    world.faults.honest_flushes = None;
    world.back_to(mark);
    let mut cache = Cache::default();
    for event in &events {
        cache.take(event, &mut world);
    }
    let units = cache.units(&world);
    let all = units.len();
    let fates: Vec<Fate> = (1..=all).map(|number| fate(number, all)).collect();
    cache.cut(&units, &fates, &mut world);
    all
}

/// A false flush, and a power cut: the first window of a group is lost, and the next one, which overwrote its source,
/// is there. The move must not be reported as complete.
#[test]
fn a_flush_that_lied_is_not_taken_for_a_move() {
    let mut cut = 0;
    for steps in 0.. {
        let Some(setting) = stopped(&SHORT, steps) else {
            break;
        };
        let (disk, store) = both(&setting);
        let moving = Move::resume(store, disk).expect("a journal");
        if moving.progress().stage != Stage::Copying {
            continue;
        }
        drop(moving);
        setting.world.borrow_mut().faults.honest_flushes = Some(0);
        // Towards the end of the disk: the last unit is written first.
        let units = cut_in_next_step(&setting, |number, units| match number == units {
            true => Fate::Lost,
            false => Fate::Kept(1),
        });
        if units < 2 {
            continue;
        }
        for begin in BEGINS {
            let mark = setting.world.borrow().mark();
            if let Ok(ending) = go(&setting, begin) {
                setting
                    .check_ending(Some(ending))
                    .unwrap_or_else(|error| panic!("step {steps}: {error}"));
            }
            setting.world.borrow_mut().back_to(mark);
        }
        cut += 1;
    }
    assert!(cut > 3, "{cut}");
}

/// The power is cut after the sums of windows were noted and before the windows arrived, and a sector of a source changes meanwhile. A
/// resume names it and does not copy it. Later comparisons would find the wrong copy, too, but only after more was overwritten.
#[test]
fn a_source_that_changed_before_its_copy_arrived_is_named_at_once() {
    let mut named = 0;
    for setting in (0..).map_while(|steps| stopped(&LONG, steps)) {
        let (disk, store) = both(&setting);
        let moving = Move::resume(store, disk).expect("a journal");
        if moving.progress().stage != Stage::Copying {
            continue;
        }
        drop(moving);
        // The power is cut before the flush at the end of the step.
        setting.world.borrow_mut().faults.honest_flushes = Some(0);
        cut_in_next_step(&setting, |_, _| Fate::Lost);
        let plan = &setting.plan;
        for at in (0..plan.len).step_by(SECTOR as usize) {
            let mark = setting.world.borrow().mark();
            change_sector(&setting, plan.from.0 + at);
            let (of_right, has_copied) = resumed(&setting, at, None);
            if let Some(MoveError::Lost { ranges }) = of_right {
                assert!(!has_copied, "byte {at}");
                assert!(covers(&ranges, &(at..at + SECTOR)), "byte {at}: {ranges:?}");
                let (_, has_copied) = resumed(&setting, at, Some(Mutation::NoSourceSum));
                named += u64::from(has_copied);
            }
            setting.world.borrow_mut().back_to(mark);
        }
    }
    assert!(
        named > 30,
        "{named} sectors are named by this comparison alone"
    );
}

/// Turns all bits of a sector.
fn change_sector(setting: &Setting, at: u64) {
    let mut sector = [0; SECTOR as usize];
    let mut world = setting.world.borrow_mut();
    world.disk.read(at, &mut sector);
    world.disk.write(at, &sector.map(|byte| !byte));
}

/// The error of a resume with its first step, and whether it copied this sector of the partition. The writes are undone.
fn resumed(setting: &Setting, at: u64, mistake: Option<Mutation>) -> (Option<MoveError>, bool) {
    let mark = setting.world.borrow().mark();
    let (disk, store) = both(setting);
    let mutations = Mutations { on: mistake };
    let moving = Move::resume_with(store, disk, OnLoss::Stop, mutations);
    let error = moving.and_then(|mut moving| moving.step()).err();
    let mut sectors = [[0; SECTOR as usize]; 2];
    let mut world = setting.world.borrow_mut();
    let places = [setting.plan.from, setting.plan.to];
    for (place, sector) in places.into_iter().zip(&mut sectors) {
        world.disk.read(place.0 + at, sector);
    }
    world.back_to(mark);
    (error, sectors[0] == sectors[1])
}

fn disk_bytes(setting: &Setting) -> Vec<u8> {
    let mut bytes = vec![0; setting.plan.disk_bytes as usize];
    setting.world.borrow().disk.read(0, &mut bytes);
    bytes
}

/// Zeros reach whole units of the free part alone: no byte of the partition, of a neighbour in a shared unit or of the label.
/// The move ends afterwards, from its journal too.
#[test]
fn zeros_fill_only_the_free_part() {
    let left = Case {
        from: 64,
        to: 34,
        ..SHORT
    };
    let with_offset = Case {
        blocks: EMULATED_OFFSET,
        ..LONG
    };
    let large = Case {
        blocks: EMULATED_16K,
        ..LONG
    };
    let mut filled = 0;
    for case in [SHORT, LONG, left, with_offset, large] {
        let setting = Setting::new(&case, 7);
        let mut expected = disk_bytes(&setting);
        let unit = setting.plan.unit;
        let is_in = |place: std::ops::Range<u64>, at: u64| place.contains(&at);
        for start in (0..setting.plan.disk_bytes).filter(|at| at % unit.bytes == unit.offset) {
            let is_free = (start..start + unit.bytes).all(|at| {
                is_in(setting.plan.new_place(), at) && !is_in(setting.plan.old_place(), at)
            });
            if is_free {
                expected[start as usize..(start + unit.bytes) as usize].fill(0);
                filled += 1;
            }
        }
        let (disk, store) = both(&setting);
        let mut moving = Move::start(setting.checked_plan(), disk, store).expect("a good plan");
        let mut told = Vec::new();
        let is_done = moving
            .clear_new_place(|done, all| {
                told.push((done, all));
                ControlFlow::Continue(())
            })
            .expect("no failure");
        assert!(
            is_done && told.iter().all(|(done, all)| done < all),
            "{told:?}"
        );
        assert!(disk_bytes(&setting) == expected, "{case:?}");
        drop(moving);
        let ending = go(&setting, Move::resume).expect("no failure");
        setting.check_ending(Some(ending)).expect("right");
    }
    assert!(filled > 10, "{filled} units");
    // Behind the first step there may be data in the new place.
    let begun = stopped(&SHORT, 1).expect("steps");
    let (disk, store) = both(&begun);
    let mut moving = Move::resume(store, disk).expect("a journal");
    let before = disk_bytes(&begun);
    let refused = moving.clear_new_place(|_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(MoveError::Stopped)), "{refused:?}");
    assert!(disk_bytes(&begun) == before, "something was written");
}

/// A disk that drops the zeros keeps the move from its first step.
#[test]
fn zeros_that_did_not_arrive_stop_the_move() {
    let setting = Setting::new(&LONG, 7);
    let (disk, store) = both(&setting);
    let mut moving = Move::start(setting.checked_plan(), disk, store).expect("a good plan");
    setting.world.borrow_mut().faults.write = Some((Which::Disk, 0, WriteFault::Dropped));
    let refused = moving.clear_new_place(|_, _| ControlFlow::Continue(()));
    assert!(
        matches!(refused, Err(MoveError::NotAsWritten { .. })),
        "{refused:?}"
    );
}
