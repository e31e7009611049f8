//! How a device answered while it was watched: its slowest and its failed I/O one by one, and the times in which it completed
//! nothing.

use serde::{Deserialize, Serialize};

use plumb_trace::Op;

/// I/O of each kind that are kept one by one.
pub const KEPT: usize = 8;

/// How a device answered during a watch. Only a live watch knows it: a profile that is saved and read again has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// I/O in flight at the end, as the kernel counts them. It includes I/O that were issued before the watch began.
    pub in_flight: u64,
    /// Longest time in which I/O were in flight and none completed, in ns. The true time is at least as long.
    pub longest_silence_ns: u64,
    /// A silence that lasts until the end, in ns, likewise; 0 without one.
    pub present_silence_ns: u64,
    /// The oldest I/O in flight at the end, with its age, if the watch saw its issue.
    pub oldest: Option<SingleIo>,
    /// The slowest I/O that completed, the slowest first.
    pub slowest: Vec<SingleIo>,
    /// The first I/O that failed, in the order of time.
    pub failed: Vec<SingleIo>,
    /// Reads since the start of the watch that filled the page cache, if the watch sees the flags of I/O. The kernel marks them
    /// as read-ahead, also if read-ahead is off; reads past the cache never have this mark.
    #[serde(skip)]
    pub cached_reads: Option<u64>,
}

/// One I/O.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SingleIo {
    /// Time from issue to completion in ns; the age if it is in flight.
    pub ns: u64,
    /// Time of the completion in ns since the boot, or the present time if it is in flight.
    pub at_ns: u64,
    /// Its operation.
    #[serde(with = "op_word")]
    pub op: Op,
    /// First byte on the device.
    pub start_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u64,
    /// The process that sent it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sender: Option<Sender>,
    /// The file whose pages it moved, if they went through the page cache.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<IoFile>,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<IoError>,
}

/// A process that sent an I/O.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sender {
    /// Its command, up to 15 letters.
    pub comm: String,
    /// Its number.
    pub pid: u32,
    /// Path of its cgroup of version 2, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cgroup: Option<String>,
}

/// A file on a file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IoFile {
    /// The number of its inode.
    pub inode: u64,
    /// Its name without the directory, up to 31 bytes, if the kernel had it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
}

impl IoFile {
    /// Bytes of a name that are kept.
    pub const NAME_BYTES: usize = 31;
}

/// Why an I/O failed, as the block layer tells causes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoError {
    /// The device did not answer in time (`ETIMEDOUT`).
    Timeout,
    /// No space on the device (`ENOSPC`).
    NoSpace,
    /// The path to the device failed (`ENOLINK`).
    Transport,
    /// The device failed (`EREMOTEIO`).
    Target,
    /// Another host has reserved the device (`EBADE`).
    Reservation,
    /// The medium cannot be read or written there (`ENODATA`).
    Medium,
    /// Protection information does not match (`EILSEQ`).
    Protection,
    /// No memory for the I/O (`ENOMEM`).
    Memory,
    /// The device is gone or offline (`ENODEV`).
    Offline,
    /// Any other error (`EIO`).
    Io,
}

