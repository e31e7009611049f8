//! Writers of raw trace formats, one file each, made from the descriptions of the formats alone.
//!
//! A writer takes [`SynthEvent`]s in order of issue and streams: its memory does not grow with the trace. Events that a
//! format cannot hold (a flush in a table of reads and writes) are left out and counted.

pub mod alibaba;
pub mod blkcategory;
pub mod blkparse_text;
pub mod blkrecord;
pub mod blktrace;
pub mod disksim;
pub mod etw;
pub mod fio_iolog;
pub mod lifecycle;
pub mod line;
pub mod msr;
pub mod perf_script;
pub mod reorder;
pub mod residue;
pub mod shapes;
pub mod spc;
pub mod systor;
pub mod tencent;
pub mod tnfdump;
pub mod vscsi;

use crate::event::{MAX_QUEUE_NS, SynthEvent};
use blkrecord::{Endian, Version};
use lifecycle::Shapes;
use std::io::Write;

/// A writer and its name on the command line of `plumb-testkit generate`.
pub struct Writer {
    /// Its name.
    pub name: &'static str,
    /// The format that reads its output: a name for `plumb analyze --format`.
    pub format: &'static str,
    /// Starts to write to a sink.
    pub open: OpenWriter,
}

/// Starts to write to a sink in a style.
///
/// # Errors
/// Of the sink, where a format begins with a head.
pub type OpenWriter =
    for<'a> fn(Box<dyn Write + 'a>, &Style) -> Result<Box<dyn EventSink + 'a>, WriteError>;

/// The choices of blktrace and its text; other writers ignore them.
#[derive(Debug, Clone)]
pub struct Style {
    /// Records that a request leaves.
    pub shapes: Shapes,
    /// Version of a record.
    pub version: Version,
    /// Byte order of a record.
    pub endian: Endian,
}

impl Default for Style {
    /// Plain requests in records of version 7, as a little-endian host writes them.
    fn default() -> Self {
        Self {
            shapes: Shapes::default(),
            version: Version::V7,
            endian: Endian::Little,
        }
    }
}

/// All writers.
pub static WRITERS: &[&Writer] = &[
    &blktrace::WRITER,
    &blkparse_text::WRITER,
    &vscsi::V1,
    &vscsi::V2,
    &msr::WRITER,
    &spc::WRITER,
    &disksim::WRITER,
    &disksim::MQSIM,
    &systor::WRITER,
    &alibaba::WRITER,
    &tencent::WRITER,
    &fio_iolog::V2,
    &fio_iolog::V3,
    &etw::GERMAN,
    &etw::ENGLISH,
    &perf_script::PERF,
    &perf_script::FTRACE,
    &tnfdump::WRITER,
    &residue::WRITER,
];

/// Why a writer stopped.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The sink refused bytes.
    #[error("cannot write the trace")]
    Io(#[from] std::io::Error),
    /// Events have to come in order of issue.
    #[error(
        "event at {time_ns} ns comes after one at {previous_ns} ns; sort the events by time_ns"
    )]
    OutOfOrder {
        /// Issue of the event refused.
        time_ns: i64,
        /// Issue of the one before.
        previous_ns: i64,
    },
    /// A queue time over [`MAX_QUEUE_NS`], or a negative interval.
    #[error("interval of {found_ns} ns at {time_ns} ns; expected 0 to {limit_ns}")]
    Interval {
        /// Issue of the event refused.
        time_ns: i64,
        /// The interval.
        found_ns: i64,
        /// The longest that is taken.
        limit_ns: i64,
    },
    /// A quantity too large, or too fine, for the field of this format.
    #[error("{field} of {value} at {time_ns} ns does not fit the format")]
    DoesNotFit {
        /// Issue of the event refused.
        time_ns: i64,
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: u64,
    },
}

/// A writer of one format.
pub trait EventSink {
    /// Takes the next event in order of issue. `Ok(false)`: the format has no word for it and it was left out.
    ///
    /// # Errors
    /// [`WriteError`], after which the output is not usable.
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError>;

    /// Writes held-back events and flushes. Must be called last.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    fn finish(&mut self) -> Result<(), WriteError>;
}

/// How many events a writer took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenCount {
    /// Events in the output.
    pub events: u64,
    /// Events that the format cannot hold.
    pub left_out: u64,
}

