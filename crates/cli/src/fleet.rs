//! `plumb fleet`: the I/O of many hosts, in one pass over their recordings or in shards that are merged.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_diagnose::Questions;
use plumb_fleet::file::{MAGIC, is_fleet_file};
use plumb_fleet::{
    FleetMerge, FleetReader, FleetWriter, HostIo, HostParts, MergeError, SourceError, Sources,
    find_sources,
};
use plumb_geometry::plural;
use plumb_trace::progress::{CountingReader, Progress};
use plumb_trace::write::Output;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::cli::{Fleet, FleetCommand, FleetMerging, FleetProfile};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::sandbox::{self, Files};
use crate::status::Meter;

mod answers;
mod checked;
mod collected;
pub mod engine;
mod judge;
mod pass;
mod plans;
mod report;
mod rows;
mod state;
mod survey;
mod windows;

/// Bytes that are read at once of each of many files.
const BUFFER_BYTES: usize = 64 << 10;

/// Runs the command.
///
/// # Errors
/// When an input cannot be read, or the output cannot be written.
pub fn run(args: &Fleet) -> Result<Exit, Failure> {
    match &args.command {
        FleetCommand::Report(args) => report::run(args),
        FleetCommand::Profile(args) => profile(args),
        FleetCommand::Merge(args) => merge(args),
        FleetCommand::Rows(args) => rows::run(args),
    }
}

fn profile(args: &FleetProfile) -> Result<Exit, Failure> {
    let mut sources = sources(&args.sources, &[], &[&args.output])?;
    let collections = checked::take_collections(&mut sources.found).len() as u64;
    if collections > 0 {
        let collections = plural(collections, "collection");
        say(&format!(
            "plumb: {collections} not profiled: pass them to `plumb fleet report` beside the fleet file"
        ));
    }
    if let Some(shard) = &args.shard {
        sources.found.retain(|source| shard.takes(&source.name));
    }
    let questions = Questions {
        grids: args.input.grids(),
        ..Questions::default()
    };
    let mut writer = NewFleet::begin(&args.output)?;
    let settings = questions.settings();
    let end = pass::run(
        &sources.found,
        &settings,
        args.input.skip_bad,
        None,
        &mut |host, _| writer.add(host).map(drop),
    )?;
    writer.commit()?;
    Ok(end.exit())
}

fn merge(args: &FleetMerging) -> Result<Exit, Failure> {
    let mut files = opened(args)?;
    let mut writer = NewFleet::begin(&args.output)?;
    let mut end = pass::PassEnd::default();
    while let Some(parts) = next_parts(&mut files)? {
        let host = joined(parts)?;
        end.count(&host);
        writer.add(host)?;
    }
    writer.commit()?;
    Ok(end.exit())
}

/// The fleet files of a command, after all other rights are given up.
fn opened(args: &FleetMerging) -> Result<FleetFiles, Failure> {
    let files = fleet_files(&args.files)?;
    output::may_write(&files, &[&args.output])?;
    sandbox::enter(&Files {
        inputs: files.clone(),
        outputs: vec![args.output.clone()],
    })?;
    open_all(&files)
}

/// The files, and those in the folders among them. Names that begin with a dot are unfinished files.
fn fleet_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let listed = std::fs::read_dir(path).and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<std::io::Result<Vec<PathBuf>>>()
        });
        let mut listed = listed.map_err(|source| {
            let path = path.clone();
            Failure::failed(&SourceError::List { path, source })
        })?;
        listed.retain(|file| is_fleet(file) && !is_hidden(file));
        if listed.is_empty() {
            let path = path.display();
            let found = format!("{path}: found no fleet file in the folder, expected some");
            return Err(Failure::missing(found));
        }
        listed.sort_unstable();
        files.extend(listed);
    }
    Ok(files)
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// The inputs below the sources, after all other rights are given up. `beside` are other files that are read.
fn sources(roots: &[PathBuf], beside: &[PathBuf], outputs: &[&Path]) -> Result<Sources, Failure> {
    let sources = find_sources(roots).map_err(|error| match error {
        SourceError::Missing { .. } => Failure::missing(error.to_string()),
        SourceError::List { .. } => Failure::failed(&error),
        SourceError::Nested { .. } => Failure::usage(error.to_string()),
        SourceError::Twice { .. } => Failure::usage(error.to_string())
            .with_help("pass the folder that contains both: names are relative to it then"),
    })?;
    let files = sources.found.iter().flat_map(pass::files_of);
    let files: Vec<PathBuf> = files.cloned().collect();
    output::may_write(&[&files, beside].concat(), outputs)?;
    let folders = roots.iter().filter(|root| root.is_dir()).cloned();
    let single = files.into_iter().filter(|file| {
        !roots
            .iter()
            .any(|root| root.is_dir() && file.starts_with(root))
    });
    sandbox::enter(&Files {
        inputs: folders
            .chain(single)
            .chain(beside.iter().cloned())
            .collect(),
        outputs: outputs.iter().map(|path| path.to_path_buf()).collect(),
    })?;
    for path in &sources.passed_over {
        let path = path.display();
        say(&format!(
            "plumb: {path} is not read: it is neither a file nor a folder, or a link to a folder"
        ));
    }
    Ok(sources)
}

