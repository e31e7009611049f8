//! The block layers: the programs that watch disks, and their joint reading.

use std::collections::BTreeMap;
use std::time::Duration;

use aya::Btf;
use plumb_profile::{Settings, SingleIo};
use plumb_trace::Layer;

use crate::devices::{disks, is_bio_based, names_below};
use crate::error::CaptureError;
use crate::filter::Filter;
use crate::kernel::Types;
use crate::layer::{Wanted, WatchedLayers, places};
use crate::program::{Attached, cheapest};
use crate::reading::Reading;
use crate::sender_names::SenderNames;
use crate::silence::Silences;
use crate::tracefs::Tracefs;

/// From here on a silence is worth looking for the I/O that wait.
const LONG_NS: u64 = 1_000_000_000;

/// The disks to watch, and the way of counting.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of the disks; all when empty.
    pub devices: Vec<u32>,
    /// The questions that the tables of the disks have to answer.
    pub tables: Settings,
    /// How to attach; the cheapest way that the kernel takes when `None`.
    pub attach: Option<Attached>,
    /// At which layer a disk is watched.
    pub layers: Layers,
    /// The filter of the I/O that count.
    pub filter: Filter,
    /// The reads of this process and its children.
    pub own_reads: OwnReads,
    /// Whether a reading has the command lines of processes.
    pub command_lines: bool,
    /// Time without I/O after which a process is forgotten: its number may then be that of another one.
    pub forget_after: Duration,
}

impl Default for Options {
    /// All disks, with tables of 1 MiB, each at the layer that its driver works at, everything.
    fn default() -> Options {
        Options {
            devices: Vec::new(),
            tables: Settings::default(),
            attach: None,
            layers: Layers::default(),
            filter: Filter::default(),
            own_reads: OwnReads::default(),
            command_lines: false,
            forget_after: Duration::from_secs(600),
        }
    }
}

/// The reads of the watching process and its children, for example of labels and superblocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnReads {
    /// They count as those of others.
    #[default]
    Counted,
    /// They are no load: they do not count.
    LeftOut,
}

/// At which layer a disk is watched. No disk is ever watched at two at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layers {
    /// Disks that make requests by these, others (dm, md, zram) by the bios that they are given.
    #[default]
    Auto,
    /// By requests alone: I/O sent to the driver.
    Request,
    /// By bios alone: I/O given to the device, before merges and splits.
    Bio,
}

impl Layers {
    /// Whether all disks of any kind are watched at this layer.
    pub(crate) fn is_every_device_at(self, layer: Layer) -> bool {
        match self {
            Layers::Auto => false,
            Layers::Request => layer == Layer::Request,
            Layers::Bio => layer == Layer::Bio,
        }
    }

    /// Whether there may be something to watch at a layer, of these disks or of all if the list is empty: one of any
    /// kind may come later, when nothing can be attached any more. A program without anything to count costs about 30
    /// ns for a bio.
    pub(crate) fn need(self, layer: Layer, devices: &[u32]) -> bool {
        match self {
            Layers::Auto => {
                devices.is_empty() || devices.iter().any(|dev| self.layer_of(*dev) == layer)
            }
            layers => layers.is_every_device_at(layer),
        }
    }

    /// The layer at which a disk is watched.
    #[must_use]
    pub fn layer_of(self, dev: u32) -> Layer {
        match self {
            Layers::Auto if is_bio_based(dev) => Layer::Bio,
            Layers::Auto | Layers::Request => Layer::Request,
            Layers::Bio => Layer::Bio,
        }
    }
}

/// The watch at work. Programs are detached, and events switched off, when it is dropped.
pub struct BlockWatch {
    attached: Attached,
    layers: Vec<Layer>,
    by: By,
    options: Options,
    silences: Silences,
    senders: SenderNames,
    is_end: bool,
}

enum By {
    Programs(Box<WatchedLayers>),
    Events(Box<Tracefs>),
}

impl BlockWatch {
    /// Begins to watch; from then on everything counts. If the kernel does not accept the programs, its trace events
    /// are used.
    ///
    /// # Errors
    /// Without the capabilities, or when the kernel offers neither.
    pub fn attach(options: &Options) -> Result<BlockWatch, CaptureError> {
        match options.attach {
            Some(Attached::Tracefs) => BlockWatch::by_events(options),
            Some(_) => BlockWatch::by_programs(options),
            None => BlockWatch::by_programs(options).or_else(|error| match error {
                CaptureError::NoTypes(_)
                | CaptureError::Types(_)
                | CaptureError::Refused { .. }
                | CaptureError::Map { .. } => {
                    BlockWatch::by_events(options).map_err(|tracefs| CaptureError::NoWay {
                        programs: Box::new(error),
                        tracefs: Box::new(tracefs),
                    })
                }
                other => Err(other),
            }),
        }
    }

