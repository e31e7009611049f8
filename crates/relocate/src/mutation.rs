//! Mistakes that tests switch on, to verify that the simulation would find them. Only tests have them.

use crate::preflight::PreflightCheck;

/// One mistake.
#[cfg_attr(not(test), allow(dead_code, reason = "made by tests alone"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// No flush between two windows.
    NoBarrier,
    /// No flush before the slot is filled again.
    NoSlotBarrier,
    /// Windows are written before their sums are durable.
    LateSums,
    /// The journal is never synced.
    NoJournalFlush,
    /// A rollback that the journal does not record.
    NoDirection,
    /// A window whose record is there is taken for written.
    NoSumCheck,
    /// Edges are written as if no neighbour shared their block.
    NoEdges,
    /// Signatures stay readable.
    NoHiding,
    /// The label names the new place before the data are there.
    LabelFirst,
    /// A window that overlaps its own source.
    LongWindow,
    /// Windows go back in the order in which they came.
    WrongEnd,
    /// A record of the journal is not read again.
    NoReadBack,
    /// A source that is read again is not compared with its sum.
    NoSourceSum,
    /// The data that go back are not compared before.
    NoCheckBefore,
    /// The data that went back are not compared.
    NoCheckAfter,
    /// A later resume does not compare the copied data again.
    NoCheckAgain,
    /// Blocks that cannot be read become zeros without a word.
    SilentLoss,
    /// Losses are named and not noted in the journal.
    NoLossRecord,
    /// A unit is written again without its image.
    NoMendImage,
    /// A write that is not read again at once.
    NoArrival,
    /// The journal's slot is not read again where a block has bytes of others.
    NoSlotReadBack,
    /// The copied data are not compared before the label comes back.
    NoCheckMoved,
    /// An image that is on the disk is written again.
    TwoWrites,
    /// A loss beside a block that was restored is noted as one of the next step.
    LossOfNextStep,
    /// Blocks that a move found unreadable become zeros when it goes back.
    OldBlocksMended,
    /// A rollback takes back losses that a sum has shown.
    UnprovenForgotten,
    /// Something is not asked before a move.
    NoPreflight(PreflightCheck),
}

/// The mistakes that are switched on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mutations {
    #[cfg(test)]
    pub(crate) on: Option<Mutation>,
}

impl Mutations {
    #[cfg(test)]
    pub(crate) fn has(self, mutation: Mutation) -> bool {
        self.on == Some(mutation)
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the tests' twin looks at itself")]
    pub(crate) fn has(self, _: Mutation) -> bool {
        false
    }
}
