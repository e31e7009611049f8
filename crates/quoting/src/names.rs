//! The names that tools take. A name that its tool refuses, or understands as something else, gets no command.

/// A kind of names.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The thing with the name, as a sentence calls it.
    pub what: &'static str,
    /// The names that there may be, in words.
    pub expected: &'static str,
    is_one: fn(&str) -> bool,
}

impl Names {
    /// A kind that no name is of, for the reason of a refusal.
    pub(crate) const fn none(what: &'static str, expected: &'static str) -> Names {
        Names {
            what,
            expected,
            is_one: |_| false,
        }
    }

    /// Whether the tool takes a name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        !name.is_empty() && !name.starts_with('-') && (self.is_one)(name)
    }
}

/// Volume groups of LVM (lvm(8), "VALID NAMES"); a name that begins with `@` would be a tag.
pub const LVM: Names = Names {
    what: "a volume group of LVM",
    expected: "letters, digits and + _ . -",
    is_one: |name| is_made_of(name, "+_.-") && !matches!(name, "." | ".."),
};

/// Pools, file systems and volumes of ZFS (zfs(8): components of letters, digits and `-_.: `, which begin with a letter in
/// a pool).
pub const ZFS: Names = Names {
    what: "a pool or data set of ZFS",
    expected: "a letter first, then letters, digits, blanks and - _ . : /",
    is_one: |name| {
        let is_component = |part: &str| !part.is_empty() && is_made_of(part, "-_.: ");
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.split('/').all(is_component)
    },
};

/// Volumes, slices and disks as the tools of Solaris Volume Manager take them: `d10`, `set/d10`, `c1t0d0s0`, and paths of
/// these.
pub const SVM: Names = Names {
    what: "a volume or slice for Solaris Volume Manager",
    expected: "letters, digits and _ - . /",
    is_one: |name| is_made_of(name, "_-./"),
};

/// Disks as `format` and the nodes in `/dev/rdsk` name them: `c1t0d0`, `emcpower0`.
pub const SOLARIS_DISK: Names = Names {
    what: "a disk of Solaris",
    expected: "a name such as c1t0d0: a letter, then letters and digits",
    is_one: |name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && is_made_of(name, "")
    },
};

/// Block devices as `/sys/block` names them, where each is one part of a path.
pub const KERNEL_DEVICE: Names = Names {
    what: "a block device of Linux",
    expected: "one part of a path, as in /sys/block",
    is_one: |name| !name.contains('/') && !matches!(name, "." | ".."),
};

fn is_made_of(name: &str, others: &str) -> bool {
    name.chars()
        .all(|letter| letter.is_ascii_alphanumeric() || others.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_take_some_names_and_not_others() {
        for (names, taken, refused) in [
            (LVM, ["vg0", "a+b_c.d-e"], ["@tag", "..", "a b", "-vg", ""]),
            (
                ZFS,
                ["tank", "tank/db 1:x.y-z"],
                ["1tank", "tank//db", "-t", "t;x", ""],
            ),
            (
                SVM,
                ["d10", "/dev/md/rdsk/d1"],
                ["-r", "d1 d2", "d$x", "d'", ""],
            ),
            (
                SOLARIS_DISK,
                ["c1t0d0", "c0t5000CCA0d0"],
                ["c 1", "../c1", "-d", "0c", ""],
            ),
            (
                KERNEL_DEVICE,
                ["sda", "cciss!c0 d0;"],
                ["..", ".", "a/b", "-a", ""],
            ),
        ] {
            for name in taken {
                assert!(names.has(name), "{} {name}", names.what);
            }
            for name in refused {
                assert!(!names.has(name), "{} {name}", names.what);
            }
        }
    }
}
