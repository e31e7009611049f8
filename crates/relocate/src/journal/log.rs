//! Appending to the journal, and reading it from the beginning.

use plumb_sys::AlignedBuffer;

use super::error::JournalError;
use super::fold::MoveState;
use super::record::{HEADER_BYTES, Image, JournalRecord, MAGIC, RecordHeader, Turn};
use super::sum::sum;
use crate::disk::{JOURNAL_BLOCK_BYTES_MIN, JournalStore};
use crate::moving::JournalId;
use crate::moving::plan::{Copying, Plan};
use crate::moving::script::Script;
use crate::mutation::{Mutation, Mutations};

/// Behind a record that cannot be read it is looked so far for good ones. One unsynced record is all that a crash can
/// spoil.
const LOOK_BEHIND_BYTES: u64 = 64 << 20;
/// So much of it is read at once; that much zeros are the end, since a preallocated file is empty behind the log.
const LOOK_AT_ONCE_BYTES: u64 = 64 << 10;
const LATER: &str = "a good record, since a later one is";
const BLOCK_BYTES_MIN: u64 = JOURNAL_BLOCK_BYTES_MIN as u64;
/// Room for records that a move without interruptions does not write.
const SLACK_BLOCKS: u64 = 1024;

/// A journal that is written.
pub(crate) struct Journal<J> {
    store: J,
    id: JournalId,
    block_bytes: u32,
    /// The position of the next record.
    at: u64,
    number: u64,
    before: u64,
    slot_at: u64,
    slot_bytes: u64,
    /// The record that was written last, and was not read again yet.
    unread: Option<(u64, AlignedBuffer)>,
    mutations: Mutations,
}

/// Whole blocks, in memory where direct I/O wants them.
fn read<J: JournalStore>(
    store: &mut J,
    at: u64,
    len: usize,
) -> Result<AlignedBuffer, JournalError> {
    let mut buffer = AlignedBuffer::new(len);
    store
        .read_at(at, &mut buffer)
        .map_err(|source| JournalError::Read { at, source })?;
    Ok(buffer)
}

/// The start of the records after the first: behind the slot.
fn places(plan: &Plan, begin_bytes: u64, block_bytes: u64) -> (u64, u64) {
    let slot_at = begin_bytes.next_multiple_of(block_bytes);
    let slot_bytes = match plan.copying {
        Copying::Windows(_) if plan.at_once == 1 => 0,
        Copying::Windows(bytes) | Copying::Batches(bytes) => plan
            .at_once
            .saturating_mul(bytes)
            .div_ceil(block_bytes)
            .saturating_mul(block_bytes),
    };
    (slot_at, slot_bytes)
}

/// Bytes that a journal keeps free for data behind its first record, and those that it has to have at the least, by the
/// payload of that record; `None` where no plan is in it that can be carried out.
#[must_use]
pub fn lengths(begin: &[u8], block_bytes: u32) -> Option<(u64, u64)> {
    match JournalRecord::decode(1, begin)? {
        JournalRecord::Begin(plan) if plan.check().is_ok() => Some((
            places(&plan, 0, block_bytes.into()).1,
            needed_bytes(&plan, block_bytes.into()),
        )),
        _ => None,
    }
}

/// Begins the journal of an unchecked plan, and touches no disk: `saved` are the signatures. For tests of journal
/// readers, because a file can contain anything. To continue from a journal, first prove that the disk is the one of
/// its move.
///
/// # Errors
/// A store that is too short, and errors of the system.
pub fn write_unchecked<J: JournalStore>(
    store: J,
    plan: &Plan,
    saved: &[Vec<u8>],
) -> Result<(), JournalError> {
    Journal::begin(store, plan, saved, Mutations::default()).map(|_| ())
}

fn record_bytes(record: &JournalRecord, block_bytes: u64) -> u64 {
    let id = JournalId([0; 16]);
    RecordHeader::encode(id, 0, 0, block_bytes as u32, record)
        .0
        .len() as u64
}

/// Bytes of a file that holds the journal of `plan`: of the move, and of a rollback from its end.
pub(crate) fn needed_bytes(plan: &Plan, block_bytes: u64) -> u64 {
    let begin = record_bytes(&JournalRecord::Begin(Box::new(plan.clone())), block_bytes);
    needed_behind(begin, plan, block_bytes)
}

