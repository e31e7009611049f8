//! The drive's data about itself: the structures of Identify, by the figures of the NVM Express base and NVM command
//! set specifications.

use super::TargetError;
use super::pdu::{CAPSULE_DATA_BYTES_MAX, COMMAND_BYTES};

/// Length of every structure of Identify.
pub const IDENTIFY_BYTES: usize = 4096;
/// MDTS as a power of two of 4 KiB: commands move 128 KiB at most.
const TRANSFER_SHIFT_MAX: u8 = 5;
/// No command moves more.
pub const TRANSFER_BYTES_MAX: u32 = 4096 << TRANSFER_SHIFT_MAX;
/// NSFEAT, bit 4: NPWG, NPWA, NPDG, NPDA and NOWS are defined.
const OPTIMAL_PERFORMANCE: u8 = 1 << 4;
/// NSFEAT, bit 1: NAWUPF is defined.
const ATOMIC_OF_NAMESPACE: u8 = 1 << 1;
/// VS: 1.4, the first version with NPWG and NPWA.
pub const VERSION: u32 = 0x0001_0400;

/// A drive of one namespace. Fields with names of the specification have its raw values: counts of logical blocks,
/// counted from 0 if it counts so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Length of a logical block in bytes: 512 or 4,096.
    pub lba_bytes: u32,
    /// NSZE: length in logical blocks.
    pub nsze: u64,
    /// Whether NSFEAT says that NPWG, NPWA, NPDG, NPDA and NOWS mean something.
    pub optperf: bool,
    /// Preferred write granularity, from 0.
    pub npwg: u16,
    /// Preferred write alignment, from 0.
    pub npwa: u16,
    /// Preferred deallocate granularity, from 0.
    pub npdg: u16,
    /// Preferred deallocate alignment, from 0.
    pub npda: u16,
    /// Optimal write size, from 0.
    pub nows: u16,
    /// Optimal I/O boundary; 0 for none.
    pub noiob: u16,
    /// The atomic write size of the controller at a power failure, from 0.
    pub awupf: u16,
    /// The same for the namespace; `None` where it is not reported.
    pub nawupf: Option<u16>,
    /// MN, 40 characters at most.
    pub model: String,
    /// SN, 20 characters at most.
    pub serial: String,
}

impl Default for Drive {
    /// 64 MiB in blocks of 512 bytes, without further statements.
    fn default() -> Self {
        Drive {
            lba_bytes: 512,
            nsze: 131_072,
            optperf: false,
            npwg: 0,
            npwa: 0,
            npdg: 0,
            npda: 0,
            nows: 0,
            noiob: 0,
            awupf: 0,
            nawupf: None,
            model: "Plumb testkit".to_owned(),
            serial: "1".to_owned(),
        }
    }
}

