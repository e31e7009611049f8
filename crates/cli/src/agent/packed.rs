//! The totals and histograms of a window in some hundred bytes, for the memory of the agent: numbers of seven bits a byte, the lowest first,
//! and of histograms only the buckets with I/O, each by its distance from the one before.

use plumb_profile::histogram::Counts;
use plumb_profile::profile::OpTotals;

/// Totals of each operation, packed.
pub fn pack(ops: &[OpTotals; 6]) -> Box<[u8]> {
    let mut bytes = Vec::new();
    for totals in ops {
        for number in [totals.ios, totals.bytes, totals.failed, totals.timed] {
            put(&mut bytes, number);
        }
        for counts in [&totals.sizes, &totals.device_ns, &totals.queue_ns] {
            put(&mut bytes, counts.iter().count() as u64);
            let mut before = 0;
            for (bucket, ios) in counts.iter() {
                put(&mut bytes, (bucket - before) as u64);
                put(&mut bytes, ios);
                before = bucket;
            }
        }
    }
    bytes.into_boxed_slice()
}

/// Adds packed totals to others.
pub fn add_packed(mut bytes: &[u8], ops: &mut [OpTotals; 6]) {
    for totals in ops {
        for sum in [
            &mut totals.ios,
            &mut totals.bytes,
            &mut totals.failed,
            &mut totals.timed,
        ] {
            *sum = sum.saturating_add(take(&mut bytes));
        }
        for counts in [
            &mut totals.sizes,
            &mut totals.device_ns,
            &mut totals.queue_ns,
        ] {
            add_counts(&mut bytes, counts);
        }
    }
}

fn add_counts(bytes: &mut &[u8], counts: &mut Counts) {
    let mut bucket = 0;
    for _ in 0..take(bytes) {
        bucket += take(bytes) as usize;
        counts.add(bucket, take(bytes));
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The next number; 0 behind the end.
fn take(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    while let [first, rest @ ..] = *bytes {
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if *first < 0x80 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_totals_are_the_same() {
        let mut ops: [OpTotals; 6] = Default::default();
        ops[0].ios = 127;
        ops[0].bytes = 128;
        ops[1].bytes = u64::MAX;
        ops[1].failed = 16_384;
        ops[5].timed = 1;
        for (bucket, ios) in [(0, 1), (1, 300), (900, u64::from(u32::MAX))] {
            ops[2].device_ns.add(bucket, ios);
            ops[2].queue_ns.add(bucket + 1, ios);
            ops[3].sizes.add(bucket / 20, ios);
        }
        let packed = pack(&ops);
        let mut found: [OpTotals; 6] = Default::default();
        add_packed(&packed, &mut found);
        assert_eq!(found, ops);
        // A second time they are added, and a sum does not overflow.
        add_packed(&packed, &mut found);
        assert_eq!((found[0].ios, found[1].bytes), (254, u64::MAX));
        assert_eq!(found[2].device_ns.get(1), 600);
        // Numbers below 128 take a byte.
        assert_eq!(pack(&Default::default()).len(), 6 * 7);
    }
}