/// The same, where the length of the first record is known.
fn needed_behind(begin_bytes: u64, plan: &Plan, block_bytes: u64) -> u64 {
    let (slot_at, slot_bytes) = places(plan, begin_bytes, block_bytes);
    let blocks_of = |bytes: u64| bytes.div_ceil(block_bytes) + 1;
    let saved: u64 = plan
        .signatures
        .iter()
        .map(|range| blocks_of(range.end - range.start))
        .sum();
    let moving = Script::forward(plan, Mutations::default());
    let back = Script::rollback(plan, moving.len(), Mutations::default());
    let steps = [moving, back]
        .iter()
        .map(|script| script.journal_blocks(plan, block_bytes))
        .sum::<u64>();
    let blocks = saved.saturating_add(steps).saturating_add(SLACK_BLOCKS);
    (slot_at + slot_bytes).saturating_add(blocks.saturating_mul(block_bytes))
}

impl<J: JournalStore> Journal<J> {
    /// Begins a journal: plan, signatures and the turn to move are durable when it returns.
    pub(crate) fn begin(
        store: J,
        plan: &Plan,
        saved: &[Vec<u8>],
        mutations: Mutations,
    ) -> Result<Self, JournalError> {
        let block_bytes = store.block_bytes();
        let needed = needed_bytes(plan, block_bytes.into());
        let found = store.len_bytes();
        if found < needed {
            return Err(JournalError::Full { needed, found });
        }
        let mut journal = Self {
            store,
            id: plan.journal,
            block_bytes,
            at: 0,
            number: 0,
            before: 0,
            slot_at: 0,
            slot_bytes: 0,
            unread: None,
            mutations,
        };
        journal.append_durable(&JournalRecord::Begin(Box::new(plan.clone())))?;
        (journal.slot_at, journal.slot_bytes) = places(plan, journal.at, block_bytes.into());
        journal.at = journal.slot_at + journal.slot_bytes;
        for (signature, bytes) in (0..).zip(saved) {
            journal.append_durable(&JournalRecord::Saved {
                signature,
                bytes: bytes.clone(),
            })?;
        }
        journal.append_durable(&JournalRecord::Turn(Turn::Move))?;
        Ok(journal)
    }

    /// Reads a journal and computes the state from all of it. Its content is durable on return.
    pub(crate) fn open(
        mut store: J,
        mutations: Mutations,
    ) -> Result<(Self, MoveState), JournalError> {
        store
            .sync()
            .map_err(|source| JournalError::Sync { source })?;
        let (journal, state) = Self::look(store, mutations)?;
        Ok((journal, state))
    }

    /// The same without a write to the file, for read-only use.
    pub(crate) fn look(store: J, mutations: Mutations) -> Result<(Self, MoveState), JournalError> {
        let mut journal = Self {
            store,
            id: JournalId([0; 16]),
            block_bytes: 0,
            at: 0,
            number: 0,
            before: 0,
            slot_at: 0,
            slot_bytes: 0,
            unread: None,
            mutations,
        };
        let Some((header, JournalRecord::Begin(plan))) = journal.read_record(0)? else {
            return Err(JournalError::None);
        };
        plan.check()?;
        journal.id = header.journal;
        journal.block_bytes = header.block_bytes;
        let is_own = plan.journal == header.journal && header.number == 0;
        if !is_own {
            return Err(JournalError::None);
        }
        journal.pass(&header);
        // In a file that was cut the log seems to end before it does.
        let needed = needed_behind(journal.at, &plan, header.block_bytes.into());
        let found = journal.store.len_bytes();
        if found < needed {
            return Err(JournalError::Cut { needed, found });
        }
        (journal.slot_at, journal.slot_bytes) =
            places(&plan, journal.at, header.block_bytes.into());
        journal.at = journal.slot_at.saturating_add(journal.slot_bytes);
        let mut state = MoveState::new(*plan);
        while let Some((header, record)) = journal.next_record()? {
            let (number, at) = (header.number, journal.at);
            state
                .fold(record, mutations)
                .map_err(|expected| JournalError::Damaged {
                    number,
                    at,
                    found: "another record",
                    expected,
                })?;
            journal.pass(&header);
        }
        Ok((journal, state))
    }

    fn pass(&mut self, header: &RecordHeader) {
        let len = header.len_bytes().unwrap_or(u64::MAX);
        self.at = self.at.saturating_add(
            len.div_ceil(u64::from(self.block_bytes)) * u64::from(self.block_bytes),
        );
        self.number += 1;
        self.before = header.sum;
    }