impl Drive {
    /// Takes `name=value`, with the names of the fields; `lba` is the length of a block, `optperf` 0 or 1.
    ///
    /// # Errors
    /// When there is no such field, or it cannot have that value.
    pub fn set(&mut self, assignment: &str) -> Result<(), TargetError> {
        let wrong = || TargetError::Field {
            assignment: assignment.to_owned(),
        };
        let (name, value) = assignment.split_once('=').ok_or_else(wrong)?;
        let number = || value.parse::<u16>().map_err(|_| wrong());
        match name {
            "lba" => {
                self.lba_bytes = number()?.into();
                if ![512, 4096].contains(&self.lba_bytes) {
                    return Err(wrong());
                }
            }
            "nsze" => {
                self.nsze = value
                    .parse()
                    .ok()
                    .filter(|blocks| *blocks > 0)
                    .ok_or_else(wrong)?
            }
            "optperf" => self.optperf = value == "1",
            "npwg" => self.npwg = number()?,
            "npwa" => self.npwa = number()?,
            "npdg" => self.npdg = number()?,
            "npda" => self.npda = number()?,
            "nows" => self.nows = number()?,
            "noiob" => self.noiob = number()?,
            "awupf" => self.awupf = number()?,
            "nawupf" => self.nawupf = Some(number()?),
            "model" if value.is_ascii() && value.len() <= 40 => self.model = value.to_owned(),
            "serial" if value.is_ascii() && value.len() <= 20 => self.serial = value.to_owned(),
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// Identify Controller (CNS 01h), for the subsystem of that name.
    #[must_use]
    pub fn identify_controller(&self, controller_id: u16, subsystem: &str) -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        put_text(&mut bytes[4..24], &self.serial);
        put_text(&mut bytes[24..64], &self.model);
        put_text(&mut bytes[64..72], env!("CARGO_PKG_VERSION"));
        bytes[77] = TRANSFER_SHIFT_MAX;
        put(&mut bytes, 78, &controller_id.to_le_bytes());
        put(&mut bytes, 80, &VERSION.to_le_bytes());
        bytes[111] = 1; // CNTRLTYPE: I/O
        put(&mut bytes, 320, &100_u16.to_le_bytes()); // KAS: 10 s; a host over a network asks for some
        bytes[512] = 0x66; // SQES: 64 bytes
        bytes[513] = 0x44; // CQES: 16 bytes
        put(&mut bytes, 514, &super::QUEUE_ENTRIES.to_le_bytes()); // MAXCMD
        put(&mut bytes, 516, &1_u32.to_le_bytes()); // NN
        put(&mut bytes, 528, &self.awupf.to_le_bytes());
        put(&mut bytes, 536, &(1_u32 | 1 << 20).to_le_bytes()); // SGLS: supported, also as offset in a capsule
        put(&mut bytes, 768, subsystem.as_bytes());
        let capsule = (COMMAND_BYTES as u32 + CAPSULE_DATA_BYTES_MAX) / 16;
        put(&mut bytes, 1792, &capsule.to_le_bytes()); // IOCCSZ
        put(&mut bytes, 1796, &1_u32.to_le_bytes()); // IORCSZ: 16 bytes
        bytes[1803] = 1; // MSDBD
        bytes
    }

    /// Identify Namespace (CNS 00h).
    #[must_use]
    pub fn identify_namespace(&self) -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        for at in [0, 8, 16] {
            put(&mut bytes, at, &self.nsze.to_le_bytes()); // NSZE, NCAP, NUSE
        }
        let performance = if self.optperf { OPTIMAL_PERFORMANCE } else { 0 };
        bytes[24] = performance
            | if self.nawupf.is_some() {
                ATOMIC_OF_NAMESPACE
            } else {
                0
            };
        for (at, value) in [
            (36, self.nawupf.unwrap_or(0)),
            (46, self.noiob),
            (64, self.npwg),
            (66, self.npwa),
            (68, self.npdg),
            (70, self.npda),
            (72, self.nows),
        ] {
            put(&mut bytes, at, &value.to_le_bytes());
        }
        // One format, which FLBAS (0) names.
        bytes[130] = self.lba_bytes.trailing_zeros() as u8;
        bytes
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// ASCII, filled up with blanks.
fn put_text(field: &mut [u8], text: &str) {
    field.fill(b' ');
    put(field, 0, text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(fields: &[&str]) -> Drive {
        let mut drive = Drive::default();
        for field in fields {
            drive.set(field).expect("a field");
        }
        drive
    }

    #[test]
    fn fields_are_at_the_offsets_of_the_specification() {
        let drive = drive(&[
            "lba=4096",
            "nsze=258",
            "optperf=1",
            "npwg=7",
            "npwa=1",
            "npdg=255",
            "npda=256",
            "nows=31",
            "noiob=32",
            "nawupf=3",
            "awupf=5",
        ]);
        let namespace = drive.identify_namespace();
        assert_eq!(namespace[..8], [2, 1, 0, 0, 0, 0, 0, 0], "NSZE");
        assert_eq!(namespace[24], 0b1_0010, "NSFEAT");
        assert_eq!(namespace[36], 3, "NAWUPF");
        assert_eq!(namespace[46], 32, "NOIOB");
        assert_eq!(
            namespace[64..74],
            [7, 0, 1, 0, 255, 0, 0, 1, 31, 0],
            "NPWG to NOWS"
        );
        assert_eq!(
            namespace[128..132],
            [0, 0, 12, 0],
            "LBAF 0: blocks of 2^12, no metadata"
        );
        let controller = drive.identify_controller(9, "nqn.2014-08.example:a");
        assert_eq!(controller[528], 5, "AWUPF");
        assert_eq!(controller[78..80], [9, 0], "CNTLID");
        assert_eq!(&controller[24..40], b"Plumb testkit   ", "MN");
        assert_eq!(
            controller[1792..1796],
            [0x04, 0x02, 0, 0],
            "IOCCSZ: 64 bytes and 8 KiB in units of 16 are 516"
        );
    }

    #[test]
    fn unreported_fields_have_no_flag() {
        assert_eq!(drive(&[]).identify_namespace()[24], 0);
        assert_eq!(drive(&["optperf=1"]).identify_namespace()[24], 0x10);
    }

    #[test]
    fn fields_that_cannot_be() {
        for wrong in [
            "npwg",
            "npwg=",
            "npwg=65536",
            "lba=520",
            "nsze=0",
            "colour=1",
            "model=ä",
        ] {
            let error = Drive::default().set(wrong).expect_err(wrong).to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
