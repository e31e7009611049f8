//! Commands that remedy a finding, and facts that a reader must know about them.

use std::borrow::Cow;

use plumb_geometry::Bytes;
use plumb_quoting::shell::Undo;
use plumb_quoting::{Command, CommandLine, NoCommand, WayBack};
use serde::{Deserialize, Serialize};

use crate::action::Effect;
use crate::remedy::Obstacle;
use crate::rule::RuleId;
use crate::target::Target;

/// One command, or change by hand, of a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// Command to run.
    pub command: CommandLine,
    /// The worst that it does.
    pub effect: Effect,
    /// Other risks; absent if none are known.
    pub risk: Option<Cow<'static, str>>,
    /// The way back.
    pub undo: WayBack,
}

impl Fix {
    /// A step of a remedy.
    ///
    /// # Errors
    /// If no command can hold one of the names.
    pub fn new(
        command: Command,
        effect: Effect,
        risk: &'static str,
        undo: impl Into<Undo>,
    ) -> Result<Fix, NoCommand> {
        Ok(Fix {
            command: command.line()?,
            effect,
            risk: Some(Cow::Borrowed(risk)),
            undo: undo.into().way_back()?,
        })
    }

    /// A step that only looks.
    ///
    /// # Errors
    /// As [`Fix::new`].
    pub fn look(command: Command) -> Result<Fix, NoCommand> {
        Ok(Fix {
            command: command.line()?,
            effect: Effect::ReadsOnly,
            risk: None,
            undo: Undo::Words("nothing to undo").way_back()?,
        })
    }
}

/// Facts that a reader must know about the remedy of a finding. Texts in it are those of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Advice {
    /// The device is inside the file of a virtual disk, where no tool can change it.
    AttachImage,
    /// The device is a partition with data in an image file: `plumb fix move` needs a device.
    AttachLoop,
    /// The layout that another finding recommends covers this one.
    SeeOther {
        /// The device whose soft partitions that layout places.
        component: String,
        /// Rule of the other finding.
        rule: RuleId,
        /// Target of the other finding.
        target: Target,
    },
    /// There is no plan.
    NoPlan {
        /// Why not, in the words of the plan.
        why: String,
    },
    /// A name cannot be part of a command.
    NoCommand {
        /// Why not.
        why: String,
    },
    /// The commands are for another host, or change another device.
    RunOn {
        /// Host to run them on; absent for this host.
        host: Option<String>,
        /// Device that they change, if it is on another host than the target.
        changes: Option<String>,
    },
    /// The partition holds no data.
    Empty,
    /// No remedy keeps the data.
    NoneKeepsData {
        /// Device whose data each remedy destroys.
        device: String,
        /// Kind of `plumb plan` that prints the steps.
        plan: String,
    },
    /// Nothing states the unit of the disk, so the start is planned on a wide one.
    AssumedStart {
        /// The unit that it is planned on.
        planned_bytes: Bytes,
        /// Whether a wider one leaves no room.
        is_reduced: bool,
    },
    /// The way that suggests itself is no remedy.
    NoRemedy {
        /// Device that it would change.
        device: String,
        /// Kind of `plumb plan` that prints its steps.
        plan: String,
        /// The reason against a remedy.
        obstacle: Obstacle,
    },
    /// The commands are those of this remedy.
    Recommended {
        /// Its harm.
        harm: String,
        /// Its title.
        title: String,
    },
    /// Something that must hold before the commands are run.
    Constraint {
        /// The text.
        text: String,
    },
}
