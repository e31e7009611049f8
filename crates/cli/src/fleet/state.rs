//! The fleet file that a report keeps: the next report reads only inputs that the file does not have.
//!
//! The file names each input with its length. An input that has another length now is an error, because its old I/O cannot be taken out of
//! the sums. Inputs that are gone from SOURCE stay in the report.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use plumb_fleet::{FleetError, FleetReader, HostIo, InputMark, Source};

use super::{BUFFER_BYTES, NewFleet, pass};
use crate::failure::Failure;

/// The next step of a host.
type TakeHost<'a> = &'a mut dyn FnMut(HostIo) -> Result<(), Failure>;

/// The file of an earlier report, and the one that takes its place.
pub struct FleetState {
    name: String,
    earlier: Option<FleetReader<BufReader<File>>>,
    new: NewFleet,
}

impl FleetState {
    /// Opens the file, if it is there, and takes the inputs that it has out of the list. `None` if it has all of them.
    ///
    /// # Errors
    /// When it is damaged, an input has changed, or no file can be made beside it.
    pub fn open(path: &Path, sources: &mut Vec<Source>) -> Result<Option<FleetState>, Failure> {
        let name = path.display().to_string();
        let earlier = match path.exists() {
            true => {
                let known = inputs(path, &name)?;
                leave_out(&known, sources, &name)?;
                if sources.is_empty() {
                    return Ok(None);
                }
                Some(reader(path, &name)?)
            }
            false => None,
        };
        let new = NewFleet::begin(path)?;
        Ok(Some(FleetState { name, earlier, new }))
    }

    /// Adds the new inputs of a host, and passes on this host and those before it.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn add(&mut self, mut host: HostIo, take: TakeHost<'_>) -> Result<(), Failure> {
        while let Some(earlier) = self.next_up_to(Some(&host.facts.host))? {
            if earlier.facts.host == host.facts.host {
                let new = std::mem::replace(&mut host, earlier);
                host.absorb(new);
                break;
            }
            self.pass_on(earlier, take)?;
        }
        self.pass_on(host, take)
    }

    /// Writes the hosts that are left to the file, and passes them on.
    ///
    /// # Errors
    /// As [`FleetState::add`].
    pub fn finish(mut self, take: TakeHost<'_>) -> Result<(), Failure> {
        while let Some(earlier) = self.next_up_to(None)? {
            self.pass_on(earlier, take)?;
        }
        self.new.commit()
    }

    fn pass_on(&mut self, host: HostIo, take: TakeHost<'_>) -> Result<(), Failure> {
        take(self.new.add(host)?)
    }

    /// The next host of the earlier file, if it is not behind a name.
    fn next_up_to(&mut self, name: Option<&str>) -> Result<Option<HostIo>, Failure> {
        let Some(reader) = &mut self.earlier else {
            return Ok(None);
        };
        let next = reader.peek().map_err(|error| failed(&error, &self.name))?;
        let is_behind = |host: &str| name.is_some_and(|name| host > name);
        if next.is_none_or(|facts| is_behind(&facts.host)) {
            return Ok(None);
        }
        reader.take().map_err(|error| failed(&error, &self.name))
    }
}

fn failed(error: &FleetError, name: &str) -> Failure {
    Failure::failed(error).at(name)
}

fn reader(path: &Path, name: &str) -> Result<FleetReader<BufReader<File>>, Failure> {
    let file = File::open(path).map_err(|source| {
        let path = name.to_owned();
        Failure::failed(&plumb_trace::Error::Open { path, source })
    })?;
    FleetReader::new(BufReader::with_capacity(BUFFER_BYTES, file))
        .map_err(|error| failed(&error, name))
}

type KnownInputs = BTreeMap<String, BTreeMap<String, InputMark>>;

/// The inputs in a fleet file, by host. The report reads the whole file, and checks it, afterwards.
fn inputs(path: &Path, name: &str) -> Result<KnownInputs, Failure> {
    let mut reader = reader(path, name)?;
    let mut known = BTreeMap::new();
    while let Some(facts) = reader
        .skip_profiles()
        .map_err(|error| failed(&error, name))?
    {
        known.insert(facts.host, facts.inputs);
    }
    Ok(known)
}

fn leave_out(known: &KnownInputs, sources: &mut Vec<Source>, name: &str) -> Result<(), Failure> {
    let mark = |source: &Source| known.get(&source.host)?.get(&source.name);
    let has_changed = |source: &&Source| {
        mark(source).is_some_and(|mark| mark.len_bytes != pass::len_bytes(source))
    };
    if let Some(source) = sources.iter().find(has_changed) {
        let path = source.piece.path.display();
        let words = format!("{path}: has another length than when {name} was written");
        return Err(
            Failure::missing(words).with_help(format!("remove {name} to read all inputs again"))
        );
    }
    sources.retain(|source| mark(source).is_none());
    Ok(())
}
