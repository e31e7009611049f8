//! Sources of a check: dumps of any host, or the host that it runs on.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

use plumb_model::Target;
use plumb_model::result::check::CheckInput;
use plumb_stack::catalogue::Catalogue;
use plumb_stack::collection::{self, Contents};
use plumb_stack::linux::{self, Elsewhere, Live, Root};
use plumb_stack::{Builder, Node, NodeId, Stack, devices, dump};

use super::hosts::{self, Hosts};
use super::image::{self, NoDisk};
use super::target;
use crate::cli::Check;
use crate::device_reader::DeviceReader;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::inputs;

/// Everything that was read.
#[derive(Default)]
pub struct GatheredHost {
    /// The layers.
    pub builder: Builder,
    /// The inputs.
    pub inputs: Vec<CheckInput>,
    /// Whether something was read only in part, or not at all.
    pub is_partial: bool,
    /// The target, where it is not found by its name alone.
    pub target: Option<NodeId>,
    /// Devices whose contents could not be read.
    pub unread: Vec<(String, std::io::Error)>,
}

/// Reads the sources that the flags name.
///
/// # Errors
/// When nothing of it could be read.
pub fn gather(args: &Check, known: &Catalogue) -> Result<GatheredHost, Failure> {
    let mut gathered = GatheredHost::default();
    if let Some(path) = args.target.as_ref().filter(|_| args.image) {
        gathered.target = Some(image::read(path, &mut gathered.builder)?);
        return Ok(gathered);
    }
    if let Some(directory) = &args.root {
        let root = Root::open(directory, &Elsewhere).map_err(|error| Failure::failed(&error))?;
        let of_host = linux::collect(&root, &mut gathered.builder);
        of_host.map_err(|error| {
            Failure::failed(&error)
                .with_help(format!("{} must hold sys/class/block", directory.display()))
        })?;
        return Ok(gathered);
    }
    let wanted = hosts::wanted(args, known)?;
    if args.from.is_empty() {
        if !args.join.is_empty() {
            return Err(hosts::not_two("--join"));
        }
        live(args.target.as_deref(), &mut gathered, &[])?;
        note_unread(&mut gathered);
        return Ok(gathered);
    }
    let hosts = gathered.hosts(args)?;
    let asked = hosts.asked_here(&wanted);
    let nodes = match &asked {
        Some(names) => {
            let nodes = live(args.target.as_deref(), &mut gathered, names)?;
            note_unread(&mut gathered);
            nodes
        }
        None => HashMap::new(),
    };
    let here = asked.map(|_| std::mem::take(&mut gathered.builder));
    gathered.builder = hosts.into_one(here, &nodes, &wanted)?;
    Ok(gathered)
}

/// A host that was read from its collection.
pub struct CollectedHost {
    /// Its layers.
    pub gathered: GatheredHost,
    /// Its own name; that of the file for want of it.
    pub name: String,
    /// The version of its kernel.
    pub kernel: Option<String>,
}

impl CollectedHost {
    /// Reads a collection by itself.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn open(path: &Path, bytes: &[u8]) -> Result<CollectedHost, Failure> {
        let mut gathered = GatheredHost::default();
        let mut builder = Builder::default();
        let file = path.display().to_string();
        let own = gathered.collection(&file, bytes, &mut builder)?;
        dump::join(&mut builder);
        gathered.builder = builder;
        Ok(CollectedHost {
            gathered,
            name: own.name.unwrap_or_else(|| hosts::name_of_file(path)),
            kernel: own.kernel,
        })
    }
}

/// The statements of a collected host about itself.
struct OwnWords {
    name: Option<String>,
    kernel: Option<String>,
}

/// Notes the devices of this host that could not be opened.
fn note_unread(gathered: &mut GatheredHost) {
    let advice = devices::advice_to_open();
    devices::note(&mut gathered.builder, &gathered.unread, advice);
}

