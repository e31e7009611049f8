//! A partition's data moved so that no crash loses a byte: label and signatures hidden, windows copied, label and
//! signatures brought back, and all of it undone from any point.
//!
//! `docs/move.md` has the steps, the reasons for their order and the fault model. Left out: the choice of the label,
//! users of the partition, and the place of the journal: [`crate::preflight`] checks these, and no move begins or
//! continues with a plan that is not [`Checked`].

mod ahead;
mod clear;
mod copy;
pub(crate) mod edit;
mod error;
mod holes;
mod label;
pub(crate) mod loss;
mod mend;
mod pace;
pub(crate) mod plan;
mod read;
pub(crate) mod script;
mod settle;
mod status;
mod verify;
mod windows;
mod write;

use std::ops::ControlFlow;

use plumb_sys::AlignedBuffer;

pub use self::error::MoveError;
pub use self::loss::{LossKind, LostRange, OnLoss};
pub use self::plan::{
    ByteChange, Copying, JournalId, PlaceKind, Plan, PlanError, UNIT_BYTES_MIN, WINDOW_BYTES_MAX,
    WINDOWS_FROM_BYTES, WrittenPlace,
};
pub use self::script::Stage;
pub use self::status::{Status, Torn, never_begun, status};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Ending, Journal, JournalError, JournalRecord, MoveState, Turn};
use crate::moving::ahead::Ahead;
use crate::moving::pace::WindowPace;
use crate::moving::read::{read, read_what_can_be};
use crate::moving::script::{Action, Script};
use crate::moving::verify::Checks;
use crate::moving::windows::Windows;
use crate::moving::write::TargetDisk;
use crate::mutation::{Mutation, Mutations};
use crate::preflight::{Checked, Direction, Recovery};

/// How far a move has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Whether it is a rollback.
    pub is_back: bool,
    /// The stage of the next step.
    pub stage: Stage,
    /// Bytes of the partition that are where they belong (while verifying: that were read again).
    pub bytes: u64,
    /// Bytes that have to come there. In a rollback only those that the move had overwritten.
    pub bytes_total: u64,
}

/// A move or its rollback that is being carried out.
///
/// Between two [`step`](Self::step)s it can be dropped, and resumed later from its journal.
pub struct Move<D, J> {
    disk: TargetDisk<D>,
    journal: Journal<J>,
    state: MoveState,
    script: Script,
    ahead: Option<Ahead>,
    /// Memory that was used, and will be.
    spare: AlignedBuffer,
    pace: WindowPace,
    /// The windows of the move, also on the way back.
    forward: Windows,
    checks: Checks,
    on_loss: OnLoss,
    has_stopped: bool,
    mutations: Mutations,
}

