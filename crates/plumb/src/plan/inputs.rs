//! What plans are made from, where flags are not enough: output of other tools, and saved profiles.

use std::io::Read;
use std::path::{Path, PathBuf};

use plumb_profile::Profile;
use plumb_profile::codec;
use plumb_report::plan::Input;
use plumb_stack::{Builder, Stack, dump};

use crate::failure::Failure;

/// Longest dump: far above any host's, and a bound for a file that is something else.
const DUMP_MAX: u64 = 64 << 20;

/// The stack that dumps tell of.
pub struct Dumps {
    /// The stack.
    pub stack: Stack,
    /// What was read.
    pub inputs: Vec<Input>,
    /// Whether a file could not be read, or was too long.
    pub is_partial: bool,
}

/// Reads dumps of one host, in any mix; what cannot be read is printed and left out.
///
/// # Errors
/// When none can be read.
pub fn read_dumps(paths: &[PathBuf]) -> Result<Dumps, Failure> {
    let mut builder = Builder::default();
    let (mut inputs, mut failures) = (Vec::new(), Vec::new());
    for path in paths {
        match read_dump(path, &mut builder) {
            Ok(input) => inputs.push(input),
            Err(failure) => failures.push(failure),
        }
    }
    if inputs.is_empty() {
        let Some(last) = failures.pop() else { return Err(Failure::usage("no file was named")) };
        failures.iter().for_each(Failure::print);
        return Err(last);
    }
    failures.iter().for_each(Failure::print);
    dump::join(&mut builder);
    Ok(Dumps { stack: builder.finish(), inputs, is_partial: !failures.is_empty() })
}

fn read_dump(path: &Path, builder: &mut Builder) -> Result<Input, Failure> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error| Failure::failed(&error).with_help(format!("reading {name}"));
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(DUMP_MAX + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > DUMP_MAX {
        let expected = "expected the output of a tool, of at most 64 MiB";
        return Err(Failure::failed(&std::io::Error::other(format!("{name} is too long: {expected}"))));
    }
    let text = String::from_utf8_lossy(&bytes);
    let read = dump::read(&dump::Input { name: &name, text: &text }, builder);
    let read = read.map_err(|error| Failure::failed(&error))?;
    Ok(Input {
        path: name,
        format: read.tool.to_owned(),
        verified: read.is_verified,
        understood: read.taken.understood,
        passed_over: read.taken.passed_over,
    })
}

/// Reads a saved profile.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn read_profile(path: &Path) -> Result<(Vec<Profile>, Input), Failure> {
    let name = path.display().to_string();
    let bytes =
        std::fs::read(path).map_err(|error| Failure::failed(&error).with_help(format!("reading {name}")))?;
    let saved = codec::decode(&bytes).map_err(|error| {
        Failure::failed(&error).with_help(format!("{name} is to be a file that plumb analyze --save wrote"))
    })?;
    let profiles: Vec<Profile> = saved.profiles.iter().cloned().collect();
    let input = Input {
        path: name,
        format: "profile".to_owned(),
        verified: true,
        understood: profiles.len() as u64,
        passed_over: 0,
    };
    Ok((profiles, input))
}
