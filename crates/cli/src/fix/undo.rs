//! `plumb fix undo`: the label that was there before, from the file in which it was kept.

use std::path::Path;

use plumb_geometry::{Bytes, Extent};
use plumb_label::{Label, Partition, PartitionPlace};
use plumb_quoting::Command;
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::labels::{Change, SavedLabel};
use plumb_sys::Access;

use super::act::{is_wanted, save_and_carry_out, save_path};
use super::error::FixError;
use super::moving::known_partitions;
use super::subject::Subject;
use super::view::{Shown, print};
use super::{contents, unfinished};
use crate::cli::fix::Undo;
use crate::exit::Exit;
use crate::failure::Failure;

/// The command that restores a saved label.
pub fn command(saved: &Path, subject: &Subject) -> Command {
    Command::new("plumb fix undo")
        .path(saved)
        .path(subject.device())
        .option("--yes", &subject.name)
}

/// Runs the command.
///
/// # Errors
/// When the file is none, the disk is another one or in use, somebody has written to its label since, or something came into
/// a partition that would go away.
pub fn run(args: &Undo) -> Result<Exit, Failure> {
    let (saved, doubt) = SavedLabel::load(&args.file).map_err(FixError::from)?;
    let device = args.device.as_deref().unwrap_or(Path::new(&saved.device));
    let subject = open(device, args, &saved)?;
    let is_wanted = is_wanted(&args.act, &subject)?;
    must_be_that_disk(&saved, &subject)?;
    let failed = |source| FixError::Change {
        device: subject.device(),
        is_begun: false,
        source,
    };
    let before = subject.label()?;
    unfinished::must_be_none(&subject, before.as_ref(), args.act.ignore_marker.as_deref())?;
    let mut notes = Vec::new();
    if let Some(doubt) = doubt {
        notes.push(format!(
            "others than root may have written {}: {doubt}: see that the places are those of the label",
            args.file.display()
        ));
    }
    match saved.change.must_be_either(&mut subject.raw()) {
        Err(error) if !args.force => {
            let help = "examine the present bytes first; --force writes the old bytes all the same";
            return Err(Failure::from(failed(error)).with_help(help));
        }
        Err(error) => notes.push(format!("{error}; --force was given")),
        Ok(()) => {}
    }
    // Only places that differ: an interrupted change is undone as well.
    let back = saved
        .change
        .back()
        .to_new(&mut subject.raw())
        .map_err(failed)?;
    must_spare_users(&subject, before.as_ref(), &back)?;
    let after = subject.label_after(&back, None)?;
    match parts_stay(before.as_ref(), after.as_ref()) {
        true => subject.must_be_unused_as_a_whole()?,
        false => subject.must_be_unused()?,
    }
    match would_hide(&subject, before.as_ref(), after.as_ref()) {
        found if found.is_empty() => {}
        found if args.force => notes.extend(
            found
                .iter()
                .map(|what| format!("{what}; --force was given")),
        ),
        found => {
            return Err(FixError::WouldHide {
                device: subject.device(),
                found,
            }
            .into());
        }
    }
    let path = save_path(&args.save, &subject);
    let is_done = is_wanted && !back.is_empty();
    if is_done {
        notes.extend(save_and_carry_out(
            &subject,
            &back,
            &path,
            &format!("undo of {}", saved.what),
        )?);
    }
    let about = match back.is_empty() {
        true => vec!["the old label is there already: nothing to do".to_owned()],
        false => vec![format!("goes back from: {}", saved.what)],
    };
    let way_back = || {
        let is_refused = !would_hide(&subject, after.as_ref(), before.as_ref()).is_empty();
        let back = command(&path, &subject);
        if is_refused {
            back.flags("--force")
        } else {
            back
        }
    };
    let undo = is_done.then(way_back);
    let now = if is_done { subject.label()? } else { after };
    print(&Shown {
        action: "undo",
        subject: &subject,
        is_done,
        before: before.as_ref(),
        after: now.as_ref(),
        grid: None,
        about,
        change: &back,
        saved: (!back.is_empty()).then(|| path.display().to_string()),
        undo,
        notes,
        json: args.act.json,
    })?;
    Ok(Exit::Clean)
}

