//! Definitions from parameters, one after the other.

use super::definition::{
    COUNT_MAX, Definitions, RunDefinition, RunLoop, Storage, THREADS_MAX, Workload,
};
use super::keyword::{GivenParameters, Known, find};
use super::reading::{
    arrivals, check_open_flags, count, curve, lengths, order, range, rate, stride, varied,
};
use super::table::{FILE_SYSTEMS, GENERAL, General, HOST, HostParameter, RD, Rd, SD, Sd, WD, Wd};
use super::text::Parameter;
use crate::job_file::{FileLine, JobFileError, listed};

/// The definition of the following parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum DefinitionSection {
    General,
    Hosts,
    Storages,
    Workloads,
    Runs,
}

/// Reads definitions one parameter after the other.
#[derive(Default)]
struct Builder {
    all: Definitions,
    hosts: Vec<String>,
    storage_default: Storage,
    run_default: RunDefinition,
    is_default: bool,
    /// `sd=sd1`, for messages.
    owner: String,
    seen: GivenParameters,
}

/// Makes definitions of parameters.
pub(super) fn read(parameters: &[Parameter]) -> Result<Definitions, JobFileError> {
    let mut builder = Builder {
        owner: "the general part".to_owned(),
        ..Builder::default()
    };
    let mut section = DefinitionSection::General;
    for parameter in parameters {
        match opened(section, parameter)? {
            Some(next) => {
                builder.open(next, parameter)?;
                section = next;
            }
            None => builder.take(section, parameter)?,
        }
    }
    builder.all.runs.iter().try_for_each(check_times)?;
    builder.all.storages = counted(std::mem::take(&mut builder.all.storages))?;
    Ok(builder.all)
}

/// The section whose parameter opens a definition.
fn opened(
    section: DefinitionSection,
    parameter: &Parameter,
) -> Result<Option<DefinitionSection>, JobFileError> {
    let next = match parameter.keyword.as_str() {
        "hd" => DefinitionSection::Hosts,
        "sd" => DefinitionSection::Storages,
        "wd" => DefinitionSection::Workloads,
        "rd" => return Ok(Some(DefinitionSection::Runs)),
        "fsd" | "fwd" if section <= DefinitionSection::Workloads => {
            return Err(JobFileError::Refused {
                place: parameter.place.clone(),
                found: format!("{}=", parameter.keyword),
                owner: "the file".to_owned(),
                why: FILE_SYSTEMS,
            });
        }
        _ => return Ok(None),
    };
    Ok((section <= next).then_some(next))
}

