//! Plumb's own records of changes to disks: the label that was there before, and the journal of a move.
//!
//! Both have checksums that no mutation gets past, so that the bytes are the inside: of a label without its last four
//! bytes, of a journal as records without their heads.

use std::collections::HashMap;
use std::hash::Hasher;
use std::io;
use std::ops::{Range, RangeFrom};

use plumb_relocate::disk::{Disk, JournalStore};
use plumb_relocate::journal::lengths;
use plumb_relocate::labels::saved::SavedLabel;
use plumb_relocate::moving::{WrittenPlace, recover_unchecked, status};
use plumb_relocate::preflight::DiskWords;
use plumb_relocate::signatures::{self, markers};
use plumb_relocate::{Direction, Ending, Marker, Move, Stage, Status};

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
/// Moves of more bytes take long and show nothing else.
const MOVED_MAX: u64 = 1 << 20;
/// And longer journals.
const JOURNAL_MAX: u64 = 16 << 20;
/// Steps that are taken behind the end of the journal.
const STEPS: usize = 64;

/// Reads the bytes as a saved label, as they are and with the right checksum; a label that can be read can be written again.
pub fn saved_label(data: &[u8]) -> bool {
    let mut is_label = false;
    let body = &data[..data.len().saturating_sub(4)];
    let sealed = [body, &crc32fast::hash(body).to_le_bytes()].concat();
    for bytes in [data, &sealed] {
        match SavedLabel::decode("input", bytes) {
            Ok(saved) => {
                let again = SavedLabel::decode("again", &saved.encode())
                    .expect("a written label can be read");
                assert!(again.change == saved.change, "the change is another one");
                assert_eq!(
                    (again.disk_bytes, again.sector_bytes),
                    (saved.disk_bytes, saved.sector_bytes)
                );
                is_label = true;
            }
            Err(error) => assert!(error.to_string().starts_with("input"), "{error}"),
        }
    }
    is_label
}

/// Reads the bytes as a journal, and goes on with the move on a disk that is hidden as the journal says, forwards and back.
pub fn move_journal(data: &[u8]) -> bool {
    let _ = Marker::decode(&data[..data.len().min(512)]);
    let mut journal = if data.starts_with(MAGIC) {
        data.to_vec()
    } else {
        composed(data)
    };
    let found = match status(&mut journal) {
        Ok(found) => found,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error says something");
            return false;
        }
    };
    let (plan, progress) = (&found.plan, found.progress);
    assert!(
        progress.bytes <= progress.bytes_total,
        "more is done than there is"
    );
    plan.check().expect("a plan that can be carried out");
    let _ = DiskWords::parse(&plan.disk);
    let places = plan.union();
    if places.end - places.start > MOVED_MAX || plan.unit.bytes > MOVED_MAX {
        return false;
    }
    let mut is_ended = false;
    for turns_back in [false, true] {
        let (mut store, disk) = (journal.clone(), Sparse::from_status(&found));
        let begun = match turns_back {
            false => recover_unchecked(Direction::Forward, &mut store, disk),
            true => recover_unchecked(Direction::Back, &mut store, disk),
        };
        let ending = match begun {
            Ok(going) => {
                assert!(found.ending.is_none(), "a finished move goes on");
                go(going)
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error says something");
                found.ending
            }
        };
        let after = status(&mut store).expect("appended entries can be read");
        assert_eq!(after.ending, ending, "the journal knows how it ended");
        is_ended |= ending.is_some();
    }
    is_ended
}

/// How a move ended, if it did.
fn go<D: Disk, J: JournalStore>(mut going: Move<D, J>) -> Option<Ending> {
    for _ in 0..STEPS {
        match going.step() {
            Ok(None) => {}
            Ok(ending) => return ending,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error says something");
                return None;
            }
        }
    }
    None
}

const MAGIC: &[u8] = b"PLUMBJRN";

/// Heads and sums for records: each is its kind in a byte, the length of its payload in two, and that.
fn composed(data: &[u8]) -> Vec<u8> {
    let (mut journal, mut rest, mut before) = (Vec::new(), data, 0u64);
    let (mut id, mut needed) = ([0; 16], 0);
    for number in 0u64.. {
        let Some((&[kind, low, high], behind)) = rest.split_first_chunk::<3>() else {
            break;
        };
        let (payload, behind) =
            behind.split_at(usize::from(u16::from_le_bytes([low, high])).min(behind.len()));
        rest = behind;
        if let (0, Some(last)) = (number, payload.last_chunk::<16>()) {
            id = *last;
        }
        let mut record = [
            MAGIC,
            &id,
            &number.to_le_bytes(),
            &u32::from(kind).to_le_bytes(),
        ]
        .concat();
        record.extend((BLOCK as u32).to_le_bytes());
        record.extend((payload.len() as u64).to_le_bytes());
        record.extend(before.to_le_bytes());
        let mut hasher = twox_hash::XxHash64::with_seed(0);
        hasher.write(&record);
        hasher.write(payload);
        before = hasher.finish();
        record.extend(before.to_le_bytes());
        record.extend(payload);
        journal.extend(record);
        let mut slot = 0;
        if number == 0 {
            (slot, needed) = room(payload).unwrap_or_default();
        }
        journal.resize(journal.len().next_multiple_of(BLOCK) + slot, 0);
    }
    // Room for the writes behind it, and no less than the move would have made.
    journal.resize(needed.max(journal.len() + 64 * BLOCK), 0);
    journal
}

