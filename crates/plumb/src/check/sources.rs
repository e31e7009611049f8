//! Where a check has its knowledge from: dumps of any host, or the host that it runs on.

use std::path::Path;

use plumb_report::check::Input;
use plumb_stack::linux::{self, Elsewhere, Live, Root};
use plumb_stack::{Builder, NodeId, dump};

use super::{archive, disks, target};
use crate::cli::Check;
use crate::failure::Failure;
use crate::inputs;

/// Everything that was read.
#[derive(Default)]
pub struct Gathered {
    /// The layers.
    pub builder: Builder,
    /// What was read.
    pub inputs: Vec<Input>,
    /// Whether something was read only in part, or not at all.
    pub is_partial: bool,
    /// The target, where it is not found by its name alone.
    pub target: Option<NodeId>,
}

/// Reads what the flags name.
///
/// # Errors
/// When nothing of it could be read.
pub fn gather(args: &Check) -> Result<Gathered, Failure> {
    let mut gathered = Gathered::default();
    if let Some(image) = args.target.as_ref().filter(|_| args.image) {
        gathered.target = Some(disks::of_image(image, &mut gathered.builder)?);
        return Ok(gathered);
    }
    if let Some(directory) = &args.root {
        let root = Root::open(directory, &Elsewhere).map_err(|error| Failure::failed(&error))?;
        let of_host = linux::collect(&root, &mut gathered.builder);
        of_host.map_err(|error| {
            Failure::failed(&error).with_help(format!("{} must hold sys/class/block", directory.display()))
        })?;
        return Ok(gathered);
    }
    if args.from.is_empty() {
        live(args, &mut gathered)?;
        return Ok(gathered);
    }
    let mut failures = Vec::new();
    for path in &args.from {
        if let Err(failure) = gathered.dump(path) {
            gathered.fail(path.display().to_string(), &failure);
            failures.push(failure);
        }
    }
    if failures.len() == args.from.len() {
        return Err(Failure::first_of(failures).unwrap_or_else(|| Failure::unknown("nothing to check")));
    }
    failures.iter().for_each(Failure::print);
    dump::join(&mut gathered.builder);
    Ok(gathered)
}

/// The host itself, and the target on it: a file is followed down to its device.
fn live(args: &Check, gathered: &mut Gathered) -> Result<(), Failure> {
    let kernel = Live::default();
    let root = Root::open(Path::new("/"), &kernel).map_err(|error| Failure::failed(&error))?;
    let host = linux::collect(&root, &mut gathered.builder).map_err(|error| {
        Failure::failed(&error).with_help("give what the tools of a host print with --from")
    })?;
    if let Some(target) = &args.target {
        gathered.target = target::on_host(target, &host, &root, &mut gathered.builder)?;
    }
    disks::of_host(&mut gathered.builder);
    Ok(())
}

impl Gathered {
    fn dump(&mut self, path: &Path) -> Result<(), Failure> {
        let bytes = inputs::read(path, inputs::DUMP_BYTES_MAX)?;
        let name = path.display().to_string();
        if archive::is_archive(&bytes) {
            return self.collection(&name, &bytes);
        }
        self.text(name, &bytes)
    }

    /// The files and outputs of another host, unpacked into a directory that vanishes.
    fn collection(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let failed = |error: &(dyn std::error::Error + 'static)| Failure::failed(error);
        let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
        archive::unpack(name, bytes, folder.path()).map_err(|error| failed(&error))?;
        let root = Root::open(&folder.path().join("root"), &Elsewhere).map_err(|error| failed(&error))?;
        let host = linux::collect(&root, &mut self.builder).map_err(|error| failed(&error))?;
        self.inputs.push(Input {
            path: name.to_owned(),
            tool: Some("plumb check --collect".to_owned()),
            verified: true,
            understood: host.work().files,
            passed_over: 0,
            error: None,
        });
        for dump in archive::dumps(folder.path()) {
            let bytes = inputs::read(&dump, inputs::DUMP_BYTES_MAX)?;
            let within = dump.strip_prefix(folder.path()).unwrap_or(&dump);
            let within = format!("{name}/{}", within.display());
            if let Err(failure) = self.text(within.clone(), &bytes) {
                self.fail(within, &failure);
            }
        }
        Ok(())
    }

    /// Notes an input of which nothing could be made.
    fn fail(&mut self, path: String, failure: &Failure) {
        self.is_partial = true;
        self.inputs.push(Input {
            error: Some(failure.words(&path)),
            path,
            tool: None,
            verified: false,
            understood: 0,
            passed_over: 0,
        });
    }

    fn text(&mut self, name: String, bytes: &[u8]) -> Result<(), Failure> {
        let read = inputs::dump(&name, bytes, &mut self.builder)?;
        self.is_partial |= read.taken.passed_over > 0;
        self.inputs.push(Input {
            path: read.file,
            tool: Some(read.tool.to_owned()),
            verified: read.is_verified,
            understood: read.taken.understood,
            passed_over: read.taken.passed_over,
            error: None,
        });
        Ok(())
    }
}
