//! The kernel's buffers of all processors, emptied into one list of events in the order of time.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use super::event::{Event, EventKind, EventShape};
use super::format::EventFormat;
use super::instance::Instance;
use super::page::PageLayout;
use crate::error::CaptureError;

/// Most memory of all buffers together, KiB; a processor has some hundred ms of a fast disk's events in 1 MiB.
const BUFFERS_KIB: usize = 64 << 10;
const BUFFER_KIB_MIN: usize = 512;
const BUFFER_KIB_MAX: usize = 8 << 10;
/// If a disk's filter is too long for the kernel, this process filters.
const FILTER_MAX: usize = 3 << 10;

/// Open buffers of an instance.
pub(super) struct Buffers {
    cpus: Vec<Cpu>,
    layout: PageLayout,
    shapes: Vec<EventShape>,
    page: Vec<u8>,
    /// Taken out, and too young for that all that happened before them can be here as well.
    waiting: Vec<Event>,
}

struct Cpu {
    pages: File,
    statistics: File,
    lost: u64,
}

/// The result of a read.
#[derive(Default)]
pub(super) struct Taken {
    /// In the order of time.
    pub(super) events: Vec<Event>,
    /// How many others were overwritten or found no room.
    pub(super) lost: u64,
    /// Whether a page says so too.
    pub(super) missed: bool,
}

impl Buffers {
    /// Opens all that will be read, and only then lets the kernel fill it with these events of these devices, or of all.
    pub(super) fn start(
        instance: &Instance,
        kinds: &[EventKind],
        devs: &[u32],
    ) -> Result<Buffers, CaptureError> {
        let layout = PageLayout::parse(
            &instance.read("events/header_page")?,
            &instance.read("events/header_event")?,
        );
        let layout = layout.ok_or_else(|| unexpected("header_page", "a layout of pages"))?;
        instance.write("trace_clock", "mono")?;
        let numbers = instance.cpus()?;
        let kib = (BUFFERS_KIB / numbers.len().max(1)).clamp(BUFFER_KIB_MIN, BUFFER_KIB_MAX);
        instance.write("buffer_size_kb", &kib.to_string())?;
        let cpus = numbers.iter().map(|number| {
            let pages = instance.open(&format!("per_cpu/cpu{number}/trace_pipe_raw"))?;
            let statistics = instance.open(&format!("per_cpu/cpu{number}/stats"))?;
            Ok(Cpu {
                pages,
                statistics,
                lost: 0,
            })
        });
        let cpus = cpus.collect::<Result<_, CaptureError>>()?;
        let shapes = kinds
            .iter()
            .map(|kind| shape(instance, *kind))
            .collect::<Result<_, _>>()?;
        let filter: Vec<String> = devs.iter().map(|dev| format!("dev == {dev}")).collect();
        let filter = filter.join(" || ");
        for kind in kinds {
            let event = format!("events/block/{}", kind.name());
            if !filter.is_empty() && filter.len() <= FILTER_MAX {
                instance.write(&format!("{event}/filter"), &filter)?;
            }
            instance.write(&format!("{event}/enable"), "1")?;
        }
        let page = vec![0; layout.page_bytes()];
        Ok(Buffers {
            cpus,
            layout,
            shapes,
            page,
            waiting: Vec::new(),
        })
    }

    /// Empties the buffers; returns events before `until_ns`.
    pub(super) fn take(&mut self, until_ns: u64) -> Taken {
        let mut taken = Taken::default();
        for cpu in &mut self.cpus {
            while let Ok(len @ 1..) = cpu.pages.read(&mut self.page) {
                let Some(page) = self.layout.page(&self.page[..len]) else {
                    break;
                };
                taken.missed |= page.missed;
                for (time_ns, bytes) in page {
                    let event = self
                        .shapes
                        .iter()
                        .find_map(|shape| shape.event(time_ns, bytes));
                    self.waiting.extend(event);
                }
            }
            taken.lost += cpu.newly_lost();
        }
        self.waiting.sort_by_key(|event| event.time_ns);
        let due = self
            .waiting
            .partition_point(|event| event.time_ns <= until_ns);
        taken.events.extend(self.waiting.drain(..due));
        taken
    }
}

impl Cpu {
    fn newly_lost(&mut self) -> u64 {
        let mut text = [0; 512];
        let len = self.statistics.read_at(&mut text, 0).unwrap_or(0);
        let lost = lost(&String::from_utf8_lossy(&text[..len])).unwrap_or(self.lost);
        lost.saturating_sub(std::mem::replace(&mut self.lost, lost))
    }
}

/// Events that were overwritten, or for which there was no room. `None` when the text does not say.
fn lost(statistics: &str) -> Option<u64> {
    let of = |name: &str| {
        let line = statistics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line?.trim().parse::<u64>().ok()
    };
    // Not every kernel tells of the other two.
    Some(of("overrun")? + of("commit overrun").unwrap_or(0) + of("dropped events").unwrap_or(0))
}

fn shape(instance: &Instance, kind: EventKind) -> Result<EventShape, CaptureError> {
    let file = format!("events/block/{}/format", kind.name());
    let format = EventFormat::parse(&instance.read(&file)?);
    let format = format.ok_or_else(|| unexpected(kind.name(), "fields with their places"))?;
    EventShape::new(kind, &format).map_err(|field| unexpected(kind.name(), field))
}

fn unexpected(what: &'static str, expected: &'static str) -> CaptureError {
    CaptureError::Event { what, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_by_the_text_of_the_kernel() {
        let text = "entries: 129\noverrun: 12\ncommit overrun: 3\nbytes: 7168\noldest event ts:  2752.1\n\
            now ts:  2953.1\ndropped events: 5\nread events: 0\n";
        assert_eq!(lost(text), Some(20));
        assert_eq!(lost("overrun: 7\n"), Some(7));
        assert_eq!(lost("entries: 0\n"), None);
    }
}