impl Builder {
    /// Begins a definition.
    fn open(
        &mut self,
        section: DefinitionSection,
        parameter: &Parameter,
    ) -> Result<(), JobFileError> {
        let word = parameter.keyword.as_str();
        let name = parameter.value.word().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| JobFileError::Value {
            place: parameter.place.clone(),
            parameter: format!("{word}="),
            found: parameter.value.shown(),
            expected: "one name".to_owned(),
        })?;
        self.owner = format!("{word}={name}");
        self.seen = GivenParameters::default();
        self.is_default = name == "default";
        let (name, place) = (name.to_owned(), parameter.place.clone());
        match section {
            DefinitionSection::Hosts => self.hosts.push(name),
            _ if self.is_default => {}
            DefinitionSection::Storages => {
                self.all.storages.push(Storage {
                    name,
                    place,
                    ..self.storage_default.clone()
                });
            }
            DefinitionSection::Workloads => {
                must_be_new(
                    "wd",
                    &name,
                    &place,
                    self.all.workloads.iter().map(|wd| (&*wd.name, &wd.place)),
                )?;
                self.all.workloads.push(Workload {
                    name,
                    place,
                    ..self.all.workload_default.clone()
                });
            }
            DefinitionSection::General | DefinitionSection::Runs => {
                must_be_new(
                    "rd",
                    &name,
                    &place,
                    self.all.runs.iter().map(|rd| (&*rd.name, &rd.place)),
                )?;
                self.all.runs.push(RunDefinition {
                    name,
                    place,
                    ..self.run_default.clone()
                });
            }
        }
        Ok(())
    }

    /// Adds a parameter to the definition that is open.
    fn take(
        &mut self,
        section: DefinitionSection,
        parameter: &Parameter,
    ) -> Result<(), JobFileError> {
        let owner = std::mem::take(&mut self.owner);
        let taken = match section {
            DefinitionSection::General => self.take_general(parameter, &owner),
            DefinitionSection::Hosts => self.take_host(parameter, &owner),
            DefinitionSection::Storages => self.take_storage(parameter, &owner),
            DefinitionSection::Workloads => self.take_workload(parameter, &owner),
            DefinitionSection::Runs => self.take_run(parameter, &owner),
        };
        self.owner = owner;
        taken
    }

    fn take_general(&mut self, parameter: &Parameter, owner: &str) -> Result<(), JobFileError> {
        let (General::No, known) = find(GENERAL, parameter, owner)?;
        self.seen.once(&known)?;
        if known.word()? != "no" {
            Err(known.wrong("no"))
        } else {
            Ok(())
        }
    }

    fn take_host(&mut self, parameter: &Parameter, owner: &str) -> Result<(), JobFileError> {
        let (key, known) = find(HOST, parameter, owner)?;
        self.seen.once(&known)?;
        match key {
            HostParameter::System if known.word()? != "localhost" => {
                Err(known.wrong("localhost: I/O are of this host"))
            }
            HostParameter::System => Ok(()),
            HostParameter::Processes => {
                known.whole(1, THREADS_MAX)?;
                let note = format!(
                    "{}: jvms= has no meaning here, one process sends all I/O",
                    parameter.place
                );
                self.all.notes.push(note);
                Ok(())
            }
        }
    }

    /// Hosts are this one by any of its names.
    fn check_hosts(&self, known: &Known<'_>) -> Result<(), JobFileError> {
        let own = |name: &String| {
            ["*", "localhost"].contains(&name.as_str()) || self.hosts.contains(name)
        };
        let all = known.words()?.iter().all(own);
        all.then_some(())
            .ok_or_else(|| known.wrong("localhost: I/O are of this host"))
    }

    fn take_storage(&mut self, parameter: &Parameter, owner: &str) -> Result<(), JobFileError> {
        let (key, known) = find(SD, parameter, owner)?;
        self.seen.once(&known)?;
        if let Sd::Host = key {
            return self.check_hosts(&known);
        }
        let is_default = self.is_default;
        let open = if is_default {
            Some(&mut self.storage_default)
        } else {
            self.all.storages.last_mut()
        };
        let Some(sd) = open else { return Ok(()) };
        match key {
            Sd::Host => {}
            Sd::Lun if is_default => {
                return Err(known.wrong("no lun= of a default: each sd has its own"));
            }
            Sd::Lun => {
                sd.lun = Some(known.word()?.to_owned());
                sd.place = parameter.place.clone();
            }
            Sd::Count => sd.count = Some(count(&known)?),
            Sd::Size => sd.size = Some(known.sectors(512)?),
            Sd::Threads => sd.threads = known.whole(1, THREADS_MAX)? as u32,
            Sd::HitArea => sd.hit_area = known.sectors(512)?,
            Sd::Offset => sd.offset = known.sectors(0)?,
            Sd::Align => sd.align = Some(known.sectors(0)?).filter(|align| *align > 0),
            Sd::OpenFlags => check_open_flags(&known)?,
            Sd::Range => sd.range = Some(range(&known)?),
        }
        Ok(())
    }

    fn take_workload(&mut self, parameter: &Parameter, owner: &str) -> Result<(), JobFileError> {
        let (key, known) = find(WD, parameter, owner)?;
        self.seen.once(&known)?;
        if let Wd::Host = key {
            return self.check_hosts(&known);
        }
        let open = if self.is_default {
            Some(&mut self.all.workload_default)
        } else {
            self.all.workloads.last_mut()
        };
        let Some(wd) = open else { return Ok(()) };
        match key {
            Wd::Host => {}
            Wd::Storages => wd.storages = known.words()?,
            Wd::Skew => wd.skew = Some(known.percent()?),
            Wd::Lengths => wd.lengths = lengths(&known)?,
            Wd::ReadPercent => wd.read_percent = known.percent()?,
            Wd::WritePercent => wd.read_percent = 100 - known.percent()?,
            Wd::Range => wd.range = Some(range(&known)?),
            Wd::Order => wd.order = order(&known)?,
            Wd::Stride => wd.stride = Some(stride(&known)?),
            Wd::ReadHits => wd.read_hits = known.percent()?,
            Wd::WriteHits => wd.write_hits = known.percent()?,
            Wd::OpenFlags => check_open_flags(&known)?,
        }
        Ok(())
    }

    fn take_run(&mut self, parameter: &Parameter, owner: &str) -> Result<(), JobFileError> {
        let (key, known) = find(RD, parameter, owner)?;
        self.seen.once(&known)?;
        let open = if self.is_default {
            Some(&mut self.run_default)
        } else {
            self.all.runs.last_mut()
        };
        let Some(rd) = open else { return Ok(()) };
        match key {
            Rd::Workloads => rd.workloads = known.words()?,
            Rd::Storages => rd.storages = Some(known.words()?),
            Rd::Rate => rd.rate = Some(rate(&known)?),
            Rd::Curve => rd.curve = curve(&known)?,
            Rd::Elapsed => rd.elapsed = known.seconds(1)?,
            Rd::Interval => rd.interval = known.seconds(1)?,
            Rd::Warmup => rd.warmup = known.seconds(0)?,
            Rd::Pause => rd.pause = known.seconds(0)?,
            Rd::Repeated(what) => {
                let values = varied(what, &known)?;
                rd.loops.retain(|other| other.what != what);
                rd.loops.push(RunLoop { what, values });
            }
            Rd::Arrivals => rd.arrivals = arrivals(&known)?,
            Rd::OpenFlags => check_open_flags(&known)?,
        }
        Ok(())
    }
}

