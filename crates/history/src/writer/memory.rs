//! A store in memory, while the file system of its folder refuses writes.
//!
//! Its two files are databases in memory that stay empty: windows that close wait as they do after a failed write, within the same bound.
//! Once the folder can be opened, everything is added to the store there. That store may have windows of an earlier run, other
//! numbers for the same devices, and open windows of the same time.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::{Base, DeviceIncrement, Notice, Waiting, Writer};
use crate::database::Database;
use crate::error::HistoryError;
use crate::schema::Part;
use crate::settings::Settings;
use crate::tier::{Span, Tier};

impl Writer {
    /// Makes a folder for its owner alone if it is absent, and opens the store in it. If the file system refuses writes, the store begins in
    /// memory, and the error is returned beside it: [`Writer::checkpoint`] tries again.
    ///
    /// # Errors
    /// As [`Writer::open`], for other reasons than refused writes.
    pub fn open_or_begin_in_memory(
        folder: &Path,
        settings: Settings,
    ) -> Result<(Writer, Option<HistoryError>), HistoryError> {
        let opened = make_folder(folder).and_then(|()| Writer::open(folder, settings.clone()));
        match opened {
            Err(refused) if refused.is_refused_write() => {
                let recent = Database::in_memory(folder, Part::Recent, &settings)?;
                let history = Database::in_memory(folder, Part::History, &settings)?;
                let writer = Writer::with_files(folder, settings, recent, history);
                Ok((writer, Some(refused)))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// Whether nothing of it is in its folder yet.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.lock.is_none()
    }

    /// Opens the folder, and adds everything to the store there.
    pub(super) fn move_to_folder(&mut self) -> Result<(), HistoryError> {
        make_folder(&self.folder)?;
        let mut opened = Writer::open(&self.folder, self.settings.clone())?;
        // After an error everything is still here.
        opened.add_all(self)?;
        *self = opened;
        Ok(())
    }

    /// Adds all that a store in memory has.
    fn add_all(&mut self, from: &Writer) -> Result<(), HistoryError> {
        self.notices.extend(from.notices.iter().cloned());
        let mut refused = 0;
        for (theirs, series) in &from.series {
            let waiting = from.waiting.iter().filter(|((_, of), _)| of == theirs);
            let open = series.open.iter().flatten();
            let mine = match self.number_of(&series.identity, series.layer) {
                Err(HistoryError::TooManySeries { .. }) => {
                    refused += waiting.count() + open.count();
                    continue;
                }
                number => number?,
            };
            if let Some(known) = self.series.get_mut(&mine) {
                for (from_ns, name) in &series.names {
                    known.note_name(*from_ns, name);
                }
            }
            for ((window, _), closed) in waiting {
                let closed = Waiting {
                    fresh: closed.fresh.clone(),
                    base: Base::Unread,
                    is_kept: false,
                };
                self.wait(mine, *window, closed);
            }
            // From coarse to fine: a coarse increment ends the finer windows of the earlier run, which so reach it.
            for tier in Tier::ALL.into_iter().rev() {
                let Some(open) = &series.open[tier as usize] else {
                    continue;
                };
                let profile = open.profile(&series.identity)?;
                let from_ns = open.window.span().from_ns;
                let increment = DeviceIncrement {
                    identity: &series.identity,
                    name: series.names.last().map_or("", |(_, name)| name),
                    profile: &profile,
                    senders: Some(&open.senders),
                };
                let to_ns = from.upto_ns;
                self.add_at(tier, Span { from_ns, to_ns }, &increment)?;
            }
        }
        if refused > 0 {
            let windows = refused as u64;
            self.notices.push(Notice::Dropped { windows });
        }
        for note in &from.findings {
            self.note_finding(note.at_ns, note.key.clone(), note.step.clone());
        }
        for row in &from.host {
            self.note_host(row.clone());
        }
        Ok(())
    }
}

fn make_folder(folder: &Path) -> Result<(), HistoryError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| HistoryError::File {
            file: folder.to_owned(),
            doing: "make the folder",
            source,
        })
}
