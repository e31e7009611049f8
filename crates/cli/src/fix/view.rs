//! The actions of a fix, done or planned, in the form that reports print.

use plumb_geometry::Grid;
use plumb_label::{
    Label, Partition, PartitionPlace, gpt::types::SOLARIS_RESERVED, label::PartitionType,
};
use plumb_model::result::fix::{DiskPlace, Fixed, LabelView, PartView};
use plumb_quoting::{Command, CommandLine};
use plumb_relocate::labels::Change;
use plumb_report::fix as report;

use super::subject::Subject;
use crate::cli::ColorChoice;
use crate::failure::Failure;
use crate::{output, typed};

/// A fix that was worked out or done.
pub struct Shown<'a> {
    pub action: &'static str,
    pub subject: &'a Subject,
    pub is_done: bool,
    pub before: Option<&'a Label>,
    pub after: Option<&'a Label>,
    /// The grid for starts.
    pub grid: Option<Grid>,
    pub about: Vec<String>,
    pub change: &'a Change,
    pub saved: Option<String>,
    pub undo: Option<Command>,
    pub notes: Vec<String>,
    pub json: bool,
}

/// Prints it.
///
/// # Errors
/// When it cannot be printed.
pub fn print(shown: &Shown<'_>) -> Result<(), Failure> {
    let limits = shown.subject.disk.limits();
    let view = |label: &Label| label_view(label, shown.grid);
    let writes = shown.change.writes();
    let writes: Vec<DiskPlace> = writes
        .map(|(at, _, new)| DiskPlace {
            at_bytes: at.0,
            len_bytes: new.len() as u64,
        })
        .collect();
    let device = shown.subject.device();
    let is_shown = !shown.is_done && !shown.change.is_empty();
    let mut notes = shown.notes.clone();
    let command = given(
        is_shown.then(|| typed::with_yes(&shown.subject.name)),
        &mut notes,
    );
    let undo = given(shown.undo.clone(), &mut notes);
    let fixed = Fixed {
        action: shown.action,
        device: &device,
        name: &shown.subject.name,
        is_done: shown.is_done,
        size_bytes: limits.size_bytes,
        logical_block_bytes: limits.logical_block_bytes,
        physical_block_bytes: limits.physical_block_bytes,
        alignment_offset_bytes: limits.alignment_offset_bytes,
        before: shown.before.map(view),
        after: shown.after.map(view),
        about: &shown.about,
        writes: &writes,
        saved: shown.saved.as_deref(),
        undo: undo.as_ref(),
        command: command.as_ref(),
        notes: &notes,
    };
    let text = if shown.json {
        report::json(&crate::this_run::now(), &fixed).map_err(|error| Failure::failed(&error))?
            + "\n"
    } else {
        output::drawn(report::text(&fixed, output::paper(ColorChoice::Never)))
    };
    output::print(&text)
}

/// A command as it is printed; if none can be given, a note has the reason.
pub fn given(command: Option<Command>, notes: &mut Vec<String>) -> Option<CommandLine> {
    match command?.line() {
        Ok(line) => Some(line),
        Err(why) => {
            notes.push(why.to_string());
            None
        }
    }
}

fn label_view(label: &Label, grid: Option<Grid>) -> LabelView {
    let part = |part: &Partition| {
        let has_data = !part.is_whole_disk
            && part.place != PartitionPlace::Extended
            && part.kind != PartitionType::Guid(SOLARIS_RESERVED);
        PartView {
            name: part.id.to_string(),
            start_bytes: part.extent.start().0,
            len_bytes: part.extent.len().0,
            kind: part.kind.name().map(str::to_owned),
            past_grid_bytes: grid
                .filter(|_| has_data)
                .map(|grid| grid.past_boundary(part.extent.start()).0),
        }
    };
    LabelView {
        kind: label.kind.to_string(),
        problems: label.problems.iter().map(ToString::to_string).collect(),
        partitions: label.partitions.iter().map(part).collect(),
    }
}
