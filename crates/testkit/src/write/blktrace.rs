//! Binary blktrace: one file per CPU, or all records in one stream as `blkparse -d` dumps them.
//!
//! Every CPU's file is in order of time, numbered from 1, and begins with no header. A CPU on which nothing
//! happened has an empty file, since blkparse stops at the first number that is missing.

use super::blkrecord::{BlkRecord, Endian, Version};
use super::lifecycle::{Lifecycle, Shapes};
use super::{EventSink, Style, WriteError, Writer};
use crate::event::SynthEvent;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The entry in the list of writers: the merged stream of all CPUs. [`Blktrace::new`] makes a file a CPU.
pub static WRITER: Writer = Writer {
    name: "blktrace",
    format: "blktrace",
    open: |sink, style| {
        let Style {
            shapes,
            version,
            endian,
        } = style.clone();
        Ok(Box::new(Blktrace::new(vec![sink], version, endian, shapes)))
    },
};

/// Bytes held of one file before they go to it.
const FULL_BYTES: usize = 1 << 17;

/// A writer of blktrace records.
pub struct Blktrace<W: Write> {
    lifecycle: Lifecycle,
    out: BlktraceOutput<W>,
}

struct BlktraceOutput<W> {
    version: Version,
    endian: Endian,
    files: Vec<PerCpu<W>>,
    sequence: Vec<u32>,
    records: u64,
}

struct PerCpu<W> {
    sink: W,
    buffer: Vec<u8>,
}

impl<W: Write> Blktrace<W> {
    /// Writes to `sinks`: one a CPU, or a single one for the merged stream of all.
    ///
    /// # Panics
    /// When the number of sinks is neither 1 nor `shapes.cpus`.
    #[must_use]
    pub fn new(sinks: Vec<W>, version: Version, endian: Endian, shapes: Shapes) -> Self {
        assert!(
            sinks.len() == 1 || sinks.len() == shapes.cpus as usize,
            "one sink, or one a CPU"
        );
        let files = sinks.into_iter().map(|sink| PerCpu {
            sink,
            buffer: Vec::with_capacity(FULL_BYTES + 256),
        });
        let out = BlktraceOutput {
            version,
            endian,
            files: files.collect(),
            sequence: vec![0; shapes.cpus as usize],
            records: 0,
        };
        Self {
            lifecycle: Lifecycle::new(shapes),
            out,
        }
    }

    /// Records written so far, notes included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.out.records
    }
}

/// Makes `BASE.blktrace.0` … for every CPU.
///
/// # Errors
/// Of making a file.
pub fn create_files(base: &Path, cpus: u32) -> io::Result<Vec<File>> {
    (0..cpus)
        .map(|cpu| File::create(file_name(base, cpu)))
        .collect()
}

/// The name of one CPU's file.
#[must_use]
pub fn file_name(base: &Path, cpu: u32) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!(".blktrace.{cpu}"));
    name.into()
}

impl<W: Write> BlktraceOutput<W> {
    fn record(&mut self, mut record: BlkRecord) -> Result<(), WriteError> {
        if !record.action.is_note() {
            // The kernel numbers events and gives every note a 0.
            let sequence = &mut self.sequence[record.cpu as usize];
            *sequence = sequence.wrapping_add(1);
            record.sequence = *sequence;
        }
        let index = if self.files.len() == 1 {
            0
        } else {
            record.cpu as usize
        };
        let file = &mut self.files[index];
        record.encode(self.version, self.endian, &mut file.buffer);
        self.records += 1;
        if file.buffer.len() >= FULL_BYTES {
            file.drain()
        } else {
            Ok(())
        }
    }
}

impl<W: Write> PerCpu<W> {
    fn drain(&mut self) -> Result<(), WriteError> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> EventSink for Blktrace<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let out = &mut self.out;
        self.lifecycle
            .event(event, &mut |record| out.record(record))?;
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        let out = &mut self.out;
        self.lifecycle.finish(&mut |record| out.record(record))?;
        for file in &mut self.out.files {
            file.drain()?;
            file.sink.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, SharedBytes, WRITE};
    use crate::write::write_all;