    /// The record that follows. `None` is the end of the log.
    fn next_record(&mut self) -> Result<Option<(RecordHeader, JournalRecord)>, JournalError> {
        let at = self.at;
        let found = self.read_record(at)?;
        if let Some((header, _)) = &found
            && header.journal == self.id
            && header.number == self.number
        {
            let follows = header.before == self.before && header.block_bytes == self.block_bytes;
            let expected = "one that follows the record before it";
            return if follows {
                Ok(found)
            } else {
                Err(self.damaged(expected))
            };
        }
        self.look_behind()?;
        Ok(None)
    }

    /// A good record behind one that is not: the log does not end here, it is broken.
    fn look_behind(&mut self) -> Result<(), JournalError> {
        let block = u64::from(self.block_bytes);
        let store_end = self.store.len_bytes() / block * block;
        let end = store_end.min(self.at.saturating_add(LOOK_BEHIND_BYTES));
        let mut at = self.at.saturating_add(block);
        // The stated end of the broken record; its length may be the broken part, and then others are tried.
        if let Some(next) = self.stated_end()?
            && self.is_later(next)?
        {
            return Err(self.damaged(LATER));
        }
        while at < end {
            let len = (end - at).min(LOOK_AT_ONCE_BYTES.next_multiple_of(block));
            let blocks = read(&mut self.store, at, len as usize)?;
            for (start, head) in (at..)
                .step_by(block as usize)
                .zip(blocks.chunks(block as usize))
            {
                if head.starts_with(MAGIC) && self.is_later(start)? {
                    return Err(self.damaged(LATER));
                }
            }
            // A block at once takes far less time than byte by byte up to the first that differs.
            if blocks
                .chunks(block as usize)
                .all(|bytes| bytes.iter().fold(0, |all, byte| all | byte) == 0)
            {
                break;
            }
            at += len;
        }
        Ok(())
    }

    fn stated_end(&mut self) -> Result<Option<u64>, JournalError> {
        if self.store.len_bytes().saturating_sub(self.at) < BLOCK_BYTES_MIN {
            return Ok(None);
        }
        let head = read(&mut self.store, self.at, BLOCK_BYTES_MIN as usize)?;
        let header = RecordHeader::decode(&head)
            .filter(|header| header.is_possible() && header.journal == self.id);
        let len = header.and_then(|header| header.len_bytes());
        Ok(len.map(|len| {
            self.at
                .saturating_add(len.next_multiple_of(self.block_bytes.into()))
        }))
    }

    /// Whether a good record of this journal begins there, with a number that is still to come.
    fn is_later(&mut self, at: u64) -> Result<bool, JournalError> {
        let record = self.read_record(at)?;
        Ok(record
            .is_some_and(|(header, _)| header.journal == self.id && header.number > self.number))
    }

    fn damaged(&self, expected: &'static str) -> JournalError {
        JournalError::Damaged {
            number: self.number,
            at: self.at,
            found: "a broken one",
            expected,
        }
    }

    /// The record at `at`, with any number, if it is whole.
    fn read_record(
        &mut self,
        at: u64,
    ) -> Result<Option<(RecordHeader, JournalRecord)>, JournalError> {
        let end = self.store.len_bytes();
        if end.saturating_sub(at) < BLOCK_BYTES_MIN {
            return Ok(None);
        }
        let head = read(&mut self.store, at, BLOCK_BYTES_MIN as usize)?;
        if !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let Some(header) = RecordHeader::decode(&head).filter(RecordHeader::is_possible) else {
            return Ok(None);
        };
        let len = header
            .len_bytes()
            .and_then(|len| len.checked_next_multiple_of(header.block_bytes.into()));
        let Some(blocks) = len.filter(|len| *len <= end - at) else {
            return Ok(None);
        };
        let bytes = match blocks == head.len() as u64 {
            true => head,
            false => read(&mut self.store, at, blocks as usize)?,
        };
        let len = HEADER_BYTES + header.payload_bytes as usize;
        Ok(header.record(&bytes[..len]).map(|record| (header, record)))
    }

    /// Writes a record behind the last one. It is not durable before [`sync`](Self::sync).
    pub(crate) fn append(&mut self, record: &JournalRecord) -> Result<(), JournalError> {
        let (bytes, sum) =
            RecordHeader::encode(self.id, self.number, self.before, self.block_bytes, record);
        let (at, found) = (self.at, self.store.len_bytes());
        let needed = at.saturating_add(bytes.len() as u64);
        if needed > found {
            return Err(JournalError::Full { needed, found });
        }
        let written = self.write(at, &bytes)?;
        self.unread = Some((at, written));
        self.at = needed;
        self.number += 1;
        self.before = sum;
        Ok(())
    }

