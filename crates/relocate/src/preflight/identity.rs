//! The identity of a disk, in the words that the journal keeps.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use plumb_label::Label;
use plumb_sys::DirectDisk;

use super::evidence::NotThisDisk;

/// Names this boot of the kernel.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of a disk, as kept in the journal: its node, its identity, and its label; and the owner of the
/// partition's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskWords {
    /// The node, when the move began.
    pub path: String,
    /// World Wide Name, serial number or the like; empty where it has none.
    pub identity: String,
    /// Identity of its label; empty where it cannot be read.
    pub label: String,
    /// User, group and mode of the partition's node, when the move began.
    pub ownership: Option<Ownership>,
    /// The boot and the kernel's number of the disk in it, when the move began.
    pub attachment: Option<Attachment>,
}

/// A disk as the kernel numbered it: within one boot no other disk gets the number, under any node name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    boot: String,
    sequence: u64,
}

impl Attachment {
    /// Asks the kernel; `None` of images, and on kernels before 5.15.
    #[must_use]
    pub fn of_disk(disk: &DirectDisk) -> Option<Attachment> {
        let boot = std::fs::read_to_string(BOOT).ok()?;
        Some(Attachment {
            boot: boot.trim().to_owned(),
            sequence: disk.sequence()?,
        })
    }

    fn parse(text: &str) -> Option<Attachment> {
        let (boot, sequence) = text.split_once(' ')?;
        Some(Attachment {
            boot: boot.to_owned(),
            sequence: sequence.parse().ok()?,
        })
    }

    /// Whether both are of one boot, and are not the same disk.
    fn contradicts(&self, other: &Attachment) -> bool {
        self.boot == other.boot && self.sequence != other.sequence
    }
}

impl DiskWords {
    /// The present identity of a disk; `label` is the readable one on it.
    #[must_use]
    pub fn of_disk(
        path: String,
        identity: String,
        label: Option<&Label>,
        attachment: Option<Attachment>,
    ) -> DiskWords {
        DiskWords {
            path,
            identity,
            label: label.and_then(|label| label.id.clone()).unwrap_or_default(),
            ownership: None,
            attachment,
        }
    }

