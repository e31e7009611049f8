//! GUIDs as a GPT stores them: the first three fields little-endian, the rest as written.

use std::fmt;
use std::str::FromStr;

/// A GUID in the order of its bytes on disk.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

/// Place on disk of each byte that the text shows, from left to right.
const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

impl Guid {
    /// All bytes 0: the type of an entry that is not in use.
    pub const NIL: Self = Self([0; 16]);

    /// From its written form's 128 bits: `0x0fc63daf_8483_4772_8e79_3d69d8477de4`.
    #[must_use]
    pub const fn from_u128(written: u128) -> Self {
        let shown = written.to_be_bytes();
        let mut stored = [0; 16];
        let mut at = 0;
        while at < 16 {
            stored[ORDER[at]] = shown[at];
            at += 1;
        }
        Self(stored)
    }

    /// Whether all bytes are 0.
    #[must_use]
    pub fn is_nil(self) -> bool {
        self == Self::NIL
    }
}

impl fmt::Display for Guid {
    /// In small letters, as `/dev/disk/by-partuuid` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, &stored) in ORDER.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{:02x}", self.0[stored])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no GUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "found `{found}`, expected a GUID of 32 hexadecimal digits such as 0fc63daf-8483-4772-8e79-3d69d8477de4"
)]
pub struct GuidError {
    /// The text found.
    pub found: String,
}

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Self, GuidError> {
        let error = || GuidError {
            found: text.to_owned(),
        };
        let groups: Vec<&str> = text.split('-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let digits = groups.concat();
        if lengths != [8, 4, 4, 4, 12] || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(error());
        }
        u128::from_str_radix(&digits, 16)
            .map(Self::from_u128)
            .map_err(|_| error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the EFI system partition's type in the UEFI specification, table of defined GUIDs, and as disks
    /// have them.
    #[test]
    fn the_first_three_fields_are_little_endian() {
        let stored = [
            0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0, 0xa0, 0xc9, 0x3e, 0xc9,
            0x3b,
        ];
        let written = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
        assert_eq!(Guid(stored).to_string(), written);
        assert_eq!(written.to_uppercase().parse(), Ok(Guid(stored)));
        assert_eq!(
            Guid::from_u128(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b),
            Guid(stored)
        );
    }

    #[test]
    fn a_text_of_other_shape_is_refused() {
        for text in [
            "",
            "c12a7328",
            "c12a7328-f81f-11d2-ba4b-00a0c93ec93",
            "+12a7328-f81f-11d2-ba4b-00a0c93ec93b",
        ] {
            assert!(text.parse::<Guid>().is_err(), "{text}");
        }
    }
}
