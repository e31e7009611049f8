//! The signatures of a device's content: every position that a probe reads, so that all of them can be hidden.
//!
//! Left out: partition tables within a partition, which Linux does not look for, and copies of superblocks that only a
//! repair reads (those of ext and XFS).

mod known;

use std::io;
use std::ops::Range;

use plumb_label::Disk;

use self::known::At;
use crate::marker::Marker;

/// A place that tells something, whole logical blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its format, as `blkid` or its maker calls it.
    pub name: &'static str,
    /// Its bytes, from the beginning of the searched range.
    pub range: Range<u64>,
}

/// The bytes to hide for a move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignatureSurvey {
    /// In the partition: all signatures, and its first block, the position of the marker. They do not touch. The first
    /// block is the last one if it has no signature: then the real signatures return after everything else.
    pub signatures: Vec<Range<u64>>,
    /// On the disk: signatures in free space that an entry over both places would show.
    pub strays: Vec<Range<u64>>,
    /// The formats found in the partition, each name once.
    pub names: Vec<&'static str>,
}

/// Finds the bytes that a move from `old` to `new` has to hide; both are ranges of the disk.
///
/// # Errors
/// The error of the system if the disk cannot be read.
pub fn survey(
    disk: &dyn Disk,
    old: &Range<u64>,
    new: &Range<u64>,
    block: u32,
) -> io::Result<SignatureSurvey> {
    let block = u64::from(block);
    let union = old.start.min(new.start)..old.end.max(new.end);
    let own = find(disk, old, block)?;
    let mut names: Vec<&'static str> = own.iter().map(|signature| signature.name).collect();
    names.dedup();
    let mut signatures: Vec<Range<u64>> =
        own.into_iter().map(|signature| signature.range).collect();
    let mut strays = Vec::new();
    for signature in find(disk, &union, block)? {
        let range = union.start + signature.range.start..union.start + signature.range.end;
        // Bytes at an end of the partition belong to both.
        for part in [
            range.start..range.end.min(old.start),
            range.start.max(old.end)..range.end,
        ] {
            if !part.is_empty() {
                strays.push(part);
            }
        }
        let within = range.start.max(old.start)..range.end.min(old.end);
        if !within.is_empty() {
            signatures.push(within.start - old.start..within.end - old.start);
        }
    }
    let first_tells = signatures.iter().any(|range| range.start < block);
    signatures.push(0..block);
    let mut signatures = joined(signatures);
    if !first_tells && signatures[0] == (0..block) {
        signatures.rotate_left(1);
    }
    Ok(SignatureSurvey {
        signatures,
        strays: joined(strays),
        names,
    })
}

/// In their order, those that meet or touch as one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// First bytes of all blocks of a place of `len` bytes in which a signature can begin, in their order, and of its first
/// block. These are the places where a move writes markers.
fn starts(len: u64, block: u64) -> Vec<u64> {
    let before_end = |unit: u64, back: u64| (len - len % unit).checked_sub(back);
    let known = known::KNOWN.iter().map(|(_, at, _)| match at {
        At::Start(start) => Some(*start),
        At::End(unit, back) => before_end(*unit, *back),
    });
    let swap = known::PAGES.iter().map(|page| Some(page - 10));
    let ufs = known::UFS_AT.iter().map(|at| Some(at + known::UFS_MAGIC));
    let promise = known::PROMISE_SECTORS.iter();
    let promise = promise.map(|sectors| before_end(512, sectors * 512));
    let label = known::ZFS_LABEL;
    let zfs = [
        Some(0),
        Some(label),
        before_end(label, 2 * label),
        before_end(label, label),
    ];
    let zfs = zfs.into_iter().map(|at| at.map(|at| at + known::ZFS_LIST));
    let all = known.chain(swap).chain(ufs).chain(promise).chain(zfs);
    let mut starts: Vec<u64> = all
        .flatten()
        .chain([0])
        .filter(|at| *at < len)
        .map(|at| at - at % block)
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Markers where a move writes them in `place`, a partition, each with its byte on the disk.
///
/// A move hides the signature that decides first and brings it back last. So a marker behind an intact signature is none
/// of a move: it may be a part of any user's file, and is left out.
#[must_use]
pub fn markers(disk: &dyn Disk, place: &Range<u64>, block: u32) -> Vec<(u64, Marker)> {
    let block = u64::from(block);
    let len = place.end.saturating_sub(place.start);
    // A block that cannot be read has no marker, and others may.
    let marker_at = |at: u64| Marker::at(disk, place.start + at).ok().flatten();
    let mut found: Vec<(u64, Marker)> = starts(len, block)
        .into_iter()
        .filter_map(|at| Some((place.start + at, marker_at(at)?)))
        .collect();
    if found.is_empty() {
        return found;
    }
    let signatures = find(disk, place, block).unwrap_or_default();
    found.retain(|(at, _)| {
        let is_before = |signature: &Signature| place.start + signature.range.end <= *at;
        !signatures.iter().any(is_before)
    });
    found
}

/// Every signature of `place`, read as a device of its own. Blocks of `block` bytes are named whole.
///
/// # Errors
/// The error of the system if the disk cannot be read.
pub fn find(disk: &dyn Disk, place: &Range<u64>, block: u64) -> io::Result<Vec<Signature>> {
    let mut search = Search {
        disk,
        place,
        block,
        found: Vec::new(),
    };
    for (name, at, magic) in known::KNOWN {
        let start = match at {
            At::Start(start) => Some(*start),
            At::End(unit, back) => search.before_end(*unit, *back),
        };
        search.look(name, start, magic)?;
    }
    search.swap()?;
    search.ufs()?;
    search.promise()?;
    search.zfs()?;
    search.found.sort_by_key(|signature| signature.range.start);
    Ok(search.found)
}

struct Search<'a> {
    disk: &'a dyn Disk,
    place: &'a Range<u64>,
    block: u64,
    found: Vec<Signature>,
}