/// The host itself, and the target on it: a file is followed down to its device. Returns the nodes of everything
/// else that the flags name by its path: devices, and images of guests.
///
/// # Errors
/// When this is no host that can be looked at.
pub fn live(
    target: Option<&Path>,
    gathered: &mut GatheredHost,
    paths: &[String],
) -> Result<HashMap<String, NodeId>, Failure> {
    let kernel = Live::default();
    let root = Root::open(Path::new("/"), &kernel).map_err(|error| Failure::failed(&error))?;
    let reader = DeviceReader::default();
    let builder = &mut gathered.builder;
    let host = linux::collect(&root, builder).map_err(|error| {
        Failure::failed(&error)
            .with_help("save the output of the host's tools in files and pass them with --from")
    })?;
    if let Some(target) = target {
        gathered.target = target::on_host(target, &host, &root, builder)?;
    }
    devices::of_guests(&[], &host, &root, builder, &reader).map_err(|source| {
        Failure::failed(&NoDisk {
            name: "the image of a guest".to_owned(),
            source,
        })
    })?;
    let mut nodes = HashMap::new();
    for path in paths.iter().filter(|path| path.starts_with('/')) {
        let node = if Path::new(path).is_file() {
            let image = target::whole_path(Path::new(path))?;
            let disk = devices::image_of_guest(&image, &host, &root, builder, &reader);
            Some(disk.map_err(|source| {
                Failure::failed(&NoDisk {
                    name: image,
                    source,
                })
            })?)
        } else {
            target::on_host(Path::new(path), &host, &root, builder)?
        };
        nodes.extend(node.map(|node| (path.clone(), node)));
    }
    gathered.unread = devices::of_host(builder, &reader);
    gathered.is_partial |= gathered
        .unread
        .iter()
        .any(|(_, error)| error.kind() == io::ErrorKind::TimedOut);
    Ok(nodes)
}

impl GatheredHost {
    /// Reads the files of the command line: each collection is a host, and outputs of tools are of the only one or of one
    /// of their own.
    fn hosts(&mut self, args: &Check) -> Result<Hosts, Failure> {
        let here = std::fs::read_to_string(Path::new("/").join(collection::HOSTNAME)).ok();
        let mut hosts = Hosts {
            here: here.as_deref().and_then(hosts::plain_name),
            ..Hosts::default()
        };
        let (mut failures, mut text) = (Vec::new(), None);
        let mut collections: HashMap<u64, &Path> = HashMap::new();
        let mut first = Builder::default();
        for path in &args.from {
            let name = path.display().to_string();
            let is_first = hosts.read.is_empty();
            let done = inputs::read(path, inputs::DUMP_BYTES_MAX).and_then(|bytes| {
                if !collection::is_archive(&bytes) {
                    text.get_or_insert(path);
                    let builder = hosts
                        .read
                        .first_mut()
                        .map_or(&mut first, |host| &mut host.builder);
                    return self.text(name.clone(), &bytes, builder);
                }
                if let Some(known) = collections.insert(fingerprint(&bytes), path) {
                    return Err(twice(path, known));
                }
                let mut builder = if is_first {
                    std::mem::take(&mut first)
                } else {
                    Builder::default()
                };
                match self.collection(&name, &bytes, &mut builder) {
                    Ok(own) => hosts.add(own.name, hosts::name_of_file(path), builder),
                    Err(failure) => {
                        if is_first {
                            first = builder;
                        }
                        return Err(failure);
                    }
                }
                Ok(())
            });
            if let Err(failure) = done {
                if failure.exit() == Exit::Usage {
                    return Err(failure);
                }
                self.fail(name, &failure);
                failures.push(failure);
            }
        }
        if failures.len() == args.from.len() {
            return Err(
                Failure::first_of(failures).unwrap_or_else(|| Failure::unknown("nothing to check"))
            );
        }
        failures.iter().for_each(Failure::print);
        match text {
            Some(path) if hosts.read.is_empty() => {
                hosts.add(None, hosts::name_of_file(path), first)
            }
            Some(path) if hosts.read.len() > 1 => return Err(whose(path)),
            _ => {}
        }
        hosts
            .read
            .iter_mut()
            .for_each(|host| dump::join(&mut host.builder));
        Ok(hosts)
    }

