//! The common work of every fuzz target: read bytes as a trace to its end, fold the events into profiles, judge them
//! and print the reports, so that hostile numbers reach everything that a user's trace reaches.
//!
//! A target fails by a panic, by an overflow, by more time or memory than the script allows, or by one of the
//! promises that are asserted here. Targets do not check whether a reader understood the bytes correctly; the tests of the
//! formats do that.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, panic};

use plumb_fleet::{FleetMerge, FleetReader, Inventory, file};
use plumb_profile::codec::{self, Saved};
use plumb_trace::format::FORMATS;
use plumb_trace::input::Input;
use plumb_trace::open::{Piece, open, open_input};
use plumb_trace::{Error, Layer, LayerChoice, ReadOptions, Reader};
use twox_hash::XxHash64;

mod dump;
mod iostat;
mod job_file;
mod judge;
mod known;
mod label;
mod ondisk;
mod read;
mod relocate;
mod rpm;
mod rrd;

/// The fewest bytes that make an input gzip: its fixed head without any optional field.
const GZIP_HEAD: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
/// The bytes that make an input zstd.
const ZSTD_HEAD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Reads bytes, and returns whether they were taken for the expected format: other seeds lead nowhere.
type Target = fn(&[u8]) -> bool;

/// Targets that belong to no single format of traces, and the format that is read from a file's end.
const OTHERS: &[(&str, Target)] = &[
    ("blktrace_cpus", blktrace_cpus),
    ("dump", dump::all),
    ("fio_job", job_file::fio),
    ("fleet", fleet),
    ("gzip", |data| compressed(GZIP_HEAD, data)),
    ("inventory", inventory),
    ("iostat", iostat::all),
    ("known_table", known::table),
    ("label_gpt", label::gpt),
    ("label_mbr", label::mbr),
    ("label_vtoc", label::vtoc),
    ("marker", relocate::marker),
    ("move_journal", relocate::move_journal),
    ("ondisk", ondisk::disk),
    ("parquet", |data| in_file("parquet", data)),
    ("profile", profile),
    ("rpm_header", rpm::header),
    ("rrd", rrd::dump),
    ("saved_label", relocate::saved_label),
    ("sniff", sniff),
    ("vdbench", job_file::vdbench),
    ("zstd", |data| compressed(ZSTD_HEAD, data)),
];

/// The names of all targets: one for each format of traces, and the others.
pub fn targets() -> Vec<String> {
    let formats = FORMATS.iter().map(|format| format.fuzz_target());
    let others = OTHERS.iter().map(|(name, _)| (*name).to_owned());
    let mut names: Vec<String> = formats.chain(others).collect();
    names.sort();
    names.dedup();
    names
}

/// Runs a target by its name.
pub fn run(target: &str, data: &[u8]) -> bool {
    if let Some((_, run)) = OTHERS.iter().find(|(name, _)| *name == target) {
        return run(data);
    }
    let named = FORMATS.iter().find(|format| format.fuzz_target() == target);
    let named =
        named.unwrap_or_else(|| panic!("no target {target}; there are: {}", targets().join(", ")));
    format(named.name, data)
}

/// Reads the bytes as one format, regardless of their looks.
fn format(name: &str, data: &[u8]) -> bool {
    let options = ReadOptions {
        format: Some(name.to_owned()),
        ..choose(data)
    };
    follow(
        from_memory(data).and_then(|input| open_input(input, &options)),
        data,
        true,
    )
}

/// Reads the bytes as the format that the sniffers recognize, and asks every sniffer about beginnings of them.
fn sniff(data: &[u8]) -> bool {
    for format in FORMATS {
        let _ = (format.sniff)(data, true);
        let _ = (format.sniff)(&data[..data.len() / 2], false);
    }
    follow(
        from_memory(data).and_then(|input| open_input(input, &choose(data))),
        data,
        true,
    )
}

/// Reads the bytes as a compressed CSV. Without the right beginning they would not be taken for compressed.
fn compressed(head: &[u8], data: &[u8]) -> bool {
    let mut packed = data.to_vec();
    if !data.starts_with(&head[..head.len().min(2)]) {
        packed = [head, data].concat();
    }
    let options = ReadOptions {
        format: Some("msr".to_owned()),
        ..ReadOptions::default()
    };
    follow(
        from_memory(&packed).and_then(|input| open_input(input, &options)),
        data,
        false,
    )
}

