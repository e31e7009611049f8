//! The third way to watch: the kernel's own trace events, read as they are written, without a program in the kernel.
//!
//! Each event is copied and read separately, so it costs more than counting programs, and a full buffer loses events;
//! those are counted. Cgroups are in no event, and partitions are in those of few kernels: the position of an I/O
//! determines its partition. Layouts of pages and events are those that the kernel states in `header_page`,
//! `header_event` and `format`.

mod buffer;
mod disk;
mod event;
mod format;
mod instance;
mod open_bios;
mod page;
mod senders;

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_trace::Layer;

use self::buffer::Buffers;
use self::disk::{TracedDisk, entry};
use self::event::EventKind;
use self::instance::Instance;
use self::senders::Processes;
use crate::block::{Layers, Options};
use crate::clock::now_ns;
use crate::devices::{disk_of_number, numbers_of_partitions};
use crate::error::CaptureError;
use crate::reading::Reading;

/// An event has its time before others can see it: the longest delay of its writer.
const SLACK: Duration = Duration::from_millis(2);

/// The running watch. Its setup in the kernel is removed when it is dropped.
pub(crate) struct Tracefs {
    buffers: Buffers,
    options: Options,
    disks: BTreeMap<u32, TracedDisk>,
    /// The disk of each number that was seen, where it is wanted.
    places: BTreeMap<u32, Option<u32>>,
    processes: Processes,
    lost: u64,
    is_end: bool,
    /// Behind the buffers: it cannot be removed while they are open.
    _instance: Instance,
}

impl Tracefs {
    pub(crate) fn attach(options: &Options) -> Result<Tracefs, CaptureError> {
        if options.filter.cgroup.is_some() {
            return Err(CaptureError::NoCgroupInEvents);
        }
        let with_partitions = options.devices.iter().flat_map(|dev| {
            let mut devs = numbers_of_partitions(*dev);
            devs.push(*dev);
            devs
        });
        let devs: Vec<u32> = with_partitions.collect();
        let instance = Instance::new()?;
        let buffers = Buffers::start(&instance, &kinds(options), &devs)?;
        Ok(Tracefs {
            buffers,
            options: options.clone(),
            disks: BTreeMap::new(),
            places: BTreeMap::new(),
            processes: Processes::default(),
            lost: 0,
            is_end: false,
            _instance: instance,
        })
    }

    /// Empties the kernel's buffers.
    pub(crate) fn keep_up(&mut self) {
        let slack_ns = SLACK.as_nanos() as u64;
        self.take(now_ns().saturating_sub(slack_ns));
    }

    /// From here on nothing that is in flight is waited for.
    pub(crate) fn end(&mut self) {
        self.is_end = true;
    }

    /// The activity since the last call.
    pub(crate) fn read(&mut self) -> Reading {
        let now_ns = now_ns();
        std::thread::sleep(SLACK);
        self.take(now_ns);
        let mut reading = Reading::default();
        for disk in self.disks.values_mut() {
            reading.add(disk.read(now_ns, self.is_end, &self.options.filter));
        }
        reading.lost = std::mem::take(&mut self.lost);
        // Their disk is unknown; they are reported once.
        let first = reading
            .profiles
            .iter()
            .next()
            .map(|profile| (profile.device.clone(), profile.layer));
        if let Some((name, layer)) = first {
            let profile = entry(&mut reading.profiles, &name, layer, &self.options.tables);
            profile.losses.lost += reading.lost;
        }
        // Numbers may come to mean other devices and threads.
        self.places.clear();
        self.processes.forget();
        reading
    }

    fn take(&mut self, until_ns: u64) {
        let taken = self.buffers.take(until_ns);
        self.lost += taken.lost;
        if taken.missed || taken.lost > 0 {
            self.disks.values_mut().for_each(TracedDisk::lost_some);
        }
        for event in &taken.events {
            let Some(dev) = self.disk_of(event.dev) else {
                continue;
            };
            let disk = self.disks.entry(dev).or_insert_with(|| {
                TracedDisk::new(dev, self.options.layers.layer_of(dev), &self.options.tables)
            });
            disk.accept(event, &self.options.filter, &mut self.processes);
        }
    }

    fn disk_of(&mut self, dev: u32) -> Option<u32> {
        let wanted = &self.options.devices;
        *self.places.entry(dev).or_insert_with(|| {
            let disk = disk_of_number(dev);
            (wanted.is_empty() || wanted.contains(&disk)).then_some(disk)
        })
    }
}

/// The events that tell of these disks at their layers.
fn kinds(options: &Options) -> Vec<EventKind> {
    let is_all = options.devices.is_empty();
    let is_any_at = |layer| {
        options
            .devices
            .iter()
            .any(|dev| options.layers.layer_of(*dev) == layer)
    };
    let of_requests = options.layers != Layers::Bio && (is_all || is_any_at(Layer::Request));
    let of_bios = options.layers != Layers::Request && (is_all || is_any_at(Layer::Bio));
    let is_needed = |kind: &EventKind| match kind {
        EventKind::QueueBio | EventKind::Split => true,
        EventKind::Complete => of_requests || options.layers == Layers::Bio,
        EventKind::Issue | EventKind::Requeue => of_requests,
        EventKind::CompleteBio => of_bios,
    };
    EventKind::ALL.into_iter().filter(is_needed).collect()
}