    /// The reason for which the types of this kernel do not fit the programs: its trace events serve in their place. A kernel whose types
    /// fit can still refuse the programs. Reads `/sys/kernel/btf/vmlinux` alone, and needs no right.
    #[must_use]
    pub fn lack_of_types(options: &Options) -> Option<CaptureError> {
        let types = Types::of_kernel();
        let fit = types.and_then(|types| places(&needed(options), options, &types).map(drop));
        fit.err()
    }

    fn by_events(options: &Options) -> Result<BlockWatch, CaptureError> {
        let by = By::Events(Box::new(Tracefs::attach(options)?));
        Ok(BlockWatch::new(
            Attached::Tracefs,
            needed(options),
            by,
            options,
        ))
    }

    /// Loads the programs and attaches them. Those of a layer without anything to watch are left out.
    fn by_programs(options: &Options) -> Result<BlockWatch, CaptureError> {
        let layers = needed(options);
        let only = options.filter.for_programs()?;
        let types = Types::of_kernel()?;
        let places = places(&layers, options, &types)?;
        let dirty = types.dirty_program();
        drop(types);
        let btf = Btf::from_sys_fs().map_err(|error| CaptureError::Types(error.to_string()))?;
        let of_layers = |dev: &u32| layers.contains(&options.layers.layer_of(*dev));
        let disks = disks().into_iter().filter(of_layers).count();
        let wanted = Wanted {
            layers: &layers,
            disks,
            only,
            dirty,
        };
        cheapest(options.attach, |attached| {
            let watched = WatchedLayers::attach(&wanted, attached, &places, &btf, options)?;
            let by = By::Programs(Box::new(watched));
            Ok(BlockWatch::new(attached, layers.clone(), by, options))
        })
    }

    fn new(attached: Attached, layers: Vec<Layer>, by: By, options: &Options) -> BlockWatch {
        BlockWatch {
            attached,
            layers,
            by,
            options: options.clone(),
            silences: Silences::new(options.layers),
            senders: SenderNames::new(options.command_lines),
            is_end: false,
        }
    }

    /// How it watches.
    #[must_use]
    pub fn attached(&self) -> Attached {
        self.attached
    }

    /// The layers that are watched, highest first.
    #[must_use]
    pub fn layers(&self) -> Vec<Layer> {
        let mut layers = self.layers.clone();
        layers.sort_unstable();
        layers
    }

    /// Reads the kernel's buffer, if it watches by events: call it about ten times a second, so that the buffer does
    /// not overflow.
    pub fn keep_up(&mut self) {
        self.silences.keep_up();
        if let By::Events(events) = &mut self.by {
            events.keep_up();
        }
    }

    /// Makes the next reading the last one: it then contains I/O in flight as well.
    pub fn end(&mut self) {
        self.is_end = true;
        if let By::Events(events) = &mut self.by {
            events.end();
        }
    }

    /// The activity since the last call.
    pub fn read(&mut self) -> Reading {
        let mut reading = Reading::default();
        match &mut self.by {
            By::Programs(watched) => {
                self.senders.begin_reading();
                reading.add(watched.read(&mut self.senders));
            }
            By::Events(events) => reading.add(events.read()),
        }
        self.add_answers(&mut reading);
        reading.seen_again = seen_again(&reading);
        reading
    }

    /// Adds the times in which disks were silent. They are those of all I/O, so that a watch of some I/O has none.
    fn add_answers(&mut self, reading: &mut Reading) {
        if self.options.filter != Filter::default() {
            return;
        }
        let devices = self.options.devices.clone();
        for (named, silence) in self.silences.read(&devices) {
            let is_late = self.is_end || silence.present_ns >= LONG_NS;
            let oldest = (silence.in_flight > 0 && is_late)
                .then(|| self.oldest(named.dev, silence.idle_at_ns));
            let table = || self.options.tables.table().unwrap_or_default();
            let profile = reading.profiles.entry(&named.name, named.layer, table);
            let answers = profile.answers.get_or_insert_default();
            silence.add_to(answers);
            answers.oldest = oldest.flatten();
        }
    }

    /// The oldest I/O in flight that was issued at this time or later.
    fn oldest(&mut self, dev: u32, since_ns: u64) -> Option<SingleIo> {
        let names = &mut self.senders;
        match &self.by {
            By::Programs(watched) => watched.oldest(dev, since_ns, names),
            By::Events(_) => None,
        }
    }
}

/// The layers at which there may be something to watch.
fn needed(options: &Options) -> Vec<Layer> {
    let layers = [Layer::Request, Layer::Bio].into_iter();
    layers
        .filter(|layer| options.layers.need(*layer, &options.devices))
        .collect()
}

/// Disks whose I/O others of the same reading received again, with these.
fn seen_again(reading: &Reading) -> BTreeMap<String, Vec<String>> {
    let seen = |name: &String| {
        reading
            .profiles
            .iter()
            .any(|profile| profile.device == *name && profile.ios() > 0)
    };
    let with_those_below = reading.profiles.iter().map(|profile| {
        let mut below = names_below(&profile.device);
        below.retain(seen);
        (profile.device.clone(), below)
    });
    with_those_below
        .filter(|(_, below)| !below.is_empty())
        .collect()
}