    fn files_of(
        version: Version,
        endian: Endian,
        shapes: Shapes,
        events: &[SynthEvent],
    ) -> Vec<Vec<u8>> {
        let sinks: Vec<SharedBytes> = (0..shapes.cpus).map(|_| SharedBytes::default()).collect();
        let mut writer = Blktrace::new(sinks.clone(), version, endian, shapes);
        write_all(&mut writer, events.iter().copied()).expect("memory");
        sinks.iter().map(SharedBytes::take).collect()
    }

    fn quiet(cpus: u32) -> Shapes {
        Shapes {
            cpus,
            notes: false,
            foreign_completion_every: 1,
            ..Shapes::default()
        }
    }

    /// READ is inserted on CPU 3 at 1,000 s + 1.999999 s; its Q comes 300 ns before.
    const QUEUED_NS: u64 = 1_001_999_998_700;

    #[test]
    fn version_7_little_has_its_fields_in_place() {
        let files = files_of(Version::V7, Endian::Little, quiet(4), &[READ]);
        let sizes: Vec<usize> = files.iter().map(Vec::len).collect();
        assert_eq!(sizes, [48, 0, 0, 4 * 48], "Q G I D on CPU 3, C on the next");
        let q = &files[3][..48];
        assert_eq!(q[0..4], [0x07, 0x74, 0x61, 0x65], "magic");
        assert_eq!(q[4..8], [1, 0, 0, 0], "sequence");
        assert_eq!(q[8..16], QUEUED_NS.to_le_bytes(), "time");
        assert_eq!(q[16..24], [63, 0, 0, 0, 0, 0, 0, 0], "sector");
        assert_eq!(q[24..28], [0, 0x20, 0, 0], "bytes");
        assert_eq!(q[28..32], [1, 0, 0x11, 0], "Q, of category queue and read");
        assert_eq!(q[32..36], [0x92, 0x10, 0, 0], "pid");
        assert_eq!(q[36..40], [0x10, 0, 0x80, 0], "device 8:16");
        assert_eq!(q[40..44], [3, 0, 0, 0], "cpu");
        assert_eq!(q[44..48], [0; 4], "error and payload length");
        let c = &files[0];
        assert_eq!(
            c[8..16],
            (1_002_000_000_000u64 + 87_200).to_le_bytes(),
            "time of completion"
        );
        assert_eq!(
            c[28..32],
            [8, 0, 0x81, 1],
            "C, of category complete, fs and read"
        );
        assert_eq!(c[32..36], [0; 4], "completed by nobody");
    }

    #[test]
    fn version_8_big_has_its_fields_in_place() {
        let files = files_of(Version::V8, Endian::Big, quiet(4), &[READ]);
        assert_eq!(files[3].len(), 4 * 64);
        let d = &files[3][192..256];
        assert_eq!(d[0..4], [0x65, 0x61, 0x74, 0x08], "magic");
        assert_eq!(d[4..8], [0, 0, 0, 4], "sequence");
        assert_eq!(d[8..16], 1_002_000_000_000u64.to_be_bytes(), "time");
        assert_eq!(d[16..24], [0, 0, 0, 0, 0, 0, 0, 63], "sector");
        assert_eq!(d[24..28], [0, 0, 0x20, 0], "bytes");
        assert_eq!(d[28..32], [0, 0, 0x10, 0x92], "pid comes before the action");
        assert_eq!(
            d[32..40],
            [0, 0, 0, 0, 0x01, 0x41, 0, 7],
            "D, of category issue, fs and read"
        );
        assert_eq!(d[40..44], [0, 0x80, 0, 0x10], "device");
        assert_eq!(d[44..48], [0, 0, 0, 3], "cpu");
        assert_eq!(d[48..64], [0; 16], "error, payload length, padding");
    }

    #[test]
    fn unseen_records_are_not_written() {
        let files = files_of(Version::V7, Endian::Little, quiet(1), &[WRITE]);
        assert_eq!(files[0].len(), 48);
        assert_eq!(files[0][28], 7, "a D alone");
    }