impl Search<'_> {
    fn len(&self) -> u64 {
        self.place.end - self.place.start
    }

    fn before_end(&self, unit: u64, back: u64) -> Option<u64> {
        (self.len() - self.len() % unit).checked_sub(back)
    }

    /// The available part of these bytes; empty beyond the end.
    fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let end = at.checked_add(len as u64).filter(|end| *end <= self.len());
        if end.is_none() {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; len];
        self.disk.read_at(self.place.start + at, &mut bytes)?;
        Ok(bytes)
    }

    fn look(&mut self, name: &'static str, at: Option<u64>, magic: &[u8]) -> io::Result<()> {
        let Some(at) = at else { return Ok(()) };
        if self.read(at, magic.len())? == magic {
            self.add(name, at..at + magic.len() as u64);
        }
        Ok(())
    }

    /// Whole blocks; the last one of a place that is none ends with it.
    fn add(&mut self, name: &'static str, range: Range<u64>) {
        let start = range.start - range.start % self.block;
        let end = range.end.next_multiple_of(self.block).min(self.len());
        self.found.push(Signature {
            name,
            range: start..end,
        });
    }

    fn swap(&mut self) -> io::Result<()> {
        for page in known::PAGES {
            for magic in known::SWAP {
                self.look("swap", Some(page - 10), magic)?;
            }
        }
        Ok(())
    }

    fn ufs(&mut self) -> io::Result<()> {
        for start in known::UFS_AT {
            for magic in known::UFS {
                for bytes in [magic.to_le_bytes(), magic.to_be_bytes()] {
                    self.look("ufs", Some(start + known::UFS_MAGIC), &bytes)?;
                }
            }
        }
        Ok(())
    }

    fn promise(&mut self) -> io::Result<()> {
        for sectors in known::PROMISE_SECTORS {
            self.look(
                "Promise RAID",
                self.before_end(512, sectors * 512),
                known::PROMISE,
            )?;
        }
        Ok(())
    }

    /// The list and the ring of each label are hidden whole: a pool is found by either.
    fn zfs(&mut self) -> io::Result<()> {
        let label = known::ZFS_LABEL;
        let last = [2, 1].map(|back| self.before_end(label, back * label));
        for start in [Some(0), Some(label)].into_iter().chain(last).flatten() {
            if self.is_zfs(start)? {
                self.add("zfs", start + known::ZFS_LIST..start + label);
            }
        }
        Ok(())
    }

    fn is_zfs(&self, label: u64) -> io::Result<bool> {
        let list = self.read(label + known::ZFS_LIST, 4096)?;
        if list
            .windows(known::ZFS_NAME.len())
            .any(|window| window == known::ZFS_NAME)
        {
            return Ok(true);
        }
        let ring = self.read(label + known::ZFS_RING, known::ZFS_RING as usize)?;
        Ok(ring
            .chunks(1024)
            .any(|slot| known::ZFS_MAGIC.iter().any(|magic| slot.starts_with(magic))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(len: usize, marks: &[(usize, &[u8])]) -> Vec<u8> {
        let mut image = vec![0; len];
        for (at, bytes) in marks {
            image[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        image
    }

    #[test]
    fn copies_are_found_and_named_in_whole_blocks() {
        let mib = 1 << 20;
        let end = 16 * mib - 65_536;
        let image = image(
            16 * mib,
            &[
                (1080, b"\x53\xef"),
                (end, b"\xfc\x4e\x2b\xa9"),
                (16_384, b"SKUL\xba\xbe"),
            ],
        );
        let found = find(&image, &(0..16 << 20), 4096).expect("memory");
        let found: Vec<_> = found
            .iter()
            .map(|s| (s.name, s.range.start, s.range.end))
            .collect();
        let end = end as u64;
        assert_eq!(
            found,
            [
                ("ext", 0, 4096),
                ("LUKS", 16_384, 20_480),
                ("md 0.90", end, end + 4096)
            ]
        );
    }

    #[test]
    fn an_empty_device_has_none_and_a_short_one_is_no_error() {
        for len in [0, 1, 512, 4096, 1 << 20] {
            assert_eq!(
                find(&vec![0; len], &(0..len as u64), 512).expect("memory"),
                []
            );
        }
    }

    /// The deciding signature is hidden first, and comes back last.
    #[test]
    fn an_empty_first_block_is_the_last_one() {
        for (at, magic, expected) in [
            (1080, &b"\x53\xef"[..], vec![(1024, 1536), (0, 512)]),
            (0, b"XFSB", vec![(0, 512)]),
            // They touch, and are written as one.
            (512 + 24, b"LVM2 001", vec![(0, 1024)]),
        ] {
            let image = image(1 << 20, &[(at, magic)]);
            let survey = survey(&image, &(0..512 << 10), &(4096..516 << 10), 512).expect("memory");
            let found: Vec<_> = survey
                .signatures
                .iter()
                .map(|range| (range.start, range.end))
                .collect();
            assert_eq!(found, expected);
        }
    }

    /// An old file system in the free space before a partition, where an entry over both places would begin.
    #[test]
    fn signatures_that_a_move_would_expose_are_found() {
        let image = image(
            1 << 20,
            &[(40 * 512 + 1080, b"\x53\xef"), (80 * 512, b"XFSB")],
        );
        let (old, new) = (80 * 512..400 * 512, 40 * 512..360 * 512);
        let survey = survey(&image, &old, &new, 512).expect("memory");
        assert_eq!(survey.names, ["xfs"]);
        assert_eq!(survey.signatures.len(), 1);
        assert_eq!(survey.signatures[0], 0..512);
        assert_eq!(survey.strays.len(), 1);
        assert_eq!(survey.strays[0], 42 * 512..43 * 512);
    }

    fn marker(path: &str) -> Marker {
        Marker {
            journal: crate::moving::JournalId([7; 16]),
            path: path.to_owned(),
        }
    }

    /// Markers at each place of a signature are found; elsewhere, and behind an intact signature, they are not.
    #[test]
    fn markers_are_found_at_the_places_of_a_move() {
        let mib = 1_usize << 20;
        let sector = marker("/j").encode();
        let place = (mib as u64)..(9 * mib) as u64;
        let found = |marks: &[(usize, &[u8])]| -> Vec<u64> {
            let mut disk = image(16 * mib, &[]);
            for (at, bytes) in marks {
                disk[mib + at..mib + at + bytes.len()].copy_from_slice(bytes);
            }
            let markers = markers(&disk, &place, 512);
            markers.iter().map(|(at, _)| at - mib as u64).collect()
        };
        for (_, at, magic) in known::KNOWN {
            let len = 8 * mib as u64;
            let at = match at {
                At::Start(start) => *start,
                At::End(unit, back) => len - len % unit - back,
            };
            if at + magic.len() as u64 <= len {
                let start = at - at % 512;
                assert_eq!(found(&[(start as usize, &sector)]), [start], "{at}");
            }
        }
        assert_eq!(
            found(&[(5 * 512, &sector), (8 * mib - 2048, &sector)]),
            [] as [u64; 0]
        );
        // The last sector of the partition, with an intact ext superblock, and with one behind it.
        let end = 8 * mib - 512;
        assert_eq!(found(&[(end, &sector)]), [end as u64]);
        assert_eq!(
            found(&[(1080, b"\x53\xef"), (end, &sector)]),
            [] as [u64; 0]
        );
        assert_eq!(found(&[(1080, b"\x53\xef"), (0, &sector)]), [0]);
    }
}