fn must_be_new<'a>(
    kind: &str,
    name: &str,
    place: &FileLine,
    mut others: impl Iterator<Item = (&'a str, &'a FileLine)>,
) -> Result<(), JobFileError> {
    match others.find(|(other, _)| *other == name) {
        Some((_, first)) => Err(JobFileError::Twice {
            place: place.clone(),
            what: format!("{kind}={name}"),
            first: first.line,
        }),
        None => Ok(()),
    }
}

/// As Vdbench demands them: whole intervals, and at least two.
fn check_times(rd: &RunDefinition) -> Result<(), JobFileError> {
    let wrong = |parameter: &str, found: u64, expected: String| JobFileError::Value {
        place: rd.place.clone(),
        parameter: format!("{parameter} of rd={}", rd.name),
        found: found.to_string(),
        expected,
    };
    let RunDefinition {
        elapsed,
        interval,
        warmup,
        ..
    } = *rd;
    if elapsed / interval < 2 || !elapsed.is_multiple_of(interval) {
        let expected = format!("a multiple of interval={interval}, and at least twice that");
        return Err(wrong("elapsed", elapsed, expected));
    }
    if !warmup.is_multiple_of(interval) {
        return Err(wrong(
            "warmup",
            warmup,
            format!("a multiple of interval={interval}"),
        ));
    }
    Ok(())
}

/// Storages with those that `count=` makes in place of the one that has it.
fn counted(storages: Vec<Storage>) -> Result<Vec<Storage>, JobFileError> {
    let mut all: Vec<Storage> = Vec::new();
    for sd in storages {
        let Some(lun) = sd.lun.clone() else {
            return Err(JobFileError::Lacking {
                place: sd.place,
                owner: format!("sd={}", sd.name),
                lacking: "lun=",
                expected: "the device or file: lun=/dev/sdb",
            });
        };
        match sd.count {
            None => all.push(sd),
            Some((start, many)) => all.extend((start..start + many).map(|number| {
                let (name, lun) = (numbered(&sd.name, number), Some(numbered(&lun, number)));
                Storage {
                    name,
                    lun,
                    count: None,
                    ..sd.clone()
                }
            })),
        }
        if all.len() > COUNT_MAX as usize {
            let known = listed(all.iter().take(1).map(|sd| sd.name.as_str()));
            return Err(JobFileError::Shape {
                place: all[0].place.clone(),
                found: format!("more than {COUNT_MAX} storages from sd={known} on"),
                expected: "fewer",
            });
        }
    }
    for (at, sd) in all.iter().enumerate() {
        must_be_new(
            "sd",
            &sd.name,
            &sd.place,
            all[..at].iter().map(|other| (&*other.name, &other.place)),
        )?;
    }
    Ok(all)
}

/// A name with a number in place of its `*`, or behind it.
fn numbered(name: &str, number: u64) -> String {
    if name.contains('*') {
        name.replace('*', &number.to_string())
    } else {
        format!("{name}{number}")
    }
}