    /// As one text: a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let plain = |text: &str| text.replace(['\n', '\r'], " ");
        let ownership = self
            .ownership
            .as_ref()
            .map(Ownership::to_string)
            .unwrap_or_default();
        let attachment = self.attachment.as_ref();
        let attachment = attachment
            .map(|found| format!("{} {}", found.boot, found.sequence))
            .unwrap_or_default();
        format!(
            "{}\n{}\n{}\n{ownership}\n{attachment}",
            plain(&self.path),
            plain(&self.identity),
            plain(&self.label)
        )
    }

    /// Takes the text apart.
    #[must_use]
    pub fn parse(text: &str) -> DiskWords {
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let (path, identity, label) = (next(), next(), next());
        DiskWords {
            path,
            identity,
            label,
            ownership: Ownership::parse(&next()),
            attachment: Attachment::parse(&next()),
        }
    }

    /// Whether both state the same identity.
    #[must_use]
    pub fn has_identity_of(&self, other: &DiskWords) -> bool {
        !self.identity.is_empty() && self.identity == other.identity
    }

    /// Whether both are one disk of this boot, or at least have the same name if the kernel does not know better.
    #[must_use]
    pub fn is_attached_as(&self, other: &DiskWords) -> bool {
        match (&self.attachment, &other.attachment) {
            (Some(is), Some(was)) if is == was => true,
            (Some(is), Some(was)) if is.contradicts(was) => false,
            _ => self.path == other.path,
        }
    }

    /// Whether both have labels of the same identity.
    #[must_use]
    pub fn has_label_of(&self, other: &DiskWords) -> bool {
        !self.label.is_empty() && self.label == other.label
    }

    /// Whether `found` can be that disk: no fact that both have may differ. A torn label is ignored, and a fact that
    /// both lack proves nothing.
    ///
    /// # Errors
    /// The difference.
    pub fn must_be(&self, found: &DiskWords) -> Result<(), NotThisDisk> {
        let pairs = [
            (&found.identity, &self.identity),
            (&found.label, &self.label),
        ];
        match pairs
            .into_iter()
            .find(|(is, was)| !is.is_empty() && !was.is_empty() && is != was)
        {
            Some((is, was)) => Err(NotThisDisk::OtherDisk {
                device: found.path.clone(),
                found: is.clone(),
                expected: was.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// User, group and mode of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// User.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Permissions, with the bits of set-user, set-group and sticky.
    pub mode: u32,
}

impl Ownership {
    /// Reads owner, group and mode of a node; `None` if there is no node.
    #[must_use]
    pub fn read(node: &Path) -> Option<Ownership> {
        let found = std::fs::metadata(node).ok()?;
        Some(Ownership {
            user: found.uid(),
            group: found.gid(),
            mode: found.mode() & 0o7777,
        })
    }

    /// Parses the output of `Display`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Ownership> {
        let mut words = text.split(' ');
        let (user, group, mode) = (words.next()?.parse(), words.next()?.parse(), words.next()?);
        let mode = u32::from_str_radix(mode, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777);
        Some(Ownership {
            user: user.ok()?,
            group: group.ok()?,
            mode: mode?,
        })
    }
}

impl fmt::Display for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:o}", self.user, self.group, self.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_disk_is_detected() {
        let was = DiskWords {
            path: "/dev/sdb".into(),
            identity: "naa.5".into(),
            label: "guid".into(),
            ownership: Ownership::parse("1 2 640"),
            attachment: Attachment::parse("boot 7"),
        };
        assert_eq!(DiskWords::parse(&was.text()), was);
        let with = |identity: &str, label: &str| DiskWords {
            path: "/dev/sdc".into(),
            identity: identity.into(),
            label: label.into(),
            ownership: None,
            attachment: None,
        };
        for (found, is_it) in [
            (with("naa.5", "guid"), true),
            (with("naa.5", ""), true),
            (with("", "guid"), true),
            (with("naa.6", "guid"), false),
            (with("naa.5", "other"), false),
        ] {
            assert_eq!(was.must_be(&found).is_ok(), is_it, "{found:?}");
        }
        let odd = DiskWords {
            path: "a\nb".into(),
            identity: String::new(),
            ..was
        };
        assert_eq!(DiskWords::parse(&odd.text()).label, "guid");
        assert_eq!(
            DiskWords::parse("/dev/sdb\nnaa.5\nguid").ownership,
            None,
            "journals of before have none"
        );
    }

    /// The kernel's number tells two disks of one name apart, and finds one under another name; that of another boot says
    /// nothing.
    #[test]
    fn a_number_of_the_kernel_goes_before_a_name() {
        let disk =
            |path: &str, attachment: &str| DiskWords::parse(&format!("{path}\n\n\n\n{attachment}"));
        let was = disk("/dev/sdb", "one 7");
        for (found, is_it) in [
            (disk("/dev/sdb", "one 7"), true),
            (disk("/dev/sdc", "one 7"), true),
            (disk("/dev/sdb", "one 8"), false),
            (disk("/dev/sdb", "two 8"), true),
            (disk("/dev/sdc", "two 7"), false),
            (disk("/dev/sdb", ""), true),
            (disk("/dev/sdc", ""), false),
        ] {
            assert_eq!(found.is_attached_as(&was), is_it, "{found:?}");
        }
    }

    #[test]
    fn an_ownership_is_kept_as_text() {
        let kept = Ownership {
            user: 12_345,
            group: 6,
            mode: 0o640,
        };
        assert_eq!(kept.to_string(), "12345 6 640");
        assert_eq!(Ownership::parse("12345 6 640"), Some(kept));
        for broken in ["", "1 2", "1 2 8", "1 2 100000", "x 2 640"] {
            assert_eq!(Ownership::parse(broken), None, "{broken}");
        }
    }
}