/// Reads the bytes as a file, for formats that read from the end.
fn in_file(name: &str, data: &[u8]) -> bool {
    // The reader catches the panics of the library that decodes; the hook of the fuzzer would not let it.
    let before = panic::take_hook();
    let last = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&last);
    panic::set_hook(Box::new(move |info| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string()
    }));
    let read = panic::catch_unwind(|| read_file(name, data));
    panic::set_hook(before);
    read.unwrap_or_else(|_| panic!("{}", last.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn read_file(name: &str, data: &[u8]) -> bool {
    let Some(path) = scratch_file("input", data) else {
        return false;
    };
    let options = ReadOptions {
        format: Some(name.to_owned()),
        ..choose(data)
    };
    // A column of equal values takes a few bytes for any number of rows.
    follow(
        Input::open(&path).and_then(|input| open_input(input, &options)),
        data,
        false,
    )
}

/// Reads the bytes as the files of two CPUs; the first two say how many belong to the first file.
fn blktrace_cpus(data: &[u8]) -> bool {
    let Some((length, both)) = data.split_first_chunk::<2>() else {
        return false;
    };
    let (first, second) = both.split_at(usize::from(u16::from_le_bytes(*length)).min(both.len()));
    let files = [("t.blktrace.0", first), ("t.blktrace.1", second)];
    let files: Vec<PathBuf> = files
        .iter()
        .filter_map(|(name, bytes)| scratch_file(name, bytes))
        .collect();
    let piece = Piece {
        path: PathBuf::from("t"),
        files,
    };
    follow(open(&piece, &choose(data)), data, true)
}

/// Decodes the bytes as saved profiles. The inside of the frame has a checksum around it, and no mutation
/// gets past: bytes without the head of the file are packed as the inside of one.
fn profile(data: &[u8]) -> bool {
    let mut bytes = data.to_vec();
    if !codec::is_encoded(data) {
        let Ok(frame) = zstd::bulk::compress(data, 1) else {
            return false;
        };
        bytes = [
            codec::MAGIC,
            &codec::VERSION.to_le_bytes()[..],
            &[0, 0],
            &frame,
        ]
        .concat();
    }
    let Ok(saved) = codec::decode(&bytes) else {
        return false;
    };
    judge::judge(&saved, &[]);
    judge::merge(saved);
    true
}

/// Reads the bytes as a fleet file. Its records have checks that no mutation gets past: bytes without the head of the file are the
/// inside of one record, the length of its facts in two bytes before them.
fn fleet(data: &[u8]) -> bool {
    let mut bytes = data.to_vec();
    if !file::is_fleet_file(data) {
        let Some((length, inside)) = data.split_first_chunk::<2>() else {
            return false;
        };
        let facts = usize::from(u16::from_le_bytes(*length)).min(inside.len());
        bytes = fleet_of_one(inside, facts);
    }
    let Ok(hosts) = file::decode(&bytes) else {
        return false;
    };
    let files = [&bytes[..], &bytes].map(|bytes| {
        let reader = FleetReader::new(bytes);
        (String::new(), reader.expect("it was read before"))
    });
    let mut merge = FleetMerge::new(files.into());
    for host in &hosts {
        let merged = merge.next_host().expect("one file twice");
        assert_eq!(merged.as_ref(), Some(host), "twice is once");
    }
    for host in hosts {
        let saved = Saved {
            profiles: host.profiles,
            ..Saved::default()
        };
        judge::judge(&saved, &[]);
    }
    true
}

/// Reads an inventory of hosts.
fn inventory(data: &[u8]) -> bool {
    match Inventory::read(data) {
        Ok(inventory) => !inventory.is_empty(),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// A fleet file with one record.
fn fleet_of_one(inside: &[u8], facts: usize) -> Vec<u8> {
    let lengths = [facts, inside.len() - facts].map(|len| (len as u32).to_le_bytes());
    let record = [&lengths.concat(), inside].concat();
    let parts = [&record[..8], &inside[..facts], &inside[facts..]];
    let hash = |seed, part: &&[u8]| XxHash64::oneshot(seed, part);
    let check = parts.iter().fold(0, hash);
    let end = [&[0; 8], &1u64.to_le_bytes()[..]];
    let end_check = end.iter().fold(check, hash);
    [
        file::MAGIC,
        &file::VERSION.to_le_bytes()[..],
        &[0, 0],
        &record,
        &check.to_le_bytes(),
        &end.concat(),
        &end_check.to_le_bytes(),
    ]
    .concat()
}

/// The layer asked for; the length of the input decides, so that any input is a seed.
fn choose(data: &[u8]) -> ReadOptions {
    let layer = match data.len() % 16 {
        13 => LayerChoice::All,
        14 => LayerChoice::Only(Layer::Bio),
        15 => LayerChoice::Only(Layer::Request),
        _ => LayerChoice::Lowest,
    };
    ReadOptions {
        layer,
        ..ReadOptions::default()
    }
}

fn from_memory(data: &[u8]) -> Result<Input, Error> {
    Input::from_reader("input", Box::new(Cursor::new(data.to_vec())))
}

/// Reads to the end; `bounded` says that every fill has to take at least a byte of `data`. Whether there was something.
fn follow(opened: Result<Box<dyn Reader>, Error>, data: &[u8], bounded: bool) -> bool {
    match opened {
        Ok(mut reader) => {
            let fills_max = bounded.then_some(data.len() + 2);
            let saved = read::to_profiles(reader.as_mut(), fills_max);
            judge::judge(&saved, std::slice::from_ref(reader.info()));
            let is_empty = saved.profiles.is_empty();
            if data.len() % 8 == 5 {
                judge::same_when_decoded(&saved);
                judge::merge(saved);
            }
            !is_empty
        }
        Err(error) => {
            assert!(!matches!(error, Error::NoSuchFormat { .. }), "{error}");
            assert!(!error.to_string().is_empty(), "an error says something");
            matches!(error, Error::Refused { .. })
        }
    }
}

/// A file in the memory of this process's own, or nothing where none can be made.
fn scratch_file(name: &str, bytes: &[u8]) -> Option<PathBuf> {
    let root =
        std::env::var_os("PLUMB_FUZZ_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = root.join(format!("plumb-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).ok()?;
    let path = folder.join(name);
    fs::write(&path, bytes).ok()?;
    Some(path)
}
