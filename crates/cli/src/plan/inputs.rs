//! The inputs of plans, if flags are not enough: output of other tools, and saved profiles.

use std::path::{Path, PathBuf};

use plumb_model::result::plan::PlanInput;
use plumb_profile::Profile;
use plumb_stack::{Builder, Stack, dump};

use crate::failure::Failure;
use crate::inputs;
use crate::sandbox::{self, Files};

/// The stack that dumps tell of.
pub struct Dumps {
    /// The stack.
    pub stack: Stack,
    /// The inputs read.
    pub inputs: Vec<PlanInput>,
    /// Whether a file, or some line of one, was not read.
    pub is_partial: bool,
}

/// Reads dumps of one host, in any mix; unreadable ones are printed and left out.
///
/// # Errors
/// When none can be read.
pub fn read_dumps(paths: &[PathBuf]) -> Result<Dumps, Failure> {
    sandbox::enter(&Files {
        inputs: paths.to_vec(),
        ..Files::default()
    })?;
    let mut builder = Builder::default();
    let (mut inputs, mut failures) = (Vec::new(), Vec::new());
    for path in paths {
        match read_dump(path, &mut builder) {
            Ok(input) => inputs.push(input),
            Err(failure) => failures.push(failure),
        }
    }
    if inputs.is_empty() {
        let Some(last) = failures.pop() else {
            return Err(Failure::usage("no file was named"));
        };
        failures.iter().for_each(Failure::print);
        return Err(last);
    }
    failures.iter().for_each(Failure::print);
    let is_partial = !failures.is_empty() || inputs.iter().any(|input| input.passed_over > 0);
    dump::join(&mut builder);
    Ok(Dumps {
        stack: builder.finish(),
        inputs,
        is_partial,
    })
}

fn read_dump(path: &Path, builder: &mut Builder) -> Result<PlanInput, Failure> {
    let name = path.display().to_string();
    let bytes = inputs::read(path, inputs::DUMP_BYTES_MAX)?;
    let read = inputs::dump(&name, &bytes, builder)?;
    Ok(PlanInput {
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
pub fn read_profile(path: &Path) -> Result<(Vec<Profile>, PlanInput), Failure> {
    sandbox::enter(&Files {
        inputs: vec![path.to_owned()],
        ..Files::default()
    })?;
    let saved = inputs::profile(path)?;
    let profiles: Vec<Profile> = saved.profiles.iter().cloned().collect();
    let input = PlanInput {
        path: path.display().to_string(),
        format: "profile".to_owned(),
        verified: true,
        understood: profiles.len() as u64,
        passed_over: 0,
    };
    Ok((profiles, input))
}
