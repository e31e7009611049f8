//! The parts of a plan. All numbers that a report prints are here, with their units.

use plumb_geometry::{Bytes, Share, SmallSort};
use plumb_quoting::shell::Undo;
use plumb_quoting::{Command, CommandLine, NoCommand, WayBack};
use serde::Serialize;

use crate::nodes::Nodes;
use plumb_model::{Action, Disruption, Effect};

/// The harm that a remedy can do, in ascending order: a plan recommends its first remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// Changes a setting, a hint or an option; no data move.
    Tune,
    /// A volume manager or a mirror moves the data while they stay in use.
    Online,
    /// `plumb fix move` moves the data offline; an interruption loses nothing.
    Move,
    /// Destroys the data: only for an empty device or after a backup.
    Recreate,
    /// A tool moves the data offline; an interruption destroys them.
    Shift,
}

impl Harm {
    /// The words used in output.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Harm::Tune => "change a setting",
            Harm::Online => "move the data online",
            Harm::Move => "move the data crash-safely",
            Harm::Recreate => "recreate, which destroys the data",
            Harm::Shift => "move the data, not crash-safe",
        }
    }

    /// The worst that a command of such a remedy does.
    #[must_use]
    pub const fn effect(self) -> Effect {
        match self {
            Harm::Tune => Effect::ChangesSetting,
            Harm::Online | Harm::Move => Effect::MovesDataCrashSafely,
            Harm::Recreate => Effect::DestroysData,
            Harm::Shift => Effect::MovesData,
        }
    }

    /// How far the use of the data is interrupted.
    #[must_use]
    pub const fn disruption(self) -> Disruption {
        match self {
            Harm::Tune => Disruption::None,
            Harm::Online => Disruption::Online,
            Harm::Move | Harm::Shift => Disruption::Unmounted,
            Harm::Recreate => Disruption::RestoreFromBackup,
        }
    }
}

/// A command, its risk, and the way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// To be typed unchanged.
    pub command: CommandLine,
    /// The worst that it does.
    pub effect: Effect,
    /// Other risks; absent if none are known.
    pub risk: Option<&'static str>,
    /// The way back.
    pub undo: WayBack,
    /// Whether it only prepares the change, and does less than the remedy as a whole.
    #[serde(skip)]
    prepares: bool,
}

impl Step {
    /// A step that changes something: as much as the remedy that it is a step of.
    ///
    /// # Errors
    /// When a name is one that no command can hold.
    pub fn new(
        command: Command,
        risk: &'static str,
        undo: impl Into<Undo>,
    ) -> Result<Step, NoCommand> {
        Ok(Step {
            command: command.line()?,
            effect: Effect::ChangesSetting,
            risk: Some(risk),
            undo: undo.into().way_back()?,
            prepares: false,
        })
    }

    /// A step that changes a setting before the change proper, such as an unmount.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn prepare(
        command: Command,
        risk: &'static str,
        undo: impl Into<Undo>,
    ) -> Result<Step, NoCommand> {
        Ok(Step {
            prepares: true,
            ..Step::new(command, risk, undo)?
        })
    }

    fn harmless(command: Command, effect: Effect, undo: &'static str) -> Result<Step, NoCommand> {
        Ok(Step {
            command: command.line()?,
            effect,
            risk: None,
            undo: Undo::from(undo).way_back()?,
            prepares: true,
        })
    }

    /// A step that only looks.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn look(command: Command) -> Result<Step, NoCommand> {
        Step::harmless(command, Effect::ReadsOnly, "nothing to undo")
    }

    /// A step that only writes a copy of existing data into a file.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn save(command: Command) -> Result<Step, NoCommand> {
        Step::harmless(command, Effect::WritesFile, "remove the file")
    }
}

/// One way to reach the layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// How much it harms.
    pub harm: Harm,
    /// Its name, in a few words.
    pub title: String,
    /// In order.
    pub steps: Vec<Step>,
    /// Its conditions, and traps of the tools.
    pub constraints: Vec<String>,
    /// Its result.
    pub effect: String,
    /// The same changes for programs; none where no model describes them.
    pub actions: Vec<Action>,
    /// Whether one of its steps cannot be given, so that it has none: the rest of them would do something else.
    #[serde(skip)]
    is_refused: bool,
}

