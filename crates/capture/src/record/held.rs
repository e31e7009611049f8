//! Records come by completion and leave by issue: they wait here until nothing older can come.
//!
//! Records older than all I/O in flight can go. The wait is bounded in memory; late ones go at once, and are counted.

use super::abi::Record;

/// Most records that wait: 20 MiB, almost a second of 300,000 I/O a second behind one that hangs.
pub(crate) const HELD_MAX: usize = 1 << 18;

/// Records that wait for older ones.
#[derive(Default)]
pub(crate) struct Held {
    records: Vec<Record>,
    /// Issue of the latest one that went.
    passed_ns: u64,
    late: u64,
}

impl Held {
    pub(crate) fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// How many more may wait.
    pub(crate) fn room(&self) -> usize {
        HELD_MAX.saturating_sub(self.records.len())
    }

    /// How many went after one that was issued later.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Passes on, by issue, records issued before a time; the older half in any case if there is no room left.
    pub(crate) fn release(&mut self, before_ns: u64, ready: &mut Vec<Record>) {
        self.records.sort_by_key(|record| record.issued_ns);
        let mut going = self
            .records
            .partition_point(|record| record.issued_ns < before_ns);
        if self.room() == 0 {
            going = going.max(HELD_MAX / 2);
        }
        for record in &self.records[..going] {
            self.late += u64::from(record.issued_ns < self.passed_ns);
            self.passed_ns = self.passed_ns.max(record.issued_ns);
        }
        ready.extend(self.records.drain(..going));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn record(issued_ns: u64) -> Record {
        Record {
            layer: plumb_trace::Layer::Request,
            issued_ns,
            queue_ns: None,
            device_ns: None,
            sector: 0,
            cgroup: 0,
            comm: [0; 16],
            dev: 0,
            disk: 0,
            len_bytes: 512,
            op_flags: 0,
            tgid: 0,
            thread: 0,
            error: None,
        }
    }

    fn times(ready: &[Record]) -> Vec<u64> {
        ready.iter().map(|record| record.issued_ns).collect()
    }

    #[test]
    fn records_go_by_issue_once_nothing_older_is_open() {
        let (mut held, mut ready) = (Held::default(), Vec::new());
        [5, 3, 9, 4]
            .into_iter()
            .for_each(|ns| held.push(record(ns)));
        held.release(4, &mut ready);
        assert_eq!(times(&ready), [3]);
        held.release(9, &mut ready);
        assert_eq!(times(&ready), [3, 4, 5]);
        held.push(record(7));
        held.release(u64::MAX, &mut ready);
        assert_eq!((times(&ready), held.late()), (vec![3, 4, 5, 7, 9], 0));
        held.push(record(8));
        held.release(u64::MAX, &mut ready);
        assert_eq!(held.late(), 1);
    }

    #[test]
    fn a_full_wait_ends_and_the_late_one_is_counted() {
        let (mut held, mut ready) = (Held::default(), Vec::new());
        (2..2 + HELD_MAX as u64)
            .rev()
            .for_each(|ns| held.push(record(ns)));
        // One that was issued at 1 is still open.
        held.release(1, &mut ready);
        assert_eq!((ready.len(), held.room()), (HELD_MAX / 2, HELD_MAX / 2));
        assert!(ready.is_sorted_by_key(|record| record.issued_ns));
        held.push(record(1));
        held.release(u64::MAX, &mut ready);
        assert_eq!((ready.len(), held.late()), (HELD_MAX + 1, 1));
    }
}