/// Goes on, or back, from a journal on a disk that nobody has checked. For tests of those who read journals, as
/// [`write_unchecked`](crate::journal::write_unchecked) is: no program calls it.
///
/// # Errors
/// As for [`Move::recover`].
pub fn recover_unchecked<D: Disk, J: JournalStore>(
    direction: Direction,
    store: J,
    disk: D,
) -> Result<Move<D, J>, MoveError> {
    Move::go(direction, store, disk, OnLoss::Stop)
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Begins a move: when it returns the journal has all that is needed, durable, and the disk is as it was. The
    /// partition must not be in use, nor anything else write to [`Plan::bystanders`] or to the disk's label.
    ///
    /// # Errors
    /// A plan that is not possible on this disk, a label that is not the plan's, a journal that is too short, and
    /// errors of the system.
    pub fn start(plan: Checked<Plan>, disk: D, store: J) -> Result<Self, MoveError> {
        Self::start_with(plan.into_inner(), disk, store, Mutations::default())
    }

    /// Continues, or turns back: the following steps restore the partition. A rollback that was begun before continues
    /// in any direction.
    ///
    /// # Errors
    /// A journal that differs from the checked one, is damaged or has ended, a disk that is not the plan's, and errors
    /// of the system.
    pub fn recover(recovery: Checked<Recovery>, mut store: J, disk: D) -> Result<Self, MoveError> {
        let recovery = recovery.into_inner();
        let found = status(&mut store)?.plan.journal;
        if found != recovery.journal {
            let expected = recovery.journal;
            return Err(MoveError::OtherJournal { found, expected });
        }
        Self::go(recovery.direction, store, disk, recovery.on_loss)
    }

    fn go(direction: Direction, store: J, disk: D, on_loss: OnLoss) -> Result<Self, MoveError> {
        let mutations = Mutations::default();
        match direction {
            Direction::Forward => Self::resume_with(store, disk, on_loss, mutations),
            Direction::Back => Self::rollback_with(store, disk, on_loss, mutations),
        }
    }

    /// For simulated disks, which have no system around them.
    #[cfg(test)]
    pub(crate) fn resume(store: J, disk: D) -> Result<Self, MoveError> {
        Self::go(Direction::Forward, store, disk, OnLoss::Stop)
    }

    /// For simulated disks, which have no system around them.
    #[cfg(test)]
    pub(crate) fn rollback(store: J, disk: D) -> Result<Self, MoveError> {
        Self::go(Direction::Back, store, disk, OnLoss::Stop)
    }

    pub(crate) fn start_with(
        plan: Plan,
        disk: D,
        store: J,
        mutations: Mutations,
    ) -> Result<Self, MoveError> {
        plan.check()?;
        plan.check_against(&disk)?;
        let mut disk = TargetDisk::new(disk, &plan);
        for change in &plan.hide {
            let found = read(&mut disk, change.at.0, change.old.len(), &plan)?;
            if found != change.old {
                return Err(MoveError::Changed { at: change.at.0 });
            }
        }
        let saved = plan.signatures.iter().map(|range| {
            let len = (range.end - range.start) as usize;
            read(&mut disk, plan.from.0 + range.start, len, &plan)
        });
        let saved = saved.collect::<Result<Vec<_>, _>>()?;
        let journal = Journal::begin(store, &plan, &saved, mutations)?;
        let script = Script::forward(&plan, mutations);
        let mut state = MoveState::new(plan);
        state.saved = saved;
        state.script = Some(script.clone());
        Ok(Self::new(disk, journal, state, script, mutations))
    }

    pub(crate) fn resume_with(
        store: J,
        disk: D,
        on_loss: OnLoss,
        mutations: Mutations,
    ) -> Result<Self, MoveError> {
        Self::reopen(store, disk, on_loss, mutations, false)
    }

    fn reopen(
        store: J,
        disk: D,
        on_loss: OnLoss,
        mutations: Mutations,
        turns_back: bool,
    ) -> Result<Self, MoveError> {
        let (journal, state) = Journal::open(store, mutations)?;
        if let Some(ending) = state.ending {
            return Err(MoveError::Ended { ending });
        }
        let Some(script) = state.script.clone() else {
            return Err(JournalError::NotBegun.into());
        };
        state.plan.check_against(&disk)?;
        let disk = TargetDisk::new(disk, &state.plan);
        let mut this = Self {
            on_loss,
            ..Self::new(disk, journal, state, script, mutations)
        };
        this.must_be_its_label(turns_back)?;
        this.begin_checks()?;
        // After a kill, data may still be in the disk's cache: they must not be taken for durable when they are read.
        this.disk.flush()?;
        this.settle_mend(turns_back)?;
        this.check_before_last()?;
        if !mutations.has(Mutation::NoDirection) {
            this.journal
                .append_durable(&JournalRecord::Turn(Turn::Resume))?;
        }
        this.settle(turns_back)?;
        this.restore_images()?;
        Ok(this)
    }

    pub(crate) fn rollback_with(
        store: J,
        disk: D,
        on_loss: OnLoss,
        mutations: Mutations,
    ) -> Result<Self, MoveError> {
        let mut this = Self::reopen(store, disk, on_loss, mutations, true)?;
        if this.script.is_back() {
            return Ok(this);
        }
        let from = this.state.next;
        let script = Script::rollback(&this.state.plan, from, mutations);
        this.must_be_unused(&script)?;
        if !mutations.has(Mutation::NoDirection) {
            this.journal
                .append_durable(&JournalRecord::Turn(Turn::Rollback { from }))?;
        }
        this.state.turn_back(from, mutations);
        this.ahead = None;
        this.script = script;
        this.checks = Checks::default();
        Ok(this)
    }

    /// The way back begins with the bytes that were restored at the new place: all of them must be unchanged since.
    fn must_be_unused(&mut self, back: &Script) -> Result<(), MoveError> {
        for action in back.head() {
            if matches!(action, Action::Label { .. }) {
                continue;
            }
            let Some(edit) = edit::for_action(&self.state.plan, &self.state.saved, action) else {
                continue;
            };
            let len = edit.bytes.len();
            let (found, holes) = read_what_can_be(&mut self.disk, edit.at, len, &self.state.plan)?;
            let own = edit.at..edit.at + len as u64;
            if !edit.fits(&found, &holes) && !self.is_lost(&own) {
                return Err(MoveError::Used { at: edit.at });
            }
        }
        Ok(())
    }

    fn new(
        disk: TargetDisk<D>,
        journal: Journal<J>,
        state: MoveState,
        script: Script,
        mutations: Mutations,
    ) -> Self {
        Self {
            disk,
            journal,
            forward: Windows::forward(&state.plan, mutations),
            state,
            script,
            ahead: None,
            spare: AlignedBuffer::default(),
            pace: WindowPace::default(),
            checks: Checks::default(),
            on_loss: OnLoss::Stop,
            has_stopped: false,
            mutations,
        }
    }

    /// The plan of the move.
    pub fn plan(&self) -> &Plan {
        &self.state.plan
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let progress = Progress {
            is_back: self.script.is_back(),
            stage: self.script.stage(self.state.next),
            bytes: 0,
            bytes_total: 0,
        };
        if let Some((bytes, bytes_total)) = self.checked_bytes() {
            return Progress {
                stage: Stage::Verifying,
                bytes,
                bytes_total,
                ..progress
            };
        }
        let (bytes, bytes_total) = self.script.bytes_at(self.state.next);
        let stage = if self.state.ending.is_some() {
            Stage::Done
        } else {
            progress.stage
        };
        Progress {
            stage,
            bytes,
            bytes_total,
            ..progress
        }
    }

    /// Bytes of the partition that could not be brought along so far.
    pub fn lost(&self) -> Vec<LostRange> {
        self.state.lost_for_good()
    }

    /// Carries out the next step, and makes it durable. `Some` when it was the last one.
    ///
    /// # Errors
    /// The fault. Nothing is lost, and no further step is taken: the move continues when it is resumed from its
    /// journal.
    pub fn step(&mut self) -> Result<Option<Ending>, MoveError> {
        if self.has_stopped {
            return Err(MoveError::Stopped);
        }
        // The journal records the result of a step that failed half way.
        self.has_stopped = true;
        let ending = self.advance()?;
        self.has_stopped = false;
        Ok(ending)
    }

    fn advance(&mut self) -> Result<Option<Ending>, MoveError> {
        if let Some(ending) = self.state.ending {
            return Ok(Some(ending));
        }
        if self.check_next()? {
            return Ok(None);
        }
        if let Some(action) = self.script.get(self.state.next) {
            self.perform(&action)?;
            return Ok(None);
        }
        // A write that went elsewhere may have hit it.
        self.must_be_final_label()?;
        let ending = if self.script.is_back() {
            Ending::RolledBack
        } else {
            Ending::Moved
        };
        self.journal.append_durable(&JournalRecord::End(ending))?;
        self.state.ending = Some(ending);
        Ok(Some(ending))
    }

    /// Carries out all remaining steps. `watch` gets the progress before each of them, and can stop it there; then the
    /// answer is `None`, and the move continues when it is resumed.
    ///
    /// # Errors
    /// As for [`step`](Self::step).
    pub fn run(
        &mut self,
        mut watch: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Option<Ending>, MoveError> {
        loop {
            if watch(&self.progress()).is_break() {
                return Ok(None);
            }
            if let Some(ending) = self.step()? {
                let _ = watch(&self.progress());
                return Ok(Some(ending));
            }
        }
    }
}
