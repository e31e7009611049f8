//! I/O by process as they are counted: by number, until the names are asked for.

use std::sync::Arc;

use plumb_trace::{Names, UNKNOWN_PID};
use rustc_hash::FxHashMap;

use crate::columns::Ios;
use crate::top::{ProcessShare, Top};

/// Commands with a lower number are counted by number, others in a map: file names share the numbers, and there may be
/// many.
const NUMBERED_MAX: usize = 256;

/// Most entries of a map that waits to go into the list of processes.
const WAITING_MAX: usize = 4096;

/// The activity of each process since the last call.
#[derive(Default)]
pub(super) struct Processes {
    names: Arc<Names>,
    numbered: Vec<ProcessShare>,
    named: FxHashMap<u32, ProcessShare>,
    unnamed: FxHashMap<i32, ProcessShare>,
}

impl Processes {
    /// Takes the names of a batch; returns whether they differ from before. They only grow, so counted processes keep
    /// their names.
    pub(super) fn learn(&mut self, names: &Arc<Names>) -> bool {
        let is_new = !Arc::ptr_eq(&self.names, names);
        if is_new {
            self.names = names.clone();
        }
        is_new
    }

    /// Counts I/O. One whose command is unknown counts for its process.
    #[inline(never)]
    pub(super) fn add(&mut self, ios: &Ios<'_>) {
        for (row, &len) in ios.len_bytes.iter().enumerate() {
            let comm = ios.comm(row);
            let share = match self.numbered.get_mut(comm as usize) {
                Some(share) if comm > 0 => share,
                _ if comm > 0 => self.rare(comm),
                _ => match ios.pid(row) {
                    UNKNOWN_PID => continue,
                    pid => self.unnamed.entry(pid).or_default(),
                },
            };
            share.ios += 1;
            share.bytes = share.bytes.saturating_add(len);
        }
    }

    #[cold]
    fn rare(&mut self, comm: u32) -> &mut ProcessShare {
        let number = comm as usize;
        if number < NUMBERED_MAX {
            self.numbered.resize(number + 1, ProcessShare::default());
            return &mut self.numbered[number];
        }
        self.named.entry(comm).or_default()
    }

    /// Moves the counts to the names, if there are many.
    pub(super) fn put_surplus_into(&mut self, top: &mut Top) {
        if self.named.len().max(self.unnamed.len()) > WAITING_MAX {
            self.put_into(top);
        }
    }

    /// Moves the counts to the names.
    pub(super) fn put_into(&mut self, top: &mut Top) {
        let numbered = self.numbered.iter_mut().map(std::mem::take).enumerate();
        let numbered = numbered.map(|(number, share)| (number as u32, share));
        for (number, share) in numbered
            .chain(self.named.drain())
            .filter(|(_, share)| share.ios > 0)
        {
            if let Some(name) = self.names.word_of(number) {
                top.add(name, share);
            }
        }
        for (pid, share) in self.unnamed.drain() {
            top.add(&format!("pid {pid}"), share);
        }
    }
}
