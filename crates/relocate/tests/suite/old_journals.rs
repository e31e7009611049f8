//! Journals of before there were records of losses and of units that are written again: written then, kept as seeds of the
//! fuzzer, and ended by the program of today.

use std::fs;
use std::hash::Hasher;
use std::path::Path;

use plumb_relocate::journal::lengths;
use plumb_relocate::moving::{Copying, Stage, recover_unchecked, status};
use plumb_relocate::{Direction, Ending, Plan};
use twox_hash::XxHash64;

#[path = "../../examples/relocate_seeds.rs"]
#[expect(dead_code, reason = "it writes the seeds of today")]
mod relocate_seeds;

use relocate_seeds::{BLOCK, BlankDisk, begun, go, plan};

/// Kinds that did not exist then.
const NEW_KINDS: [u8; 2] = [8, 9];

/// Records without their heads, as the seed has them: kind, length, payload.
fn records(seed: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut found, mut rest) = (Vec::new(), seed);
    while let [kind, low, high, behind @ ..] = rest {
        let (payload, next) = behind.split_at(usize::from(u16::from_le_bytes([*low, *high])));
        found.push((*kind, payload));
        rest = next;
    }
    found
}

/// The file, byte by byte as `docs/move.md` draws it.
fn journal(records: &[(u8, &[u8])], plan: &Plan) -> Vec<u8> {
    let (slot_bytes, file_bytes) = lengths(records[0].1, BLOCK as u32).expect("a plan");
    let mut file = vec![0; file_bytes as usize];
    let (mut at, mut before) = (0, 0u64);
    for (number, (kind, payload)) in (0u64..).zip(records) {
        let mut head = b"PLUMBJRN".to_vec();
        head.extend(plan.journal.0);
        head.extend(number.to_le_bytes());
        head.extend(u32::from(*kind).to_le_bytes());
        head.extend((BLOCK as u32).to_le_bytes());
        head.extend((payload.len() as u64).to_le_bytes());
        head.extend(before.to_le_bytes());
        let mut hasher = XxHash64::with_seed(0);
        hasher.write(&head);
        hasher.write(payload);
        before = hasher.finish();
        head.extend(before.to_le_bytes());
        let record = [&head[..], payload].concat();
        file[at..at + record.len()].copy_from_slice(&record);
        at += record.len().next_multiple_of(BLOCK);
        if number == 0 {
            at += slot_bytes as usize;
        }
    }
    file
}

/// Steps that records note, on the way forth and on the way back: images one by one, windows by groups. `None` for the way
/// back where it was not begun.
fn steps(records: &[(u8, &[u8])]) -> (usize, Option<usize>) {
    let is_turn = |(kind, payload): &(u8, &[u8])| *kind == 3 && payload[0] == 2;
    let count = |records: &[(u8, &[u8])]| {
        let noted = records.iter().filter(|(kind, _)| [5, 7].contains(kind));
        noted.count()
    };
    match records.iter().position(is_turn) {
        Some(turn) => (count(&records[..turn]), Some(count(&records[turn..]))),
        None => (count(records), None),
    }
}

/// The disk of such a move: it was blank before.
fn disk_of(plan: &Plan, (forth, back): (usize, Option<usize>)) -> BlankDisk {
    let mut disk = BlankDisk(vec![0; plan.disk_bytes as usize]);
    let mut store = vec![0; plan.journal_bytes(BLOCK as u32) as usize];
    go(&mut begun(plan, &mut disk, &mut store), forth);
    let Some(steps) = back else { return disk };
    let mut back =
        recover_unchecked(Direction::Back, &mut store, &mut disk).expect("a move on its way");
    for _ in 0..steps {
        // A comparison is no step of a journal.
        while back.progress().stage == Stage::Verifying {
            go(&mut back, 1);
        }
        go(&mut back, 1);
    }
    drop(back);
    disk
}

/// A blank disk whose partition has moved: the label is the finished one, and the fix-up is done.
fn moved_disk(plan: &Plan) -> Vec<u8> {
    let mut disk = vec![0; plan.disk_bytes as usize];
    disk[446..450].fill(2);
    disk[65_536 + 8192..][..4].fill(9);
    disk
}

/// Cut off behind each record from the turn to move on, and gone on with in both directions.
#[test]
fn journals_without_records_of_losses_are_gone_on_with() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/move_journal");
    let ways = [
        ("windows", Copying::Windows(8192), 1),
        ("groups", Copying::Windows(4096), 3),
        ("batches", Copying::Batches(8192), 1),
    ];
    let (mut moved, mut rolled_back) = (0, 0);
    for (name, copying, at_once) in ways {
        let plan = Plan {
            copying,
            at_once,
            ..plan()
        };
        let seed = fs::read(seeds.join(format!("{name}-back-before-losses"))).expect("a seed");
        let records = records(&seed);
        assert!(records.iter().all(|(kind, _)| !NEW_KINDS.contains(kind)));
        for len in 3..=records.len() {
            let done = steps(&records[..len]);
            for turns_back in [false, true] {
                let mut store = journal(&records[..len], &plan);
                let mut disk = disk_of(&plan, done);
                let said = status(&mut store).expect("a journal");
                assert_eq!((&said.plan, said.lost.len()), (&plan, 0), "{name} {len}");
                assert_eq!(said.progress.is_back, done.1.is_some(), "{name} {len}");
                let going = match turns_back {
                    true => recover_unchecked(Direction::Back, &mut store, &mut disk),
                    false => recover_unchecked(Direction::Forward, &mut store, &mut disk),
                };
                let mut going = going.expect("a journal that goes on");
                let ending = loop {
                    if let Some(ending) = going.step().expect("memory does not fail") {
                        break ending;
                    }
                };
                drop(going);
                let expected = match turns_back || done.1.is_some() {
                    true => {
                        rolled_back += 1;
                        (Ending::RolledBack, vec![0; disk.0.len()])
                    }
                    false => {
                        moved += 1;
                        (Ending::Moved, moved_disk(&plan))
                    }
                };
                assert_eq!(ending, expected.0, "{name} {len}");
                assert!(disk.0 == expected.1, "{name} {len}: another disk");
                let said = status(&mut store).expect("a journal");
                assert_eq!((said.ending, said.lost.len()), (Some(ending), 0), "{name}");
            }
        }
    }
    assert!(moved > 20 && rolled_back > 30, "{moved}, {rolled_back}");
}