impl Remedy {
    /// A way without steps so far.
    #[must_use]
    pub fn new(harm: Harm, title: impl Into<String>, effect: impl Into<String>) -> Remedy {
        Remedy {
            harm,
            title: title.into(),
            steps: Vec::new(),
            constraints: Vec::new(),
            effect: effect.into(),
            actions: Vec::new(),
            is_refused: false,
        }
    }

    /// Adds a step. If its command cannot be given, the remedy has no steps, and the reason as a constraint.
    #[must_use]
    pub fn step(mut self, step: Result<Step, NoCommand>) -> Remedy {
        match step {
            Ok(mut step) if !self.is_refused => {
                if !step.prepares {
                    step.effect = self.harm.effect();
                }
                self.steps.push(step);
            }
            Err(why) if !self.is_refused => {
                self.is_refused = true;
                self.steps.clear();
                self.actions.clear();
                self.constraints.insert(0, why.to_string());
            }
            _ => {}
        }
        self
    }

    /// Why a command of it cannot be given, if that is so.
    #[must_use]
    pub fn no_command(&self) -> Option<&str> {
        let why = self.constraints.first().filter(|_| self.is_refused);
        why.map(String::as_str)
    }

    /// Adds steps.
    #[must_use]
    pub fn steps(self, steps: impl IntoIterator<Item = Result<Step, NoCommand>>) -> Remedy {
        steps.into_iter().fold(self, Remedy::step)
    }

    /// Adds a change that it makes.
    #[must_use]
    pub fn action(mut self, action: impl Into<Option<Action>>) -> Remedy {
        if !self.is_refused {
            self.actions.extend(action.into());
        }
        self
    }

    /// Adds something that must hold.
    #[must_use]
    pub fn constraint(mut self, constraint: impl Into<String>) -> Remedy {
        self.constraints.push(constraint.into());
        self
    }
}

/// A value; its unit is beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// An exact number.
    Count(u64),
    /// A number that was rounded, or is no whole one.
    Number(f64),
    /// An exact share.
    Share(Share),
    /// Words.
    Words(String),
    /// No value.
    None,
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Count(value)
    }
}

impl From<Bytes> for Value {
    fn from(value: Bytes) -> Value {
        Value::Count(value.0)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Number(value)
    }
}

impl From<Share> for Value {
    fn from(value: Share) -> Value {
        Value::Share(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Words(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Words(value)
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Value {
        value.map_or(Value::None, Into::into)
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
    /// Blocks by which the device is addressed.
    LogicalBlocks,
    /// Cylinders.
    Cylinders,
    /// A share of all, 0 to 1.
    Share,
    /// Bytes moved per byte asked for, or another ratio.
    Ratio,
    /// A number for each second.
    PerSecond,
    /// Milliseconds.
    Ms,
    /// A plain count.
    Count,
    /// Words.
    Words,
}

/// A number of the layout to reach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// As a key: `start_bytes`.
    pub name: &'static str,
    /// The value.
    pub value: Value,
    /// Its unit.
    pub unit: Unit,
    /// Its name.
    pub words: String,
}

impl Figure {
    /// A figure.
    #[must_use]
    pub fn new(
        name: &'static str,
        value: impl Into<Value>,
        unit: Unit,
        words: impl Into<String>,
    ) -> Figure {
        Figure {
            name,
            value: value.into(),
            unit,
            words: words.into(),
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// As a key.
    pub name: &'static str,
    /// Over the column in text.
    pub words: &'static str,
    /// Unit of its values.
    pub unit: Unit,
}

/// Candidates beside each other, or a list of things to place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// A value for each column.
    pub rows: Vec<Vec<Value>>,
    /// Row that the plan is for, from 0.
    pub chosen: Option<usize>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: &[(&'static str, &'static str, Unit)]) -> Table {
        let columns = columns
            .iter()
            .map(|&(name, words, unit)| Column { name, words, unit })
            .collect();
        Table {
            title: title.into(),
            columns,
            rows: Vec::new(),
            chosen: None,
        }
    }

    /// Adds a row; it has a value for each column.
    pub fn row(&mut self, values: Vec<Value>) {
        debug_assert_eq!(values.len(), self.columns.len());
        self.rows.push(values);
    }
}

/// The subject of a plan, for `plumb fix plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The disk, volume or data set, as the system calls it.
    pub device: String,
    /// The partition or slice of it, as its label counts.
    pub number: Option<u32>,
}

/// The unit that a start is planned on while nothing states the one of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AssumedStart {
    /// The unit.
    pub planned_bytes: Bytes,
    /// Whether a larger one leaves no room.
    pub is_reduced: bool,
}

/// A state of the device that somebody must know before a command of the plan is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PlanWarning {
    /// This host has no such device.
    NotFound {
        /// The device as it was named.
        device: String,
    },
    /// File systems on it are mounted.
    Mounted {
        /// The device as it was named.
        device: String,
        /// Their mount points.
        at: Vec<String>,
    },
    /// It holds data.
    HasData {
        /// The device as it was named.
        device: String,
        /// Layers above it, and the format of its own contents.
        holds: Vec<String>,
    },
    /// Its contents could not be read.
    NotRead {
        /// The device as it was named.
        device: String,
        /// The reason that the system gave.
        why: String,
    },
}

