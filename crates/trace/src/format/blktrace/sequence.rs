//! Sequence numbers: each CPU counts its records, so that a gap tells how many are missing.
//!
//! Notes are not counted. The kernel counts by device, too; recorders that write several devices under one
//! count are understood as well. A number that jumps ahead and is followed by the one expected before was damaged
//! itself; it loses nothing.

use rustc_hash::FxHashMap;

use super::record::RawRecord;
use super::shape::CPUS_MAX;

/// Follows the sequence numbers of each device and CPU.
#[derive(Default)]
pub struct Sequences {
    index: FxHashMap<(u32, u32), usize>,
    states: Vec<Sequence>,
    recent: Option<((u32, u32), usize)>,
    /// Last number by CPU, of any device.
    of_cpu: Vec<u32>,
    /// Records that are missing.
    pub lost: u64,
    /// How often the numbers went back.
    pub back: u64,
    /// Records whose number was damaged.
    pub damaged: u64,
}

#[derive(Clone, Copy)]
struct Sequence {
    last: u32,
    /// The number before the last jump ahead, and its contribution to the lost.
    jump: Option<(u32, u32)>,
}

impl Sequences {
    /// Whether records are missing before this one.
    #[inline]
    pub fn step(&mut self, record: &RawRecord) -> bool {
        let key = (record.device, record.cpu);
        let index = match self.recent {
            Some((recent, index)) if recent == key => index,
            _ => self.find(key, record.sequence),
        };
        let expected = record.sequence.wrapping_sub(1);
        let before = std::mem::replace(&mut self.states[index].last, record.sequence);
        let of_cpu = self.of_cpu.get_mut(record.cpu as usize);
        let before_of_cpu = of_cpu.map(|last| std::mem::replace(last, record.sequence));
        if expected == before || before_of_cpu == Some(expected) {
            return false;
        }
        self.jumped(index, before, record.sequence)
    }

    fn find(&mut self, key: (u32, u32), sequence: u32) -> usize {
        let states = &mut self.states;
        let index = *self.index.entry(key).or_insert_with(|| {
            states.push(Sequence {
                last: sequence.wrapping_sub(1),
                jump: None,
            });
            states.len() - 1
        });
        self.recent = Some((key, index));
        let cpus = key.1 as usize + 1;
        if self.of_cpu.len() < cpus && cpus <= CPUS_MAX as usize {
            self.of_cpu.resize(cpus, 0);
        }
        index
    }

    #[cold]
    fn jumped(&mut self, index: usize, before: u32, sequence: u32) -> bool {
        let state = &mut self.states[index];
        let ahead = sequence.wrapping_sub(before).wrapping_sub(1);
        if let Some((at, added)) = state.jump.take()
            && sequence == at.wrapping_add(2)
        {
            // The numbers go on as if the record between had never been: that one's number was damaged.
            self.lost -= u64::from(added);
            self.damaged += 1;
            return false;
        }
        if ahead > u32::MAX / 2 {
            self.back += 1;
            return false;
        }
        state.jump = Some((before, ahead));
        self.lost += u64::from(ahead);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds numbers of one CPU; expects lost, damaged, back.
    fn check(numbers: &[u32], expected: (u64, u64, u64)) {
        let mut sequences = Sequences::default();
        for &sequence in numbers {
            sequences.step(&RawRecord {
                sequence,
                ..RawRecord::default()
            });
        }
        assert_eq!(
            (sequences.lost, sequences.damaged, sequences.back),
            expected,
            "{numbers:?}"
        );
    }

    #[test]
    fn gaps_are_losses() {
        check(&[], (0, 0, 0));
        check(&[1, 2, 3], (0, 0, 0));
        check(&[7, 8, 12, 13], (3, 0, 0));
        check(&[1, 4, 8], (5, 0, 0));
        check(&[u32::MAX - 1, u32::MAX, 0, 1], (0, 0, 0));
        check(&[1, 2, 1 << 30, 4, 5], (0, 1, 0));
        check(&[5, 6, 1, 2], (0, 0, 1));
    }

    #[test]
    fn each_cpu_and_device_counts_for_itself() {
        let mut sequences = Sequences::default();
        for (device, cpu, sequence) in [
            (1, 0, 1),
            (1, 1, 9),
            (2, 0, 5),
            (1, 0, 2),
            (1, 1, 10),
            (2, 0, 7),
        ] {
            sequences.step(&RawRecord {
                device,
                cpu,
                sequence,
                ..RawRecord::default()
            });
        }
        assert_eq!(sequences.lost, 1);
        let mut one_count = Sequences::default();
        for (device, sequence) in [(1, 1), (2, 2), (1, 3), (1, 4), (2, 5), (2, 8)] {
            one_count.step(&RawRecord {
                device,
                sequence,
                ..RawRecord::default()
            });
        }
        assert_eq!(one_count.lost, 2);
    }
}