    /// Whether this number of images, of units that are written again, leaves room for other records that a move without
    /// interruptions does not write.
    pub(crate) fn has_room_for_images(&self, images: u64, unit_bytes: u64) -> bool {
        // The image, and its header.
        let blocks = unit_bytes.div_ceil(self.block_bytes.into()) + 1;
        images.saturating_mul(blocks) <= SLACK_BLOCKS / 2
    }

    /// Whole blocks, filled up with zeros.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<AlignedBuffer, JournalError> {
        let mut buffer =
            AlignedBuffer::new(bytes.len().next_multiple_of(self.block_bytes as usize));
        buffer[..bytes.len()].copy_from_slice(bytes);
        self.store
            .write_at(at, &buffer)
            .map_err(|source| JournalError::Write { at, source })?;
        Ok(buffer)
    }

    /// Makes the writes durable, and reads the last record again: a silently dropped write would let a resume copy from
    /// an overwritten source.
    pub(crate) fn sync(&mut self) -> Result<(), JournalError> {
        if !self.mutations.has(Mutation::NoJournalFlush) {
            self.store
                .sync()
                .map_err(|source| JournalError::Sync { source })?;
        }
        let unread = self.unread.take();
        if let Some((at, written)) = unread.filter(|_| !self.mutations.has(Mutation::NoReadBack)) {
            let found = read(&mut self.store, at, written.len())?;
            if *found != *written {
                return Err(JournalError::NotAsWritten { at });
            }
        }
        Ok(())
    }

    pub(crate) fn append_durable(&mut self, record: &JournalRecord) -> Result<(), JournalError> {
        self.append(record)?;
        self.sync()
    }

    /// Puts data into the slot, durable on return. The former content of the slot must be on the disk by then.
    pub(crate) fn fill_slot(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let (at, len) = (self.slot_at, bytes.len() as u64);
        if len > self.slot_bytes {
            return Err(JournalError::Full {
                needed: len,
                found: self.slot_bytes,
            });
        }
        if len.is_multiple_of(self.block_bytes.into()) {
            self.store
                .write_at(at, bytes)
                .map_err(|source| JournalError::Write { at, source })?;
        } else {
            self.write(at, bytes)?;
        }
        self.sync()
    }

    /// Reads the slot again after it was filled.
    pub(crate) fn must_have_slot(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let found = self.slot(bytes.len() as u64)?;
        match *found == *bytes || self.mutations.has(Mutation::NoSlotReadBack) {
            true => Ok(()),
            false => Err(JournalError::NotAsWritten { at: self.slot_at }),
        }
    }

    /// Like [`slot`](Self::slot), with zeros in place of unreadable blocks: sums identify the right parts.
    pub(crate) fn slot_as_it_is(&mut self, len: u64) -> AlignedBuffer {
        if let Ok(bytes) = self.slot(len) {
            return bytes;
        }
        let mut bytes = AlignedBuffer::new(len as usize);
        let block = self.block_bytes as usize;
        for (at, piece) in (self.slot_at..).step_by(block).zip(bytes.chunks_mut(block)) {
            if let Ok(found) = read(&mut self.store, at, block) {
                piece.copy_from_slice(&found[..piece.len()]);
            }
        }
        bytes
    }

    /// The first `len` bytes of the slot.
    pub(crate) fn slot(&mut self, len: u64) -> Result<AlignedBuffer, JournalError> {
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len as u64 <= self.slot_bytes);
        let len = len.ok_or_else(|| self.spoiled_slot())?;
        let mut bytes = read(
            &mut self.store,
            self.slot_at,
            len.next_multiple_of(self.block_bytes as usize),
        )?;
        bytes.resize(len);
        Ok(bytes)
    }

    /// The error for a slot that does not match its record.
    pub(crate) fn spoiled_slot(&self) -> JournalError {
        JournalError::Damaged {
            number: self.number,
            at: self.slot_at,
            found: "data with another sum",
            expected: "those that were recorded",
        }
    }

    /// The bytes of an image that was recorded.
    pub(crate) fn image(&mut self, image: &Image) -> Result<AlignedBuffer, JournalError> {
        match image {
            Image::Inline(bytes) => {
                let mut buffer = AlignedBuffer::new(bytes.len());
                buffer.copy_from_slice(bytes);
                Ok(buffer)
            }
            Image::Slot { len, sum: expected } => {
                let bytes = self.slot(*len)?;
                if sum(&[&bytes]) == *expected {
                    Ok(bytes)
                } else {
                    Err(self.spoiled_slot())
                }
            }
        }
    }
}