/// The whole; see the crate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the command that asks for such a plan: `partition`.
    pub kind: &'static str,
    /// One line.
    pub title: String,
    /// Its subject, if that is one device.
    pub subject: Option<Subject>,
    /// The unit of the start, where that is only assumed.
    pub assumed_start: Option<AssumedStart>,
    /// The layout to reach.
    pub target: Vec<Figure>,
    /// Candidates and lists.
    pub tables: Vec<Table>,
    /// Ways to reach it, the least harm first.
    pub remedies: Vec<Remedy>,
    /// Why it cannot be reached, if it cannot: then there are no ways.
    pub refusal: Option<String>,
    /// Device nodes whose owner, mode and names must outlive the change.
    pub nodes: Option<Nodes>,
    /// Facts to know before you trust the plan.
    pub notes: Vec<String>,
    /// States of the device that prevent the commands.
    pub warnings: Vec<PlanWarning>,
}

impl Plan {
    /// A plan without anything in it so far.
    #[must_use]
    pub fn new(kind: &'static str, title: impl Into<String>) -> Plan {
        Plan {
            kind,
            title: title.into(),
            subject: None,
            assumed_start: None,
            target: Vec::new(),
            tables: Vec::new(),
            remedies: Vec::new(),
            refusal: None,
            nodes: None,
            notes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A plan that comes to nothing before there is anything to show.
    #[must_use]
    pub fn refused(kind: &'static str, title: impl Into<String>, why: impl Into<String>) -> Plan {
        let mut plan = Plan::new(kind, title);
        plan.refuse(why);
        plan
    }

    /// Adds a figure.
    pub fn figure(
        &mut self,
        name: &'static str,
        value: impl Into<Value>,
        unit: Unit,
        words: impl Into<String>,
    ) {
        self.target.push(Figure::new(name, value, unit, words));
    }

    /// Adds ways, and keeps all in the order of harm.
    pub fn add(&mut self, remedies: impl IntoIterator<Item = Remedy>) {
        self.remedies.extend(remedies);
        self.remedies.small_sort_by_key(|remedy| remedy.harm);
    }

    /// Adds the nodes whose state must outlive the change, or the reason why there are no commands for that.
    pub fn keep_nodes(&mut self, nodes: Result<Nodes, NoCommand>) {
        match nodes {
            Ok(nodes) => self.nodes = Some(nodes),
            Err(why) => self.note(format!("owner, mode and names of the device nodes: {why}")),
        }
    }

    /// States why the layout cannot be reached.
    pub fn refuse(&mut self, why: impl Into<String>) {
        self.refusal = Some(why.into());
    }

    /// Adds a sentence that must be known.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// A figure by its key.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.target
            .iter()
            .find(|figure| figure.name == name)
            .map(|figure| &figure.value)
    }
}