/// An operation by its word, as in every document.
mod op_word {
    use plumb_trace::Op;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(op: &Op, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(op.word())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Op, D::Error> {
        let word = String::deserialize(deserializer)?;
        Op::from_word(&word)
            .ok_or_else(|| D::Error::custom(format!("found {word}, expected an operation")))
    }
}

impl IoError {
    /// The cause of an errno below 0 or a `blk_status_t` above 0 (`include/linux/blk_types.h`).
    #[must_use]
    pub fn from_kernel(status: i32) -> Option<IoError> {
        Some(match status {
            0 => return None,
            2 | -110 => IoError::Timeout,
            3 | -28 => IoError::NoSpace,
            4 | -67 => IoError::Transport,
            5 | -121 => IoError::Target,
            6 | -52 => IoError::Reservation,
            7 | -61 => IoError::Medium,
            8 | -84 => IoError::Protection,
            9 | -12 => IoError::Memory,
            16 | -19 => IoError::Offline,
            _ => IoError::Io,
        })
    }
}

impl SingleIo {
    /// Whether both are one I/O. Then the other gets what only this one knows of the sender.
    fn joins(&mut self, other: &mut SingleIo) -> bool {
        let place = |io: &SingleIo| (io.at_ns, io.ns, io.op, io.start_bytes, io.len_bytes);
        let is_same = place(self) == place(other);
        if is_same && self.sender > other.sender {
            other.sender = self.sender.take();
        }
        is_same
    }
}

impl Answers {
    /// Adds a later part of the same watch. The order does not matter except for the end, which comes from `later`.
    pub fn merge(&mut self, later: &Answers) {
        self.in_flight = later.in_flight;
        self.present_silence_ns = later.present_silence_ns;
        self.longest_silence_ns = self.longest_silence_ns.max(later.longest_silence_ns);
        self.oldest.clone_from(&later.oldest);
        // A part without I/O has none.
        self.cached_reads = self.cached_reads.max(later.cached_reads);
        // Each part has all I/O since the beginning: an entry in both is the same I/O.
        self.slowest.extend(later.slowest.iter().cloned());
        self.slowest.sort_by(|a, b| b.cmp(a));
        self.slowest.dedup_by(SingleIo::joins);
        self.slowest.truncate(KEPT);
        self.failed.extend(later.failed.iter().cloned());
        self.failed.sort_by(|a, b| (a.at_ns, a).cmp(&(b.at_ns, b)));
        self.failed.dedup_by(SingleIo::joins);
        self.failed.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(ns: u64, at_ns: u64) -> SingleIo {
        SingleIo {
            ns,
            at_ns,
            op: Op::Read,
            start_bytes: 0,
            len_bytes: 512,
            sender: None,
            file: None,
            error: None,
        }
    }

    #[test]
    fn a_later_part_completes_and_extends_the_first() {
        let mut all = Answers {
            in_flight: 3,
            longest_silence_ns: 50,
            present_silence_ns: 50,
            oldest: Some(io(60, 100)),
            slowest: vec![io(9, 1), io(7, 2)],
            failed: vec![io(1, 5)],
            cached_reads: Some(4),
        };
        all.merge(&Answers {
            slowest: vec![io(9, 1), io(8, 3)],
            failed: vec![io(1, 5), io(4, 4)],
            ..Answers::default()
        });
        let expected = Answers {
            longest_silence_ns: 50,
            slowest: vec![io(9, 1), io(8, 3), io(7, 2)],
            failed: vec![io(4, 4), io(1, 5)],
            cached_reads: Some(4),
            ..Answers::default()
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn an_io_counts_once_when_more_becomes_known_of_its_sender() {
        let sent = |cgroup: Option<&str>| SingleIo {
            sender: Some(Sender {
                comm: "dd".to_owned(),
                pid: 7,
                cgroup: cgroup.map(str::to_owned),
            }),
            ..io(9, 1)
        };
        let part = |cgroup| Answers {
            slowest: vec![sent(cgroup)],
            failed: vec![sent(cgroup)],
            ..Answers::default()
        };
        let known = Some("/system.slice/a.service");
        for (first, later) in [(None, known), (known, None)] {
            let mut all = part(first);
            all.merge(&part(later));
            let expected = vec![sent(known)];
            assert_eq!((&all.slowest, &all.failed), (&expected, &expected));
        }
    }

    /// By the table `blk_errors` of `block/blk-core.c`.
    #[test]
    fn errors_have_the_names_of_the_block_layer() {
        for (status, errno, cause) in [
            (2, 110, IoError::Timeout),
            (7, 61, IoError::Medium),
            (10, 5, IoError::Io),
            (4, 67, IoError::Transport),
        ] {
            assert_eq!(IoError::from_kernel(status), Some(cause));
            assert_eq!(IoError::from_kernel(-errno), Some(cause));
        }
        assert_eq!(IoError::from_kernel(0), None);
    }
}
