//! Opens targets: for writing only after their names were typed.

use std::fs::File;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use plumb_label::FileDisk;
use plumb_load::series::{Needed, Series, Targets};
use plumb_load::{Durability, MayWrite, Target, WriteRefused, permit_writes_until};
use plumb_quoting::visible;

use crate::cli::Bench;
use crate::failure::Failure;
use crate::fix::contents;
use crate::output::say;

/// A target with the permitted operations.
pub struct Opened {
    /// The target.
    pub target: Target,
    /// The permission to write to it.
    pub may_write: Option<MayWrite>,
}

/// The fate of the present bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Others come in their place.
    Lost,
    /// They are written once more.
    WrittenBack,
}

impl Fate {
    /// In the words of a question.
    const fn word(self) -> &'static str {
        match self {
            Fate::Lost => "lost",
            Fate::WrittenBack => "read and written back",
        }
    }
}

/// Opens all targets.
///
/// # Errors
/// When one cannot be opened, is named twice, or may not be written.
pub fn open(args: &Bench, is_written: bool) -> Result<Vec<Opened>, Failure> {
    let mut opened: Vec<Opened> = Vec::new();
    for path in &args.targets {
        let one = open_one(path, &args.yes, is_written)?;
        if let Some(twin) = opened
            .iter()
            .find(|other| other.target.id() == one.target.id())
        {
            return Err(Failure::usage(format!(
                "{}: found the same target as {}, expected another one",
                path.display(),
                twin.target.name()
            )));
        }
        opened.push(one);
    }
    Ok(opened)
}

/// Opens a target, to write once its name was typed: `yes` are names that were given beforehand.
///
/// # Errors
/// When it cannot be opened, or may not be written.
pub fn open_one(path: &Path, yes: &[String], is_written: bool) -> Result<Opened, Failure> {
    if is_written {
        return open_to_write(path, yes, Fate::Lost, Durability::Accepted);
    }
    let target = Target::open(path).map_err(|error| Failure::of_system(&error))?;
    Ok(Opened {
        target,
        may_write: None,
    })
}

/// Opens the targets of a series; an error has their position in the series.
///
/// # Errors
/// As [`open`], and when a target is written to without `--write`.
pub fn open_series(args: &Bench, series: &Series) -> Result<Targets, Failure> {
    let mut targets = Targets::default();
    for Needed {
        path,
        place,
        is_written,
    } in Targets::needed(series)
    {
        let opened = match (is_written, args.write) {
            (true, false) => {
                let shown = path.display();
                let message = format!("found writes to {shown}, expected --write with them");
                Err(Failure::usage(message).with_help(format!(
                    "writes destroy the data on it: add --write --yes {shown} if you want that"
                )))
            }
            _ => open_one(&path, &args.yes, is_written),
        };
        let Opened { target, may_write } =
            opened.map_err(|failure| failure.at(&place.to_string()))?;
        targets.insert(path, target, may_write);
    }
    Ok(targets)
}

/// The smallest I/O of a target.
///
/// # Errors
/// When it cannot be opened.
pub fn block_bytes(path: &Path) -> Result<u32, Failure> {
    Target::open(path)
        .map(|target| target.block_bytes())
        .map_err(|error| Failure::of_system(&error))
}

/// Opens a target to write, as [`open_one`]; writes are done as soon as is said.
///
/// # Errors
/// As [`open_one`].
pub fn open_to_write(
    path: &Path,
    yes: &[String],
    fate: Fate,
    done: Durability,
) -> Result<Opened, Failure> {
    // A name that cannot be opened needs no question.
    let block_bytes = block_bytes(path)?;
    let held = held(path, block_bytes);
    let last = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let given = path.display().to_string();
    let named = yes
        .iter()
        .find(|name| **name == given || last.as_ref() == Some(name));
    let typed = match named {
        Some(name) => {
            if fate == Fate::Lost && !held.is_empty() {
                say(&format!("{given} holds {held}, which will be lost"));
            }
            name.clone()
        }
        None => ask(path, &held, fate)?,
    };
    let (target, may_write) =
        permit_writes_until(path, &typed, done).map_err(|error| match &error {
            WriteRefused::OtherName { .. } => Failure::usage(error.to_string()),
            WriteRefused::Open(error) => Failure::of_system(error),
            _ => Failure::failed(&std::io::Error::other(error.to_string())),
        })?;
    Ok(Opened {
        target,
        may_write: Some(may_write),
    })
}

/// The formats that a target has, in words; empty where it has none, or cannot be read.
fn held(path: &Path, block_bytes: u32) -> String {
    let disk = File::open(path).and_then(FileDisk::new);
    let formats = disk.map(|disk| contents::of_whole(&disk, "the target", block_bytes));
    formats.unwrap_or_default().join(", ")
}

/// Has the name typed, where somebody can.
fn ask(path: &Path, held: &str, fate: Fate) -> Result<String, Failure> {
    let (shown, fate) = (path.display(), fate.word());
    let on_it = match held {
        "" => format!("the data on {shown}"),
        held => format!("{shown} holds {held}, which"),
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage(format!(
            "{shown}: found no --yes with its name, expected --yes {shown}"
        ))
        .with_help(format!(
            "{on_it} would be {fate}; --yes says that this is wanted"
        )));
    }
    let question = format!("{on_it} will be {fate}. Type its name to go on: ");
    eprint!("{}", visible(&question));
    // A terminal that has gone away answers nothing, which is another name.
    std::io::stderr().flush().ok();
    let mut typed = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut typed)
        .map_err(|error| Failure::failed(&error))?;
    Ok(typed.trim().to_owned())
}
