//! The watch of a diagnosis: the only place in it that knows how I/O are captured.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumb_capture::{BlockWatch, CaptureError, Options, OwnReads, Process};
use plumb_geometry::{SmallSort, group_digits, plural};
use plumb_profile::{Profile, ProfileSet, Settings};
use plumb_stack::{Kind, NodeId, Stack};
use plumb_trace::Layer;

use crate::device_names::{self, DeviceNames};
use crate::failure::Failure;
use crate::privilege;
use crate::signals::stop_flag;
use crate::status::{StatusLine, time_of};
use crate::watch::{Whole, wait_until};

use super::faults::Faults;

/// Time between two readings of the counts. Each reading looks up the partitions, so a partition that goes away loses at most
/// the I/O of this time. A window of the course over time holds about four readings: ten windows in the usual 10 s.
const WINDOW: Duration = Duration::from_millis(250);

/// A disk that is watched.
pub struct WatchedDisk {
    /// As the stack calls it.
    pub name: String,
    number: u32,
    /// By requests, or by bios where it makes none.
    layer: Layer,
}

/// The observations of a watch.
pub struct Observation {
    /// The counts, as they are saved.
    pub whole: Whole,
    /// Profiles of all watched devices, empty for those without I/O.
    pub profiles: ProfileSet,
    /// How long it took.
    pub seconds: f64,
    /// Senders of I/O, most first.
    pub processes: Vec<Process>,
    /// Their page faults.
    pub faults: Faults,
    /// Disks that handed their I/O on to others that were watched.
    pub seen_again: BTreeMap<String, Vec<String>>,
    /// Watched devices that have disappeared.
    pub gone: Vec<String>,
}

/// The disks among these layers.
#[must_use]
pub fn disks(stack: &Stack, wanted: Option<&HashSet<NodeId>>) -> Vec<WatchedDisk> {
    let nodes = stack.nodes().filter(|(id, node)| {
        wanted.is_none_or(|wanted| wanted.contains(id))
            && node.host.is_none()
            && node.kind != Kind::Partition
    });
    let mut disks: Vec<WatchedDisk> = nodes
        .filter_map(|(_, node)| {
            let number = plumb_capture::disk_of(&node.name).ok()?;
            let layer = if plumb_capture::is_bio_based(number) {
                Layer::Bio
            } else {
                Layer::Request
            };
            Some(WatchedDisk {
                name: node.name.clone(),
                number,
                layer,
            })
        })
        .collect();
    disks.small_sort_by(|a, b| plumb_geometry::natural(&a.name, &b.name));
    disks
}

/// Watches disks, or all there are, until the time is over or a signal comes.
///
/// # Errors
/// When they cannot be watched: outside that signals are not heard, inside that the kernel does not let it.
pub fn watch(
    disks: &[WatchedDisk],
    are_all: bool,
    time: Duration,
    tables: Settings,
    outputs: &[PathBuf],
) -> Result<Result<Observation, CaptureError>, Failure> {
    let ended = stop_flag()?;
    let devices = if are_all {
        Vec::new()
    } else {
        disks.iter().map(|disk| disk.number).collect()
    };
    let names = DeviceNames::of_present();
    let options = Options {
        devices,
        tables: tables.clone(),
        own_reads: OwnReads::LeftOut,
        command_lines: true,
        ..Options::default()
    };
    let mut block = match BlockWatch::attach(&options) {
        Ok(block) => block,
        Err(why) => return Ok(Err(why)),
    };
    let mut faults = Faults::begin();
    privilege::drop_all(outputs)?;
    let watched = plural(disks.len() as u64, "disk");
    let mut line = StatusLine::new();
    let mut whole = Whole::new(&block, &options.filter);
    let mut senders: BTreeMap<(String, u32, String), Process> = BTreeMap::new();
    let mut seen_again = BTreeMap::new();
    let began = Instant::now();
    let end = began + time;
    let mut next = began;
    // Once at least: I/O that were counted before an early end are reported as well.
    let mut is_over = false;
    let mut counted = 0;
    while !is_over {
        line.show(|| {
            let elapsed = began.elapsed();
            let rate = counted as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let (ios, rate) = (group_digits(counted), group_digits(rate as u64));
            let time = time_of(elapsed, time);
            format!("watching {watched}: {ios} I/O, {rate}/s; {time}; Ctrl-C ends it early")
        });
        next = (next + WINDOW).min(end);
        wait_until(next, &ended, || block.keep_up());
        is_over = next >= end || ended.load(Ordering::Relaxed);
        if is_over {
            block.end();
        }
        let mut reading = block.read();
        names.restore(&mut reading);
        whole.add(&reading);
        counted += reading.profiles.iter().map(Profile::ios).sum::<u64>();
        seen_again.append(&mut reading.seen_again);
        reading
            .processes
            .iter()
            .for_each(|process| faults.look(process.pid));
        reading
            .processes
            .into_iter()
            .for_each(|process| add(&mut senders, process));
    }
    line.clear();
    let span = began.elapsed();
    whole.close(span);
    let mut profiles = whole.saved.profiles.clone();
    for disk in disks {
        profiles.entry(&disk.name, disk.layer, || {
            tables.table().unwrap_or_default()
        });
    }
    let mut processes: Vec<Process> = senders.into_values().collect();
    processes.small_sort_by_key(|process| std::cmp::Reverse(process.ios));
    let is_gone = |disk: &&WatchedDisk| !device_names::is_present(&disk.name);
    let gone = disks
        .iter()
        .filter(is_gone)
        .map(|disk| disk.name.clone())
        .collect();
    Ok(Ok(Observation {
        whole,
        profiles,
        seconds: span.as_secs_f64(),
        processes,
        faults,
        seen_again,
        gone,
    }))
}

/// Adds the I/O of a process in a window to its earlier I/O.
fn add(senders: &mut BTreeMap<(String, u32, String), Process>, process: Process) {
    let key = (process.device.clone(), process.pid, process.comm.clone());
    match senders.get_mut(&key) {
        Some(mine) => mine.add(process),
        None => {
            senders.insert(key, process);
        }
    }
}
