//! `plumb fix backup-label`: the broken or stranded copy of a GPT, rewritten from the good one.

use plumb_relocate::labels::{Change, mend};
use plumb_sys::Access;

use super::act::{is_wanted, save_and_carry_out, save_path};
use super::error::FixError;
use super::subject::Subject;
use super::unfinished;
use super::view::{Shown, print};
use crate::cli::fix::BackupLabel;
use crate::exit::Exit;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// When there is no GPT, no good copy of it, or it cannot be written.
pub fn run(args: &BackupLabel) -> Result<Exit, Failure> {
    let subject = match args.act.yes {
        // Partitions stay where they are, so that they may be in use: a disk that grew is the usual case.
        Some(_) => Subject::open_beside_partitions(&args.device)?,
        None => Subject::open(&args.device, Access::Read)?,
    };
    let is_wanted = is_wanted(&args.act, &subject)?;
    subject.must_take_any_write()?;
    subject.must_be_unused_as_a_whole()?;
    let device = subject.device();
    let before = subject.label()?.ok_or_else(|| FixError::NoLabel {
        device: device.clone(),
    })?;
    unfinished::must_be_none(&subject, Some(&before), args.act.ignore_marker.as_deref())?;
    let mended = mend(&before).map_err(|source| FixError::Mend {
        device: device.clone(),
        source,
    })?;
    let change = Change::for_disk(&mended.steps, &subject.raw());
    let change = change.map_err(|source| FixError::Change {
        device,
        is_begun: false,
        source,
    })?;
    let path = save_path(&args.save, &subject);
    let mut notes: Vec<String> = mended
        .stays
        .iter()
        .map(|problem| format!("stays: {problem}"))
        .collect();
    let is_done = is_wanted && !change.is_empty();
    if is_done {
        let what = "backup-label: both copies of the GPT rewritten";
        notes.extend(save_and_carry_out(&subject, &change, &path, what)?);
    }
    let about = match mended.mends.as_slice() {
        [] => vec![
            "both copies of the label are good and where they belong: nothing to do".to_owned(),
        ],
        mends => mends
            .iter()
            .map(|problem| format!("repairs: {problem}"))
            .collect(),
    };
    let after = if is_done {
        subject.label()?
    } else {
        subject.label_after(&change, None)?
    };
    let saved = (!change.is_empty()).then(|| path.display().to_string());
    print(&Shown {
        action: "backup-label",
        subject: &subject,
        is_done,
        before: Some(&before),
        after: after.as_ref(),
        grid: None,
        about,
        change: &change,
        undo: is_done.then(|| super::undo::command(&path, &subject)),
        saved,
        notes,
        json: args.act.json,
    })?;
    Ok(Exit::Clean)
}
