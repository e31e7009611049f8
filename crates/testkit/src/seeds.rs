//! Seeds for the fuzzer: a short trace of each writer, in every style that changes its bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::by_name::{self, Size};
use crate::write::blkrecord::{Endian, Version};
use crate::write::lifecycle::Shapes;
use crate::write::{Style, WRITERS, WriteError, write_all};

/// Few I/O: the fuzzer cuts and joins them by itself.
const SIZE: Size = Size {
    seed: 1,
    events: 20,
    devices: 2,
    cpus: 2,
    misfits: 2,
};

/// A short trace.
pub struct Seed {
    /// The format that reads it: a name for `plumb analyze --format`.
    pub format: &'static str,
    /// Name of the file.
    pub name: String,
    /// The trace.
    pub bytes: Vec<u8>,
}

/// All seeds.
///
/// # Errors
/// Of a writer.
pub fn all() -> Result<Vec<Seed>, WriteError> {
    let mut seeds = Vec::new();
    for writer in WRITERS {
        let mut seen = BTreeSet::new();
        for (suffix, style) in styles() {
            let mut bytes = Vec::new();
            let mut sink = (writer.open)(Box::new(&mut bytes), &style)?;
            let events = by_name::events("mixed", SIZE).into_iter().flatten();
            write_all(sink.as_mut(), events)?;
            drop(sink);
            if seen.insert(bytes.clone()) {
                seeds.push(Seed {
                    format: writer.format,
                    name: format!("{}{suffix}", writer.name),
                    bytes,
                });
            }
        }
    }
    Ok(seeds)
}

fn styles() -> Vec<(&'static str, Style)> {
    let every_shape = |version, endian| Style {
        shapes: Shapes::all(SIZE.cpus),
        version,
        endian,
    };
    vec![
        ("", Style::default()),
        ("-7-little", every_shape(Version::V7, Endian::Little)),
        ("-7-big", every_shape(Version::V7, Endian::Big)),
        ("-8-little", every_shape(Version::V8, Endian::Little)),
        ("-8-big", every_shape(Version::V8, Endian::Big)),
    ]
}

/// Writes all seeds, `TARGET/NAME` below a folder. The target of a format has the format's name in small letters, with `_` for
/// every other sign.
///
/// # Errors
/// Of a writer, or of the folder.
pub fn write(folder: &Path) -> io::Result<()> {
    for seed in all().map_err(io::Error::other)? {
        let small = seed.format.to_ascii_lowercase();
        let target = small.replace(|sign: char| !sign.is_ascii_alphanumeric(), "_");
        fs::create_dir_all(folder.join(&target))?;
        fs::write(folder.join(target).join(seed.name), seed.bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_writer_has_one_and_styles_have_their_own() {
        let seeds = all().expect("memory");
        for writer in WRITERS {
            let own = seeds.iter().filter(|seed| {
                seed.name == writer.name || seed.name.starts_with(&format!("{}-", writer.name))
            });
            let styles = own.count();
            let expected = match writer.name {
                "blktrace" => 5,
                "blkparse" => 2,
                _ => 1,
            };
            assert_eq!(styles, expected, "{}", writer.name);
        }
        assert!(seeds.iter().all(|seed| !seed.bytes.is_empty()));
    }
}