/// Bytes between the first record and the others, and of all.
fn room(plan: &[u8]) -> Option<(usize, usize)> {
    let (slot, all) = lengths(plan, BLOCK as u32)?;
    let is_short = slot <= MOVED_MAX && all <= JOURNAL_MAX;
    is_short.then_some((usize::try_from(slot).ok()?, usize::try_from(all).ok()?))
}

/// A disk of zeros but for the label of type *moving*, and the writes to it. A write outside of the places of the plan
/// is a failure.
struct Sparse {
    places: Vec<WrittenPlace>,
    len: u64,
    logical: u32,
    physical: u32,
    sectors: HashMap<u64, [u8; SECTOR]>,
}

impl Sparse {
    /// The disk on which a move is at the position of its journal; a label that is not hidden yet is the old one.
    fn from_status(found: &Status) -> Self {
        let plan = &found.plan;
        let mut disk = Self {
            places: plan.places(),
            len: plan.disk_bytes,
            logical: plan.logical_block_bytes,
            physical: plan.physical_block_bytes,
            sectors: HashMap::new(),
        };
        for change in &plan.hide {
            let is_old = found.progress.stage == Stage::Hiding;
            let bytes = if is_old { &change.old } else { &change.new };
            for (at, byte) in (change.at.0..).zip(bytes) {
                let sector = disk
                    .sectors
                    .entry(at / SECTOR as u64)
                    .or_insert([0; SECTOR]);
                sector[(at % SECTOR as u64) as usize] = *byte;
            }
        }
        disk
    }

    /// Numbers of the sectors of whole logical blocks.
    fn numbers(&self, at: u64, len: usize) -> RangeFrom<u64> {
        let logical = u64::from(self.logical);
        assert!(
            at.is_multiple_of(logical) && (len as u64).is_multiple_of(logical),
            "not whole blocks"
        );
        assert!(
            at.checked_add(len as u64)
                .is_some_and(|end| end <= self.len),
            "past the end"
        );
        at / SECTOR as u64..
    }
}

/// Whether places cover a range together.
fn covers(places: &[WrittenPlace], mut range: Range<u64>) -> bool {
    while range.start < range.end {
        let place = places
            .iter()
            .find(|place| place.range.contains(&range.start));
        match place {
            Some(place) => range.start = place.range.end,
            None => return false,
        }
    }
    true
}

/// Reads the bytes as the content of a partition, with markers where a move writes them. No content makes a file a journal,
/// and a marker behind an intact signature is never found.
pub fn marker(data: &[u8]) -> bool {
    let block = if data.first().is_some_and(|byte| byte & 1 == 1) {
        4096
    } else {
        512
    };
    let mut partition = data.to_vec();
    partition.resize(data.len().next_multiple_of(4096).max(8192), 0);
    let place = 0..partition.len() as u64;
    let found = markers(&partition, &place, block);
    let signatures =
        signatures::find(&partition, &place, block.into()).expect("memory can be read");
    for (at, marker) in &found {
        let sector = &partition[*at as usize..][..SECTOR];
        assert_eq!(
            Marker::decode(sector).as_ref(),
            Some(marker),
            "at byte {at}"
        );
        assert!(at.is_multiple_of(block.into()), "byte {at} is no block");
        assert!(
            signatures.iter().all(|signature| signature.range.end > *at),
            "an intact signature is before byte {at}"
        );
    }
    !found.is_empty()
}

impl Disk for Sparse {
    fn len_bytes(&self) -> u64 {
        self.len
    }

    fn logical_block_bytes(&self) -> u32 {
        self.logical
    }

    fn physical_block_bytes(&self) -> u32 {
        self.physical
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        for (number, sector) in self
            .numbers(at, buffer.len())
            .zip(buffer.chunks_mut(SECTOR))
        {
            sector.copy_from_slice(self.sectors.get(&number).unwrap_or(&[0; SECTOR]));
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        assert!(
            covers(&self.places, at..end),
            "bytes {at} to {end} are outside of the plan"
        );
        for (number, sector) in self.numbers(at, bytes.len()).zip(bytes.as_chunks().0) {
            if *sector == [0; SECTOR] {
                self.sectors.remove(&number);
            } else {
                self.sectors.insert(number, *sector);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
