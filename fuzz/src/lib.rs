//! What every fuzz target does: read bytes as a trace to its end, fold the events into profiles, judge them
//! and print the reports, so that hostile numbers reach everything that a user's trace reaches.
//!
//! A target fails by a panic, by an overflow, by more time or memory than the script allows, or by one of the
//! promises that are asserted here. What a reader should have made of the bytes is not asked; the tests of the
//! formats do that.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::{fs, panic};

use plumb_profile::codec;
use plumb_trace::input::Input;
use plumb_trace::open::{Piece, open, open_input};
use plumb_trace::{Error, Layer, LayerChoice, ReadOptions, Reader};

mod dump;
mod iostat;
mod judge;
pub mod job_file;
pub mod label;
mod ondisk;
mod read;

/// The fewest bytes that make an input gzip: its fixed head without any optional field.
pub const GZIP_HEAD: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
/// The bytes that make an input zstd.
pub const ZSTD_HEAD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Reads the bytes as one format, whatever they look like.
pub fn format(name: &str, data: &[u8]) {
    let options = ReadOptions { format: Some(name.to_owned()), ..choose(data) };
    follow(from_memory(data).and_then(|input| open_input(input, &options)), data, true);
}

/// Reads the bytes as what the sniffers take them for, and asks every sniffer about beginnings of them.
pub fn sniff(data: &[u8]) {
    for format in plumb_trace::format::FORMATS {
        let _ = (format.sniff)(data, true);
        let _ = (format.sniff)(&data[..data.len() / 2], false);
    }
    follow(from_memory(data).and_then(|input| open_input(input, &choose(data))), data, true);
}

/// Reads the bytes as a compressed CSV. Without the right beginning they would not be taken for compressed.
pub fn compressed(head: &[u8], data: &[u8]) {
    let mut packed = data.to_vec();
    if !data.starts_with(&head[..head.len().min(2)]) {
        packed = [head, data].concat();
    }
    let options = ReadOptions { format: Some("msr".to_owned()), ..ReadOptions::default() };
    follow(from_memory(&packed).and_then(|input| open_input(input, &options)), data, false);
}

/// Reads the bytes as a file, for formats that read from the end.
pub fn in_file(name: &str, data: &[u8]) {
    // The reader catches the panics of the library that decodes; the hook of the fuzzer would not let it.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(Box::new(|info| *last_panic() = info.to_string())));
    if panic::catch_unwind(|| read_file(name, data)).is_err() {
        eprintln!("{}", last_panic());
        std::process::abort();
    }
}

fn last_panic() -> MutexGuard<'static, String> {
    static LAST: Mutex<String> = Mutex::new(String::new());
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_file(name: &str, data: &[u8]) {
    let Some(path) = scratch_file("input", data) else { return };
    let options = ReadOptions { format: Some(name.to_owned()), ..choose(data) };
    // A column of equal values takes a few bytes for any number of rows.
    follow(Input::open(&path).and_then(|input| open_input(input, &options)), data, false);
}

/// Reads the bytes as the files of two CPUs; the first two say how many belong to the first file.
pub fn blktrace_cpus(data: &[u8]) {
    let Some((length, both)) = data.split_first_chunk::<2>() else { return };
    let (first, second) = both.split_at(usize::from(u16::from_le_bytes(*length)).min(both.len()));
    let files = [("t.blktrace.0", first), ("t.blktrace.1", second)];
    let files: Vec<PathBuf> = files.iter().filter_map(|(name, bytes)| scratch_file(name, bytes)).collect();
    let piece = Piece { path: PathBuf::from("t"), files };
    follow(open(&piece, &choose(data)), data, true);
}

/// Decodes the bytes as saved profiles. What is inside the frame has a checksum around it, which no mutation
/// gets past: bytes without the head of the file are packed as the inside of one.
pub fn profile(data: &[u8]) {
    let mut bytes = data.to_vec();
    if !codec::is_encoded(data) {
        let Ok(frame) = zstd::bulk::compress(data, 1) else { return };
        bytes = [codec::MAGIC, &codec::VERSION.to_le_bytes()[..], &[0, 0], &frame].concat();
    }
    let Ok(saved) = codec::decode(&bytes) else { return };
    judge::judge(&saved, &[]);
    judge::merge(saved);
}

/// Reads the bytes as dumps of one host, with a byte 0 between them.
pub fn dump(data: &[u8]) {
    dump::all(data);
}

/// Reads the bytes as a capture of iostat, and compares it with itself and with its second half.
pub fn iostat(data: &[u8]) {
    iostat::all(data);
}

/// Reads the bytes as a disk of which only some sectors are there.
pub fn ondisk(data: &[u8]) {
    ondisk::disk(data);
}

/// The layer asked for; the length of the input decides, so that any input is a seed.
fn choose(data: &[u8]) -> ReadOptions {
    let layer = match data.len() % 16 {
        13 => LayerChoice::All,
        14 => LayerChoice::Only(Layer::Bio),
        15 => LayerChoice::Only(Layer::Request),
        _ => LayerChoice::Lowest,
    };
    ReadOptions { layer, ..ReadOptions::default() }
}

fn from_memory(data: &[u8]) -> Result<Input, Error> {
    Input::from_reader("input", Box::new(Cursor::new(data.to_vec())))
}

/// Reads to the end; `bounded` says that every fill has to take at least a byte of `data`.
fn follow(opened: Result<Box<dyn Reader>, Error>, data: &[u8], bounded: bool) {
    match opened {
        Ok(mut reader) => {
            let fills_max = bounded.then_some(data.len() + 2);
            let saved = read::to_profiles(reader.as_mut(), fills_max);
            judge::judge(&saved, std::slice::from_ref(reader.info()));
            if data.len() % 8 == 5 {
                judge::same_when_decoded(&saved);
                judge::merge(saved);
            }
        }
        Err(error) => {
            assert!(!matches!(error, Error::NoSuchFormat { .. }), "{error}");
            assert!(!error.to_string().is_empty(), "an error says something");
        }
    }
}

/// A file in the memory of this process's own, or nothing where none can be made.
fn scratch_file(name: &str, bytes: &[u8]) -> Option<PathBuf> {
    let root = std::env::var_os("PLUMB_FUZZ_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = root.join(format!("plumb-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).ok()?;
    let path = folder.join(name);
    fs::write(&path, bytes).ok()?;
    Some(path)
}
