//! Names of Solaris devices: `c1t0d0` is a disk, `c1t0d0s3` its slice 3, `c1t0d0p1` an fdisk partition.

use crate::builder::Builder;
use crate::grid::Source;
use crate::node::keys;

/// Longest name of a device: far more than any system allows. It bounds text that repeats a name on every line.
pub(super) const NAME_MAX: usize = 255;

/// Notes that the host runs Solaris.
pub(super) fn on_solaris(builder: &mut Builder, source: &Source) {
    let host = builder.host();
    builder.fact(host, keys::SYSTEM, "solaris", source);
}

/// A slice or fdisk partition by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceName<'a> {
    /// The disk.
    pub(super) disk: &'a str,
    /// Number behind the `s` or `p`.
    pub(super) number: u32,
    /// An fdisk partition; number 0 is the whole disk.
    pub(super) is_fdisk: bool,
}

/// Takes a name without its directories apart, if it is a slice's.
pub(super) fn slice_name(name: &str) -> Option<SliceName<'_>> {
    let at = name.rfind(['s', 'p'])?;
    let (disk, suffix) = (&name[..at], &name[at + 1..]);
    let is_number = !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit());
    let number = suffix.parse().ok().filter(|_| is_number)?;
    is_disk(disk).then(|| SliceName {
        disk,
        number,
        is_fdisk: name.as_bytes()[at] == b'p',
    })
}

/// Whether a name without its directories is a disk's: controller, target unless the bus has none, and unit; or the
/// number of a cluster's shared disk.
pub(super) fn is_disk(name: &str) -> bool {
    if name.len() > NAME_MAX {
        return false;
    }
    let shared = name
        .strip_prefix("did/rdsk/")
        .or_else(|| name.strip_prefix("did/dsk/"));
    match shared {
        Some(name) => name
            .strip_prefix('d')
            .is_some_and(|rest| digits(rest) == rest.len() && !rest.is_empty()),
        None => disk_len(name) == Some(name.len()),
    }
}

/// The disk of a device: itself, or the disk of the slice.
pub(super) fn disk_of(name: &str) -> Option<&str> {
    slice_name(name)
        .map(|slice| slice.disk)
        .or_else(|| is_disk(name).then_some(name))
}

/// A disk's name somewhere in the name of a file.
pub(super) fn disk_in(text: &str) -> Option<&str> {
    text.match_indices('c').find_map(|(at, _)| {
        let len = disk_len(&text[at..])?;
        let is_word = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        is_word.then(|| &text[at..at + len])
    })
}

/// Length of the disk's name that a text begins with.
fn disk_len(text: &str) -> Option<usize> {
    let counted = |at: usize, count: usize| (count > 0).then_some(at + count);
    text.strip_prefix('c')?;
    let mut at = counted(1, digits(&text[1..]))?;
    if text[at..].starts_with('t') {
        let is_target = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
        at = counted(
            at + 1,
            text.as_bytes()[at + 1..]
                .iter()
                .take_while(|byte| is_target(byte))
                .count(),
        )?;
    }
    text[at..].strip_prefix('d')?;
    counted(at + 1, digits(&text[at + 1..]))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_disks() {
        let slice = |disk, number| {
            Some(SliceName {
                disk,
                number,
                is_fdisk: false,
            })
        };
        assert_eq!(slice_name("c1t0d0s3"), slice("c1t0d0", 3));
        assert_eq!(
            slice_name("c2t5005076300CB0B15d0s0"),
            slice("c2t5005076300CB0B15d0", 0)
        );
        assert_eq!(slice_name("c0d1s12"), slice("c0d1", 12));
        assert_eq!(
            slice_name("c2t0d0p0").map(|slice| slice.is_fdisk),
            Some(true)
        );
        assert_eq!(slice_name("did/rdsk/d3s0"), slice("did/rdsk/d3", 0));
        for other in [
            "d57",
            "c1t0d0",
            "c1t0d0s",
            "c1t0s0",
            "ct0d0s0",
            "hsp001",
            "s",
            "",
            "c1t0d0s+1",
            "d3s0",
        ] {
            assert_eq!(slice_name(other), None, "{other}");
        }
        assert!(is_disk("c3t10d0") && is_disk("c0d0") && !is_disk("c3t10d0s2") && !is_disk("d3"));
    }

    #[test]
    fn disks_in_names_of_files() {
        assert_eq!(disk_in("prtvtoc_efi_c2t0d0p0.txt"), Some("c2t0d0"));
        assert_eq!(disk_in("host-c10t50A1d3s2.out"), Some("c10t50A1d3"));
        assert_eq!(disk_in("format_print_smi.txt"), None);
        assert_eq!(disk_in("abc1t0d0"), None);
    }
}
