//! The slowest and the failed I/O of each disk, as a recording meets them.

use std::collections::BTreeMap;

use plumb_geometry::SmallSort;
use plumb_profile::answers::{Answers, KEPT, Sender, SingleIo};
use plumb_trace::{Layer, Op};

use super::abi::Record;
use crate::devices::name_of;
use crate::sender_names::SenderNames;
use crate::silence::Named;

/// A disk at the layer at which it is recorded.
type RecordedLayer = (u32, Layer);

/// The I/O of a disk that are kept.
struct Kept {
    named: Named,
    slowest: Vec<Record>,
    /// A faster one is not among the slowest.
    slowest_ns_min: u64,
    failed: Vec<Record>,
}

/// The I/O of all disks that are kept.
#[derive(Default)]
pub(crate) struct KeptIos {
    disks: Vec<Kept>,
    places: BTreeMap<RecordedLayer, usize>,
    /// The place of the last I/O, which mostly is that of the next one too.
    last: Option<(RecordedLayer, usize)>,
}

impl KeptIos {
    /// Keeps an I/O that is slow or failed.
    pub(crate) fn add(&mut self, record: &Record) {
        let device_ns = record.device_ns.unwrap_or(0);
        let kept = self.kept_at((record.disk, record.layer));
        if record.error.is_some() && record.is_never_refused() && kept.failed.len() < KEPT {
            kept.failed.push(*record);
        }
        if device_ns > kept.slowest_ns_min {
            kept.keep_slow(*record);
        }
    }

    fn kept_at(&mut self, place: RecordedLayer) -> &mut Kept {
        let index = match self.last {
            Some((last, index)) if last == place => index,
            _ => *self.places.entry(place).or_insert(self.disks.len()),
        };
        self.last = Some((place, index));
        if index == self.disks.len() {
            self.disks.push(Kept {
                named: Named::new(place.0, place.1),
                slowest: Vec::new(),
                slowest_ns_min: 0,
                failed: Vec::new(),
            });
        }
        &mut self.disks[index]
    }

    /// The name of a disk when its first I/O came; later it may be gone.
    pub(crate) fn name_of(&self, dev: u32, layer: Layer) -> String {
        match self.places.get(&(dev, layer)) {
            Some(index) => self.disks[*index].named.name.clone(),
            None => name_of(dev).name,
        }
    }

    /// The answers of each disk in the order of their first I/O. `open` has the I/O in flight, which were added before; those that were
    /// issued before their disk was idle count no more.
    pub(crate) fn answers(
        &self,
        open: &[Record],
        idle_at_ns: impl Fn(&Named) -> u64,
        now_ns: u64,
        names: &mut SenderNames,
    ) -> Vec<(Named, Answers)> {
        let mut all = Vec::with_capacity(self.disks.len());
        for Kept {
            named,
            slowest,
            failed,
            ..
        } in &self.disks
        {
            let mut answers = Answers::default();
            let mut completed = |record: &Record| completed(record, names);
            answers.slowest = slowest.iter().filter_map(&mut completed).collect();
            answers.slowest.small_sort_by(|a, b| b.cmp(a));
            answers.failed = failed.iter().filter_map(&mut completed).collect();
            answers.failed.small_sort_by_key(|io| io.at_ns);
            let since_ns = idle_at_ns(named);
            let of_disk = |record: &&Record| {
                record.disk == named.dev
                    && record.layer == named.layer
                    && record.issued_ns >= since_ns
            };
            let open = open.iter().filter(of_disk);
            answers.in_flight = open.clone().count() as u64;
            answers.oldest = open
                .min_by_key(|record| record.issued_ns)
                .and_then(|record| {
                    let age_ns = now_ns.saturating_sub(record.issued_ns);
                    single(record, age_ns, now_ns, names)
                });
            all.push((named.clone(), answers));
        }
        all
    }
}

impl Kept {
    /// Puts an I/O among the slowest, in the place of the fastest of them if there is no room.
    fn keep_slow(&mut self, record: Record) {
        self.slowest.push(record);
        self.slowest
            .small_sort_by_key(|kept| std::cmp::Reverse(kept.device_ns));
        self.slowest.truncate(KEPT);
        if let [.., fastest] = self.slowest.as_slice()
            && self.slowest.len() == KEPT
        {
            self.slowest_ns_min = fastest.device_ns.unwrap_or(0);
        }
    }
}

fn completed(record: &Record, names: &mut SenderNames) -> Option<SingleIo> {
    let device_ns = record.device_ns?;
    single(
        record,
        device_ns,
        record.issued_ns.saturating_add(device_ns),
        names,
    )
}

/// The I/O of a record; `None` for an operation without a code.
fn single(record: &Record, ns: u64, at_ns: u64, names: &mut SenderNames) -> Option<SingleIo> {
    let comm = record.comm.split(|&letter| letter == 0).next()?;
    let sender = (record.tgid > 0).then(|| Sender {
        comm: String::from_utf8_lossy(comm).into_owned(),
        pid: record.tgid,
        cgroup: names.cgroup(record.cgroup),
    });
    Some(SingleIo {
        ns,
        at_ns,
        op: Op::from_code(record.op_flags as u8)?,
        start_bytes: record.start_bytes(),
        len_bytes: u64::from(record.len_bytes),
        sender,
        file: None,
        error: record.error,
    })
}

#[cfg(test)]
mod tests {
    use plumb_profile::answers::IoError;

    use super::*;
    use crate::record::held::tests::record;

    #[test]
    fn the_slowest_and_the_first_failed_are_kept() {
        let mut kept = KeptIos::default();
        for number in 0..100_u64 {
            // 37 and 100 have no common divisor: each latency is there once, in no order.
            let device_ns = (number * 37) % 100 + 1;
            kept.add(&Record {
                op_flags: Op::Read as u32,
                disk: (number % 2) as u32,
                device_ns: Some(device_ns),
                error: (number % 10 < 2).then_some(IoError::Medium),
                ..record(number)
            });
        }
        let mut names = SenderNames::new(false);
        let open = [5, 3, 9].map(record);
        let answers = kept.answers(&open, |_| 5, 1_000, &mut names);
        assert_eq!(answers.len(), 2);
        let of = |disk: usize| &answers[disk].1;
        let times = |disk| of(disk).slowest.iter().map(|io| io.ns).collect::<Vec<_>>();
        // Even numbers have odd latencies.
        assert_eq!(times(0), [99, 97, 95, 93, 91, 89, 87, 85]);
        assert_eq!(times(1), [100, 98, 96, 94, 92, 90, 88, 86]);
        assert!(of(1).failed.is_sorted_by_key(|io| io.at_ns));
        let mut failed: Vec<u64> = of(1).failed.iter().map(|io| io.at_ns - io.ns).collect();
        failed.sort_unstable();
        let expected: Vec<u64> = (0..8).map(|round| 10 * round + 1).collect();
        assert_eq!(failed, expected);
        assert_eq!(of(0).failed[0].error, Some(IoError::Medium));
        let oldest = of(0).oldest.as_ref().map(|io| (io.ns, io.at_ns));
        // The one that was issued at 3 is older than the last idle time.
        assert_eq!((of(0).in_flight, oldest), (2, Some((995, 1_000))));
        assert_eq!((of(1).in_flight, &of(1).oldest), (0, &None));
    }
}
