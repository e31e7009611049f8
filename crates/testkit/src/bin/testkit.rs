//! `plumb-testkit`: synthetic traces of any size to a file or a pipe, conversions of real ones, and an NVMe drive of chosen
//! Identify data.
//!
//! Exit status: 0 done (also when the reader of a pipe has gone), 2 usage, 5 failed.

#![forbid(unsafe_code)]

use plumb_testkit::by_name::{self, Size, WORKLOADS};
use plumb_testkit::charging::ChargedCells;
use plumb_testkit::convert::{convert_blktrace, convert_vscsi};
use plumb_testkit::nvme_target::{self, Drive, NAME_BYTES_MAX, Subsystem};
use plumb_testkit::seeds;
use plumb_testkit::write::blkrecord::{Endian, Version};
use plumb_testkit::write::blktrace::{Blktrace, create_files};
use plumb_testkit::write::lifecycle::Shapes;
use plumb_testkit::write::{Style, WRITERS};
use plumb_testkit::{EventSink, write_all};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
plumb-testkit generate FORMAT --events N [--seed S] [--out PATH|-] [--workload NAME] [--misfits N]
                       [--devices N] [--cpus N] [--version 7|8] [--endian little|big] [--shapes plain|all]
plumb-testkit convert-blktrace IN OUT [--version 7|8] [--endian little|big]
plumb-testkit convert-vscsi IN OUT
plumb-testkit nvme-target ADDRESS:PORT NQN [FIELD=VALUE...]
plumb-testkit cells CELL_BYTES PHASE_BYTES RATIO
plumb-testkit seeds FOLDER
plumb-testkit list

generate blktrace --out BASE makes BASE.blktrace.0 and on, one file a CPU; --out - gives the merged stream.
--misfits defaults to one event in a hundred. IN and OUT may be -.
cells serves a file. Reads off its grid cost RATIO times as much, from 1 to 2. It prints its path, and ends with its input.
seeds writes a short trace of each format, TARGET/NAME, for the fuzzer.
nvme-target serves one namespace over NVMe/TCP until it is ended. Fields: lba (512 or 4096), nsze, optperf (0 or 1), npwg,
npwa, npdg, npda, nows, noiob, awupf, nawupf, model, serial; numbers as the specification has them, so npwg=3 is 4 blocks.";

/// The reason for an early end of the program.
enum Stop {
    Usage(String),
    Failed(Box<dyn Error>),
}

impl<E: Error + 'static> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(error))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Usage(why)) => {
            eprintln!("plumb-testkit: {why}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Stop::Failed(error)) if is_closed_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(Stop::Failed(error)) => {
            eprint!("plumb-testkit: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprint!(": {cause}");
                source = cause.source();
            }
            eprintln!();
            ExitCode::from(5)
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |e: &&(dyn Error + 'static)| (*e).source())
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

fn run(arguments: &[String]) -> Result<(), Stop> {
    let parsed = Arguments::parse(arguments)?;
    let words: Vec<&str> = parsed.words.iter().map(String::as_str).collect();
    match words[..] {
        ["generate", format] => generate(format, &parsed),
        ["convert-blktrace", from, to] => {
            let records = convert_blktrace(
                input(from)?,
                output(to)?,
                parsed.version()?,
                parsed.endian()?,
            )?;
            eprintln!("{records} records");
            Ok(())
        }
        ["convert-vscsi", from, to] => {
            let records = convert_vscsi(input(from)?, output(to)?)?;
            eprintln!("{records} records");
            Ok(())
        }
        ["nvme-target", address, name, ref fields @ ..] => nvme_target(address, name, fields),
        ["cells", cell, phase, ratio] => cells(cell, phase, ratio),
        ["seeds", folder] => Ok(seeds::write(Path::new(folder))?),
        ["list"] => {
            for writer in WRITERS {
                println!("format {} read-as {}", writer.name, writer.format);
            }
            for workload in WORKLOADS {
                println!("workload {workload}");
            }
            Ok(())
        }
        _ => Err(Stop::Usage(format!(
            "not understood: {}",
            arguments.join(" ")
        ))),
    }
}

fn cells(cell: &str, phase: &str, ratio: &str) -> Result<(), Stop> {
    let number = |text: &str| text.parse::<u64>().ok();
    let ratio = ratio
        .parse::<f64>()
        .ok()
        .filter(|ratio| (1.0..=2.0).contains(ratio));
    let (Some(cell), Some(phase), Some(ratio)) = (number(cell), number(phase), ratio) else {
        return Err(Stop::Usage(
            "cells: expected two numbers of bytes and a ratio from 1 to 2".to_owned(),
        ));
    };
    let device = ChargedCells::of_ratio(cell, phase, ratio).up();
    println!("{}", device.path().display());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn generate(format: &str, parsed: &Arguments) -> Result<(), Stop> {
    let count = parsed.number("events", None)?;
    let size = Size {
        seed: parsed.number("seed", Some(1))?,
        events: count,
        devices: parsed.small_number("devices", 16)?,
        cpus: parsed.small_number("cpus", 16)?,
        misfits: parsed.number("misfits", Some(count / 100))?,
    };
    if size.misfits > count {
        return Err(Stop::Usage("--misfits is more than --events".to_owned()));
    }
    let workload = parsed.text("workload", "mixed");
    let events = by_name::events(workload, size).ok_or_else(|| {
        Stop::Usage(format!(
            "no workload {workload}; there are: {}",
            WORKLOADS.join(" ")
        ))
    })?;
    let mut sink = sink(format, parsed, size.cpus)?;
    let written = write_all(sink.as_mut(), events)?;
    eprintln!(
        "{} events, {} left out that the format cannot hold",
        written.events, written.left_out
    );
    Ok(())
}

fn nvme_target(address: &str, name: &str, fields: &[&str]) -> Result<(), Stop> {
    let mut drive = Drive::default();
    for field in fields {
        drive
            .set(field)
            .map_err(|error| Stop::Usage(error.to_string()))?;
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Stop::Usage(format!(
            "{name}: a qualified name has {NAME_BYTES_MAX} bytes at most"
        )));
    }
    let listener = TcpListener::bind(address)?;
    println!("{name} on {}", listener.local_addr()?);
    Ok(nvme_target::serve(&listener, Subsystem::new(name, drive))?)
}

fn sink(format: &str, parsed: &Arguments, cpus: u32) -> Result<Box<dyn EventSink>, Stop> {
    let writer = WRITERS.iter().find(|writer| writer.name == format);
    let writer = writer.ok_or_else(|| {
        let names: Vec<&str> = WRITERS.iter().map(|writer| writer.name).collect();
        Stop::Usage(format!(
            "no format {format}; there are: {}",
            names.join(" ")
        ))
    })?;
    let style = Style {
        shapes: parsed.shapes(cpus)?,
        version: parsed.version()?,
        endian: parsed.endian()?,
    };
    let out = parsed.text("out", "-");
    if format == "blktrace" && out != "-" {
        let files = create_files(Path::new(out), cpus)?;
        let Style {
            shapes,
            version,
            endian,
        } = style;
        return Ok(Box::new(Blktrace::new(files, version, endian, shapes)));
    }
    // Writers buffer by themselves, so the plain file is enough.
    let sink: Box<dyn Write> = if out == "-" {
        Box::new(stdout()?)
    } else {
        Box::new(File::create(out)?)
    };
    Ok((writer.open)(sink, &style)?)
}

/// Standard output without the line buffer that `io::stdout` puts in front.
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn input(name: &str) -> io::Result<Box<dyn io::Read>> {
    if name == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(name).map_err(|e| io::Error::new(e.kind(), format!("{name}: {e}")))?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, file)))
}