/// Whether a path is a fleet file. One that cannot be read is none; the error comes when it is read as a source.
fn is_fleet(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    let is_file = path.is_file();
    is_file
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && is_fleet_file(&head)
}

/// Fleet files that are read side by side, and the line that shows how much of them is read.
struct FleetFiles {
    merge: FleetMerge<BufReader<CountingReader<File>>>,
    _meter: Meter,
}

fn open_all(paths: &[PathBuf]) -> Result<FleetFiles, Failure> {
    // All shards are open at once, and there may be more of them than a process may open by default.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let progress = Arc::new(Progress::default());
    let open = |path: &PathBuf| {
        let name = path.display().to_string();
        let opened = File::open(path).map_err(|source| {
            let path = name.clone();
            Failure::failed(&plumb_trace::Error::Open { path, source })
        })?;
        progress.expect(opened.metadata().map_or(0, |found| found.len()));
        let counted = CountingReader::new(opened, &progress);
        let reader = FleetReader::new(BufReader::with_capacity(BUFFER_BYTES, counted))
            .map_err(|error| Failure::failed(&error).at(&name))?;
        Ok((name, reader))
    };
    let files = paths
        .iter()
        .map(open)
        .collect::<Result<Vec<_>, Failure>>()?;
    Ok(FleetFiles {
        merge: FleetMerge::new(files),
        _meter: Meter::of_reading(&progress),
    })
}

fn next_parts(files: &mut FleetFiles) -> Result<Option<HostParts>, Failure> {
    let next = files.merge.next_parts();
    next.map_err(|error| of_merge(&error))
}

/// The host of its parts in several files.
fn joined(parts: HostParts) -> Result<HostIo, Failure> {
    parts.joined().map_err(|error| of_merge(&error))
}

fn of_merge(error: &MergeError) -> Failure {
    let failure = Failure::failed(error);
    match error {
        MergeError::File { .. } => failure,
        MergeError::Changed { .. } | MergeError::Overlap { .. } => failure.with_help(
            "profile the inputs again with one SOURCE and one set of options, in one pass or in shards of one number",
        ),
    }
}

/// A fleet file in the making. It gets its name when it is whole: a kill leaves none under that name.
struct NewFleet {
    path: String,
    writer: FleetWriter<Output>,
}

impl NewFleet {
    fn begin(path: &Path) -> Result<NewFleet, Failure> {
        let output = Output::create(path).map_err(|error| Failure::failed(&error))?;
        let path = output.path();
        let writer = FleetWriter::new(output).map_err(|error| Failure::failed(&error).at(&path))?;
        Ok(NewFleet { path, writer })
    }

    /// Writes a host, and returns it.
    fn add(&mut self, host: HostIo) -> Result<HostIo, Failure> {
        let added = self.writer.add(host);
        added.map_err(|error| Failure::failed(&error).at(&self.path))
    }

    fn commit(self) -> Result<(), Failure> {
        let finished = self.writer.finish();
        let output = finished.map_err(|error| Failure::failed(&error).at(&self.path))?;
        output.commit().map_err(|error| Failure::failed(&error))?;
        output::note_written(&self.path);
        Ok(())
    }
}

/// `3 inputs could not be read`.
fn say_unread(unread: u64) {
    say(&format!(
        "plumb: {} could not be read",
        plural(unread, "input")
    ));
}
