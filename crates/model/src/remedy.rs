//! A remedy: actions in order, the preceding steps, and the model's result.

use plumb_geometry::Bytes;
use plumb_stack::CellKind;
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::finding::Severity;
use crate::rule::RuleId;
use crate::target::Target;

/// How far the use of the data is interrupted, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disruption {
    /// Nothing notices.
    None,
    /// The data stay in use, and the disks are busy.
    Online,
    /// The data are unmounted.
    Unmounted,
    /// The data come back from a backup.
    RestoreFromBackup,
}

/// Something that must be done or hold before the first action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Precondition {
    /// Unmount a file system.
    Unmount {
        /// Its mount point.
        mount: String,
    },
    /// Boot another system: the root file system cannot be unmounted.
    BootOtherMedia,
    /// Take away, or stop, a volume that uses the device.
    Release {
        /// The volume.
        volume: String,
    },
    /// Make a backup, and compare it with the data.
    Backup {
        /// The device whose data it holds.
        device: String,
    },
    /// Make a partition of another disk for the data.
    OtherPartition,
}

/// An assumption that a proof rests on, because the finding rests on it as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RestsOn {
    /// The grid is all that is known below: it is assumed, or a virtual disk states it.
    Grid {
        /// The unit.
        what: CellKind,
        /// The device that has it.
        on: String,
    },
    /// The size of the I/O is assumed.
    IoSize {
        /// The size.
        bytes: Bytes,
    },
}

/// The model's result for a remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "kebab-case")]
pub enum Class {
    /// The finding is gone, and nothing is worse.
    Proven {
        /// Absent where all grids below are known.
        rests_on: Option<RestsOn>,
    },
    /// Nothing is worse, and the measure of the finding is at most half.
    Partial {
        /// The measure now: a share or a cost above the ideal.
        now: f64,
        /// The measure that remains.
        remains: f64,
    },
    /// Only a measurement tells.
    NeedsMeasurement {
        /// The command that measures.
        with: Measurement,
    },
}

/// A command that measures the effect of a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measurement {
    /// `plumb replay`.
    Replay,
    /// `plumb bench`.
    Bench,
}

/// Whether data may be in the place that a remedy overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Data may be there. Dumps never show the contrary.
    MayHoldData,
    /// The place was read and is empty: there is no data.
    KnownEmpty,
}

/// A way to remove a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// The model's result.
    #[serde(flatten)]
    pub class: Class,
    /// How far the use of the data is interrupted.
    pub disruption: Disruption,
    /// Whether the data survive.
    pub keeps_data: bool,
    /// Whether it can be taken back.
    pub is_reversible: bool,
    /// Whether data may be in the place that it overwrites.
    pub place: Place,
    /// The steps and conditions before it.
    pub first: Vec<Precondition>,
    /// The changes, in order.
    pub actions: Vec<Action>,
}

impl Remedy {
    /// A remedy with the facts that follow from its actions.
    #[must_use]
    pub fn new(
        class: Class,
        disruption: Disruption,
        place: Place,
        first: Vec<Precondition>,
        actions: Vec<Action>,
    ) -> Remedy {
        Remedy {
            class,
            disruption,
            keeps_data: actions.iter().all(Action::keeps_data),
            is_reversible: actions.iter().all(|action| action.inverse().is_some()),
            place,
            first,
            actions,
        }
    }

    /// Whether a report may recommend it: it is proven, and destroys nothing that may be needed.
    #[must_use]
    pub fn is_recommended(&self) -> bool {
        matches!(self.class, Class::Proven { .. })
            && (self.keeps_data || self.place == Place::KnownEmpty)
    }

    /// The order in which remedies are preferred: one that keeps data before one that does not, a reversible one before
    /// others, one that leaves the data in use before one that does not, and fewer actions before more.
    #[must_use]
    pub fn rank(&self) -> impl Ord + use<> {
        (
            !self.is_recommended(),
            !self.keeps_data,
            !self.is_reversible,
            self.disruption,
            self.actions.len(),
        )
    }
}

/// Why a way that suggests itself is not recommended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Obstacle {
    /// The finding would still be there.
    Remains,
    /// The rule could not tell any more.
    BecomesUnknown,
    /// Something else would be worse.
    Worse {
        /// The rule that would find it.
        rule: RuleId,
        /// Its target.
        target: Target,
        /// How bad it would be; absent where the rule could not tell any more.
        severity: Option<Severity>,
    },
    /// The model does not describe the change.
    NotModelled,
    /// So much is connected that not every way was judged.
    NotJudged,
}
