//! `plumb fix undo`: the label that was there before, from the file in which it was kept.

use std::path::Path;

use plumb_relocate::labels::SavedLabel;
use plumb_sys::Access;

use super::act::{carry_out, is_wanted};
use super::error::FixError;
use super::subject::Subject;
use super::view::{Shown, print};
use crate::cli::fix::Undo;
use crate::exit::Exit;
use crate::failure::Failure;

/// The command that goes back from what was saved in a file.
pub fn command(saved: &str, subject: &Subject) -> String {
    let device = subject.device();
    let words = ["plumb", "fix", "undo", saved, device.as_str(), "--yes", subject.name.as_str()];
    plumb_plan::shell::words(words)
}

/// Runs the command.
///
/// # Errors
/// When the file is none, the disk is another one or in use, or somebody has written to its label since.
pub fn run(args: &Undo) -> Result<Exit, Failure> {
    let saved = SavedLabel::load(&args.file).map_err(FixError::from)?;
    let device = args.device.as_deref().unwrap_or(Path::new(&saved.device));
    let access = if args.act.yes.is_some() { Access::Exclusive } else { Access::Read };
    let subject = Subject::open(device, access)?;
    let is_wanted = is_wanted(&args.act, &subject)?;
    must_be_that_disk(&saved, &subject)?;
    subject.must_be_unused()?;
    let failed = |source| FixError::Change { device: subject.device(), is_begun: false, source };
    let mut notes = Vec::new();
    match saved.change.must_be_either(&mut subject.raw()) {
        Err(error) if !args.force => {
            let help = "look what is there first; --force writes the old bytes all the same";
            return Err(Failure::from(failed(error)).with_help(help));
        }
        Err(error) => notes.push(format!("{error}; --force was given")),
        Ok(()) => {}
    }
    let before = subject.label()?;
    // Only what is not as it was: a change that was cut off is gone back from as well.
    let back = saved.change.back().to_new(&mut subject.raw()).map_err(failed)?;
    let is_done = is_wanted && !back.is_empty();
    if is_done {
        notes.extend(carry_out(&subject, &back)?);
    }
    let about = match back.is_empty() {
        true => vec!["the old label is there already: nothing to do".to_owned()],
        false => vec![format!("goes back from: {}", saved.what)],
    };
    let after = if is_done { subject.label()? } else { subject.label_after(&back, None)? };
    print(&Shown {
        action: "undo",
        subject: &subject,
        is_done,
        before: before.as_ref(),
        after: after.as_ref(),
        grid: None,
        about,
        change: &back,
        saved: None,
        undo: None,
        notes,
        json: args.act.json,
    })?;
    Ok(Exit::Clean)
}

fn must_be_that_disk(saved: &SavedLabel, subject: &Subject) -> Result<(), FixError> {
    let identity = subject.here.identity();
    let size = subject.disk.limits().size_bytes;
    let differs = [
        (!identity.is_empty() && !saved.identity.is_empty() && identity != saved.identity)
            .then(|| (identity.clone(), saved.identity.clone())),
        (size < saved.change.end_bytes())
            .then(|| (format!("{size} bytes"), format!("at least {}", saved.change.end_bytes()))),
    ];
    match differs.into_iter().flatten().next() {
        Some((found, expected)) => Err(FixError::OtherDisk { device: subject.device(), found, expected }),
        None => Ok(()),
    }
}