    /// The files and outputs of another host.
    fn collection(
        &mut self,
        name: &str,
        bytes: &[u8],
        builder: &mut Builder,
    ) -> Result<OwnWords, Failure> {
        let failed = |error: &(dyn std::error::Error + 'static)| Failure::failed(error);
        let contents = Contents::read(name, bytes).map_err(|error| failed(&error))?;
        let collected = contents.collected().map_err(|error| failed(&error))?;
        let root = contents.root(&collected.answers);
        let root = root.map_err(|error| failed(&error))?;
        let host = linux::collect(&root, builder).map_err(|error| failed(&error))?;
        devices::of_guests(&collected.images, &host, &root, builder, &collected.disks).map_err(
            |source| {
                failed(&NoDisk {
                    name: format!("an image in {name}"),
                    source,
                })
            },
        )?;
        let refused = devices::of_host(builder, &collected.disks);
        let advice = "collect as root on that host";
        devices::note(builder, &refused, Some(advice));
        self.unread.extend(refused);
        if contents.form() == collection::Form::Files {
            builder.note(format!(
                "{name} is of an older form, without labels, superblocks and places of files"
            ));
        }
        self.inputs.push(CheckInput {
            path: name.to_owned(),
            tool: Some("plumb check --collect".to_owned()),
            verified: true,
            understood: host.work().files,
            passed_over: 0,
            error: None,
        });
        for (part, bytes) in contents.dumps() {
            let within = format!("{name}/{part}");
            if let Err(failure) = self.text(within.clone(), bytes, builder) {
                self.fail(within, &failure);
            }
        }
        Ok(OwnWords {
            name: contents.own_name().as_deref().and_then(hosts::plain_name),
            kernel: contents.kernel(),
        })
    }

    /// The devices whose contents could not be read, with the partitions and file systems on them. A device of another host has the name
    /// of that host before its own: all devices of one name count.
    pub fn unread_layers(&self, stack: &Stack) -> Vec<Target> {
        let is_unread = |node: &Node| {
            let of_host = node.host.as_deref();
            let own = of_host.and_then(|host| node.name.strip_prefix(host)?.strip_prefix(':'));
            let mut names = self.unread.iter().map(|(name, _)| name);
            names.any(|name| *name == node.name || Some(name.as_str()) == own)
        };
        let devices = stack.nodes().filter(|(_, node)| is_unread(node));
        let layers = stack.with_contents(devices.map(|(id, _)| id));
        let targets = layers.into_iter().map(|id| Target::layer(stack, id));
        targets.collect()
    }

    /// Notes an unusable input.
    fn fail(&mut self, path: String, failure: &Failure) {
        self.is_partial = true;
        self.inputs.push(CheckInput {
            error: Some(failure.text(&path)),
            path,
            tool: None,
            verified: false,
            understood: 0,
            passed_over: 0,
        });
    }

    fn text(&mut self, name: String, bytes: &[u8], builder: &mut Builder) -> Result<(), Failure> {
        let read = inputs::dump(&name, bytes, builder)?;
        self.is_partial |= read.taken.passed_over > 0;
        self.inputs.push(CheckInput {
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

fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// One host is no two, however often it is named.
fn twice(path: &Path, known: &Path) -> Failure {
    let found = format!(
        "{}: found the same collection as {}",
        path.display(),
        known.display()
    );
    Failure::usage(found + ", expected each once")
}

/// The output of a tool that may be of any of several hosts.
fn whose(path: &Path) -> Failure {
    let found = format!(
        "{}: found the output of a tool beside several collections",
        path.display()
    );
    Failure::usage(found + ", expected collections alone").with_help(
        "its host is not known: pass it together with the collection of its host, and no other",
    )
}