fn output(name: &str) -> io::Result<Box<dyn Write>> {
    let file = if name == "-" {
        stdout()?
    } else {
        File::create(name)?
    };
    Ok(Box::new(BufWriter::with_capacity(1 << 18, file)))
}

const FLAGS: [&str; 10] = [
    "events", "seed", "out", "workload", "misfits", "devices", "cpus", "version", "endian",
    "shapes",
];

/// Words, and the values of flags.
struct Arguments {
    words: Vec<String>,
    flags: BTreeMap<String, String>,
}

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Self, Stop> {
        let mut parsed = Self {
            words: Vec::new(),
            flags: BTreeMap::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(flag) = argument.strip_prefix("--") else {
                parsed.words.push(argument.clone());
                continue;
            };
            if !FLAGS.contains(&flag) {
                return Err(Stop::Usage(format!("no flag --{flag}")));
            }
            let value = rest
                .next()
                .ok_or_else(|| Stop::Usage(format!("--{flag} needs a value")))?;
            parsed.flags.insert(flag.to_owned(), value.clone());
        }
        Ok(parsed)
    }

    fn text<'a>(&'a self, flag: &str, default: &'a str) -> &'a str {
        self.flags.get(flag).map_or(default, String::as_str)
    }

    fn number(&self, flag: &str, default: Option<u64>) -> Result<u64, Stop> {
        match self.flags.get(flag) {
            // Underscores are allowed, to be able to read 500_000_000.
            Some(text) => text
                .replace('_', "")
                .parse()
                .map_err(|_| Stop::Usage(format!("--{flag} {text} is not a whole number"))),
            None => default.ok_or_else(|| Stop::Usage(format!("--{flag} is missing"))),
        }
    }

    /// A number from 1 to 4096.
    fn small_number(&self, flag: &str, default: u32) -> Result<u32, Stop> {
        let number = self.number(flag, Some(u64::from(default)))?;
        u32::try_from(number)
            .ok()
            .filter(|n| (1..=4096).contains(n))
            .ok_or_else(|| Stop::Usage(format!("--{flag} {number} is not from 1 to 4096")))
    }

    fn version(&self) -> Result<Version, Stop> {
        match self.text("version", "7") {
            "7" => Ok(Version::V7),
            "8" => Ok(Version::V8),
            other => Err(Stop::Usage(format!("--version {other} is neither 7 nor 8"))),
        }
    }

    fn endian(&self) -> Result<Endian, Stop> {
        match self.text("endian", "little") {
            "little" => Ok(Endian::Little),
            "big" => Ok(Endian::Big),
            other => Err(Stop::Usage(format!(
                "--endian {other} is neither little nor big"
            ))),
        }
    }

    fn shapes(&self, cpus: u32) -> Result<Shapes, Stop> {
        match self.text("shapes", "plain") {
            "plain" => Ok(Shapes {
                cpus,
                ..Shapes::default()
            }),
            "all" => Ok(Shapes::all(cpus)),
            other => Err(Stop::Usage(format!(
                "--shapes {other} is neither plain nor all"
            ))),
        }
    }
}