/// That no byte is written in a partition that is mounted or used otherwise: the file may name any place.
fn must_spare_users(
    subject: &Subject,
    label: Option<&Label>,
    back: &Change,
) -> Result<(), Failure> {
    // Nobody mounts a part of a file without a device for it, and that device is opened then.
    if subject.disk.is_image() {
        return Ok(());
    }
    for part in known_partitions(subject, label)? {
        let place = part.start_bytes..part.start_bytes.saturating_add(part.len_bytes);
        let first_within = |(at, _, new): (Bytes, &[u8], &[u8])| {
            let end = at.0.saturating_add(new.len() as u64).min(place.end);
            let first = at.0.max(place.start);
            (first < end).then_some(first)
        };
        let Some(at) = back.writes().find_map(first_within) else {
            continue;
        };
        let node = node_of(Path::new(&subject.name), part.number);
        let users = subject.here.users_on(&node.to_string_lossy());
        if !users.is_empty() {
            return Err(FixError::InPartition {
                device: subject.device(),
                at,
                users,
            }
            .into());
        }
    }
    Ok(())
}

/// Opens the disk: exclusively, except if all partitions keep their places, as for `backup-label`.
fn open(device: &Path, args: &Undo, saved: &SavedLabel) -> Result<Subject, Failure> {
    let subject = Subject::open(device, Access::Read)?;
    if args.act.yes.is_none() {
        return Ok(subject);
    }
    let back = saved.change.back();
    let stay = match (subject.label(), subject.label_after(&back, None)) {
        (Ok(before), Ok(after)) => parts_stay(before.as_ref(), after.as_ref()),
        _ => false,
    };
    drop(subject);
    if stay {
        Subject::open_beside_partitions(device)
    } else {
        Subject::open(device, Access::Exclusive)
    }
}

/// Whether two labels have the same partitions in the same places.
fn parts_stay(before: Option<&Label>, after: Option<&Label>) -> bool {
    let places = |label: &Label| -> Vec<_> {
        label
            .partitions
            .iter()
            .map(|part| (part.id, part.place, part.extent))
            .collect()
    };
    matches!((before, after), (Some(before), Some(after)) if places(before) == places(after))
}

/// The content of partitions of the present label that the other one does not have in the same place.
pub fn would_hide(
    subject: &Subject,
    present: Option<&Label>,
    other: Option<&Label>,
) -> Vec<String> {
    let Some(present) = present else {
        return Vec::new();
    };
    let has_data =
        |part: &&Partition| !part.is_whole_disk && part.place != PartitionPlace::Extended;
    let keeps = |part: &Partition| {
        let mut others = other
            .into_iter()
            .flat_map(|label| &label.partitions)
            .filter(has_data);
        others.any(|known| {
            known.extent.start() == part.extent.start() && known.extent.end() >= part.extent.end()
        })
    };
    let lost = present
        .partitions
        .iter()
        .filter(has_data)
        .filter(|part| !keeps(part));
    let places: Vec<Extent> = lost.map(|part| part.extent).collect();
    if places.is_empty() {
        return Vec::new();
    }
    let (raw, name) = (subject.raw(), &subject.name);
    match contents::found(&raw, name, &places, present.sector_bytes) {
        found if found.is_empty() => contents::first_bytes(&raw, name, &places),
        found => found,
    }
}

fn must_be_that_disk(saved: &SavedLabel, subject: &Subject) -> Result<(), FixError> {
    let identity = subject.here.identity();
    let size = subject.disk.limits().size_bytes;
    let differs = [
        (!identity.is_empty() && !saved.identity.is_empty() && identity != saved.identity)
            .then(|| (identity.clone(), saved.identity.clone())),
        (size < saved.change.end_bytes()).then(|| {
            (
                format!("{size} bytes"),
                format!("at least {}", saved.change.end_bytes()),
            )
        }),
    ];
    match differs.into_iter().flatten().next() {
        Some((found, expected)) => Err(FixError::OtherDisk {
            device: subject.device(),
            found,
            expected,
        }),
        None => Ok(()),
    }
}
