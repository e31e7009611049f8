//! Plumb's own residue table as text, counted here by a plain map and by nothing of `plumb-profile`.
//!
//! First `# plumb-residue 1 unit=U modulus=M`, U in bytes and M in units; then a line for each row: device, kind, start
//! modulo M, length (both in units), count, and if any was timed the timed count and the sum of nanoseconds.

use super::line::Lines;
use super::{EventSink, WriteError, Writer};
use crate::event::{SynthEvent, SynthOp, device_name};
use std::collections::BTreeMap;
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "residue",
    format: "residue",
    open: |sink, _| Ok(Box::new(Residue::new(sink, 512, 2048))),
};

#[derive(Default)]
struct ResidueSums {
    ios: u64,
    timed: u64,
    device_ns: i128,
}

/// A writer of a residue table. Its memory is that of the table, and it writes at the end.
pub struct Residue<W: Write> {
    lines: Lines<W>,
    unit_bytes: u64,
    modulus_units: u64,
    rows: BTreeMap<(u32, SynthOp, u64, u64), ResidueSums>,
}

impl<W: Write> Residue<W> {
    /// A table in units of `unit_bytes`, of starts modulo `modulus_units`: 512 and 2048 as a rule. Buffered here.
    ///
    /// # Panics
    /// When one of them is 0.
    pub fn new(sink: W, unit_bytes: u64, modulus_units: u64) -> Self {
        assert!(
            unit_bytes > 0 && modulus_units > 0,
            "a unit and a modulus are at least 1"
        );
        Self {
            lines: Lines::new(sink),
            unit_bytes,
            modulus_units,
            rows: BTreeMap::new(),
        }
    }

    fn units(
        &self,
        event: &SynthEvent,
        field: &'static str,
        bytes: u64,
    ) -> Result<u64, WriteError> {
        if bytes.is_multiple_of(self.unit_bytes) {
            Ok(bytes / self.unit_bytes)
        } else {
            Err(WriteError::DoesNotFit {
                time_ns: event.time_ns,
                field,
                value: bytes,
            })
        }
    }
}

impl<W: Write> EventSink for Residue<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let residue = self.units(event, "start", event.start_bytes)? % self.modulus_units;
        let length = self.units(event, "length", event.len_bytes)?;
        let row = self
            .rows
            .entry((event.device, event.op, residue, length))
            .or_default();
        row.ios += 1;
        if let Some(device_ns) = event.device_ns {
            row.timed += 1;
            row.device_ns += i128::from(device_ns);
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        let l = &mut self.lines;
        l.args(format_args!(
            "# plumb-residue 1 unit={} modulus={}",
            self.unit_bytes, self.modulus_units
        ))
        .end()?;
        for ((device, op, residue, length), row) in &self.rows {
            l.text(&device_name(*device))
                .ch(' ')
                .ch(op.letter())
                .ch(' ');
            l.int(*residue).ch(' ').int(*length).ch(' ').int(row.ios);
            if row.timed > 0 {
                l.ch(' ').int(row.timed).ch(' ').int(row.device_ns);
            }
            l.end()?;
        }
        Ok(l.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, WRITE, text_of};

    #[test]
    fn counts_by_device_kind_residue_and_length() {
        let again = SynthEvent {
            start_bytes: READ.start_bytes + (1 << 20),
            device_ns: None,
            ..READ
        };
        let (text, _) = text_of(|w| Residue::new(w, 512, 2048), &[READ, again, WRITE, FLUSH]);
        let expected = "# plumb-residue 1 unit=512 modulus=2048\n\
                        sda W 0 128 1\n\
                        sda F 0 0 1 1 2500000\n\
                        sdb R 63 16 2 1 87200\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_start_within_a_unit_is_refused() {
        let odd = SynthEvent {
            start_bytes: 700,
            ..READ
        };
        let refused = Residue::new(std::io::sink(), 512, 2048)
            .event(&odd)
            .expect_err("not in sectors");
        assert!(matches!(
            refused,
            WriteError::DoesNotFit {
                field: "start",
                value: 700,
                ..
            }
        ));
    }
}