/// Writes all of `events` to `sink` and finishes it.
///
/// # Errors
/// The first error of the sink.
pub fn write_all<S: EventSink + ?Sized>(
    sink: &mut S,
    events: impl IntoIterator<Item = SynthEvent>,
) -> Result<WrittenCount, WriteError> {
    let mut written = WrittenCount::default();
    for event in events {
        if sink.event(&event)? {
            written.events += 1;
        } else {
            written.left_out += 1;
        }
    }
    sink.finish()?;
    Ok(written)
}

/// Checks the conditions of a sorting writer: order of issue, and bounded intervals.
pub(crate) fn check_order(event: &SynthEvent, previous_ns: &mut i64) -> Result<(), WriteError> {
    let time_ns = event.time_ns;
    if time_ns < *previous_ns {
        return Err(WriteError::OutOfOrder {
            time_ns,
            previous_ns: *previous_ns,
        });
    }
    *previous_ns = time_ns;
    let bounded = [(event.queue_ns, MAX_QUEUE_NS), (event.device_ns, i64::MAX)];
    for (interval, limit_ns) in bounded {
        if let Some(found_ns) = interval.filter(|ns| !(0..=limit_ns).contains(ns)) {
            return Err(WriteError::Interval {
                time_ns,
                found_ns,
                limit_ns,
            });
        }
    }
    Ok(())
}

/// `value` as u32, or the error that names `field`.
pub(crate) fn fit_u32(
    event: &SynthEvent,
    field: &'static str,
    value: u64,
) -> Result<u32, WriteError> {
    u32::try_from(value).map_err(|_| WriteError::DoesNotFit {
        time_ns: event.time_ns,
        field,
        value,
    })
}

/// Bytes as whole sectors, or the error that names `field`.
pub(crate) fn whole_sectors(
    event: &SynthEvent,
    field: &'static str,
    bytes: u64,
) -> Result<u64, WriteError> {
    if bytes.is_multiple_of(512) {
        Ok(bytes / 512)
    } else {
        Err(WriteError::DoesNotFit {
            time_ns: event.time_ns,
            field,
            value: bytes,
        })
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    //! Events that the tests of several formats share.

    use crate::event::{SynthEvent, SynthOp};

    /// A read of 8 KiB at sector 63 of the second disk, issued at 2 s, inserted 1 µs before, done after 87.2 µs.
    pub const READ: SynthEvent = SynthEvent {
        time_ns: 2_000_000_000,
        device: 1,
        op: SynthOp::Read,
        start_bytes: 63 * 512,
        len_bytes: 8192,
        device_ns: Some(87_200),
        queue_ns: Some(1_000),
        pid: 4242,
        comm: "oracle",
        cpu: 3,
    };

    /// A write of 64 KiB at 1 MiB of the first disk, a second later, whose completion is not known.
    pub const WRITE: SynthEvent = SynthEvent {
        time_ns: 3_000_000_500,
        device: 0,
        op: SynthOp::Write,
        start_bytes: 1 << 20,
        len_bytes: 65536,
        device_ns: None,
        queue_ns: None,
        pid: 7,
        comm: "dbw0",
        cpu: 0,
    };

    /// A flush of the first disk at 4 s that took 2.5 ms.
    pub const FLUSH: SynthEvent = SynthEvent {
        time_ns: 4_000_000_000,
        device: 0,
        op: SynthOp::Flush,
        start_bytes: 0,
        len_bytes: 0,
        device_ns: Some(2_500_000),
        queue_ns: None,
        pid: 7,
        comm: "dbw0",
        cpu: 0,
    };

    /// The output of `make` for `events`, as text, and the counts.
    pub fn text_of<S: super::EventSink>(
        make: impl FnOnce(SharedBytes) -> S,
        events: &[SynthEvent],
    ) -> (String, super::WrittenCount) {
        let bytes = SharedBytes::default();
        let mut sink = make(bytes.clone());
        let written = super::write_all(&mut sink, events.iter().copied()).expect("write to memory");
        (String::from_utf8(bytes.take()).expect("text"), written)
    }

    /// Memory to write to that can be read back while the writer still owns its end.
    #[derive(Debug, Clone, Default)]
    pub struct SharedBytes(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    impl SharedBytes {
        /// The output so far.
        pub fn take(&self) -> Vec<u8> {
            self.0.take()
        }
    }

    impl std::io::Write for SharedBytes {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(buf);
            Ok(buf.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