    #[test]
    fn notes_have_payloads_and_no_number() {
        let shapes = Shapes {
            notes: true,
            ..quiet(1)
        };
        let bytes = &files_of(Version::V7, Endian::Big, shapes, &[READ])[0];
        assert_eq!(bytes[28..32], [0x04, 0, 0, 1], "timestamp");
        assert_eq!(bytes[4..8], [0; 4], "no sequence number");
        assert_eq!(bytes[46..48], [0, 8]);
        // 10.0003 ms before the zero of the workload, in the byte order of the file.
        assert_eq!(
            bytes[8..16],
            (1_000_000_000_000u64 - 10_000_300).to_be_bytes()
        );
        assert_eq!(bytes[48..52], 1_590_506_585u32.to_be_bytes());
        assert_eq!(bytes[52..56], 989_999_700u32.to_be_bytes());
        let process = &bytes[56..];
        assert_eq!(process[28..32], [0x04, 0, 0, 0], "process");
        assert_eq!(process[46..48], [0, 16]);
        assert_eq!(process[48..64], *b"oracle\0\0\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn payloads_of_remap_and_split_are_big_endian_always() {
        let shapes = Shapes {
            partition_start_sectors: Some(60),
            split_every: 1,
            ..quiet(1)
        };
        let bytes = &files_of(Version::V7, Endian::Little, shapes, &[READ])[0];
        assert_eq!(bytes[28..30], [15, 0], "A");
        assert_eq!(
            bytes[48..64],
            [0, 0x80, 0, 0x11, 0, 0x80, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 3]
        );
        let split = &bytes[64 + 48..];
        assert_eq!(
            split[28..32],
            [13, 0, 1, 0],
            "X without a category of its own"
        );
        assert_eq!(split[24..28], [0, 0x10, 0, 0], "bytes of the front half");
        assert_eq!(split[48..56], [0, 0, 0, 0, 0, 0, 0, 63 + 8]);
    }

    #[test]
    fn each_cpu_is_in_order_and_counts_by_one() {
        let load = crate::workload::Mixed {
            events: 5_000,
            ..crate::workload::Mixed::default()
        };
        let events: Vec<_> = load.iter().collect();
        for file in files_of(Version::V7, Endian::Little, quiet(16), &events) {
            let mut previous_ns = 0;
            for (index, record) in file.chunks_exact(48).enumerate() {
                let time_ns = u64::from_le_bytes(record[8..16].try_into().expect("eight bytes"));
                let sequence = u32::from_le_bytes(record[4..8].try_into().expect("four bytes"));
                assert!(time_ns >= previous_ns);
                assert_eq!(sequence as usize, index + 1);
                previous_ns = time_ns;
            }
        }
    }

    #[test]
    fn one_sink_takes_the_merged_stream() {
        let sink = SharedBytes::default();
        let mut writer = Blktrace::new(vec![sink.clone()], Version::V7, Endian::Little, quiet(4));
        write_all(&mut writer, [READ, WRITE, FLUSH]).expect("memory");
        assert_eq!(writer.records(), 5 + 1 + 2);
        assert_eq!(sink.take().len(), 8 * 48);
    }

    #[test]
    fn disorder_is_refused() {
        let mut writer = Blktrace::new(vec![io::sink()], Version::V7, Endian::Little, quiet(1));
        let refused = write_all(&mut writer, [WRITE, READ]).expect_err("goes back in time");
        assert!(matches!(
            refused,
            WriteError::OutOfOrder {
                time_ns: 2_000_000_000,
                ..
            }
        ));
        let mut writer = Blktrace::new(vec![io::sink()], Version::V7, Endian::Little, quiet(1));
        let long = SynthEvent {
            queue_ns: Some(1 << 40),
            ..READ
        };
        assert!(matches!(
            write_all(&mut writer, [long]),
            Err(WriteError::Interval { .. })
        ));
    }
}
