//! One synthetic I/O, as the tests mean it before any format has seen it.

/// The operation of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SynthOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards (trim, unmap).
    Discard,
    /// Flushes the cache: length 0, no place on the device.
    Flush,
}

impl SynthOp {
    /// The one-letter name: R, W, D or F.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Discard => 'D',
            Self::Flush => 'F',
        }
    }
}

/// One I/O at the request layer.
///
/// Iterators yield events in order of `time_ns`, so that the order of the stream is the order of issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynthEvent {
    /// Instant of **issue** to the device, ns from the workload's own zero; never negative from a workload here.
    pub time_ns: i64,
    /// Index of the device, from 0. Writers turn it into `sda`, 8:0, a LUN…
    pub device: u32,
    /// Kind of I/O.
    pub op: SynthOp,
    /// First byte, in the address space of the whole device. 0 for a flush.
    pub start_bytes: u64,
    /// Length in bytes. 0 for a flush.
    pub len_bytes: u64,
    /// Issue to complete, ns; `None` when the completion was never seen.
    pub device_ns: Option<i64>,
    /// Insert to issue, ns, at most [`MAX_QUEUE_NS`]; `None` when the insert was not seen.
    pub queue_ns: Option<i64>,
    /// Process that asked for it.
    pub pid: u32,
    /// That process's name.
    pub comm: &'static str,
    /// CPU it was issued on.
    pub cpu: u32,
}

/// The longest `queue_ns` of a workload, and the bound that lets a writer sort a stream in constant memory.
pub const MAX_QUEUE_NS: i64 = 10_000_000;

impl SynthEvent {
    /// First byte after the I/O.
    #[must_use]
    pub const fn end_bytes(&self) -> u64 {
        self.start_bytes + self.len_bytes
    }

    /// Instant of insert; the instant of issue when no insert was seen.
    #[must_use]
    pub fn insert_ns(&self) -> i64 {
        self.time_ns - self.queue_ns.unwrap_or(0)
    }

    /// Instant of completion, if one was seen.
    #[must_use]
    pub fn complete_ns(&self) -> Option<i64> {
        self.device_ns.map(|ns| self.time_ns + ns)
    }

    /// First 512-byte sector touched.
    #[must_use]
    pub const fn sector(&self) -> u64 {
        self.start_bytes / 512
    }

    /// Length in whole 512-byte sectors, rounded down.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.len_bytes / 512
    }
}

/// Kernel name of device `index`: sda … sdz, sdaa …
#[must_use]
pub fn device_name(index: u32) -> String {
    let mut rest = index + 1;
    let mut letters = Vec::new();
    while rest > 0 {
        rest -= 1;
        letters.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
    let tail: String = letters.iter().rev().map(|&l| char::from(l)).collect();
    format!("sd{tail}")
}

/// Linux device number (major 8, sixteen minors a disk) of device `index`.
#[must_use]
pub const fn linux_dev(index: u32) -> u32 {
    (8 << 20) | (index * 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_like_the_kernel() {
        let names: Vec<String> = [0, 1, 25, 26, 27, 701, 702].map(device_name).into();
        assert_eq!(
            names,
            ["sda", "sdb", "sdz", "sdaa", "sdab", "sdzz", "sdaaa"]
        );
    }

    #[test]
    fn second_disk_is_8_16() {
        assert_eq!(linux_dev(1), 0x0080_0010);
    }
}
