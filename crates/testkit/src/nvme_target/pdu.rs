//! PDUs of NVMe/TCP, by the figures of the NVM Express TCP transport specification.
//!
//! Every PDU begins with eight bytes: type, flags, length of its header, offset of its data, length of it all (little
//! endian, as everything here). Left out: digests, and the padding of data that a host may ask for; a host that asks for
//! either is refused.

use std::io::{self, Read, Write};

use super::TargetError;

/// Length of the part that all PDUs share.
const COMMON_BYTES: usize = 8;
/// Length of a submission queue entry.
pub const COMMAND_BYTES: usize = 64;
/// Length of a completion queue entry.
pub const COMPLETION_BYTES: usize = 16;
/// No data PDU of the host is longer; the least that a controller may state is 4,096.
pub const HOST_DATA_BYTES_MAX: u32 = 64 << 10;
/// No command has more data inside its capsule: the maximum of Linux's host, on the admin queue.
pub const CAPSULE_DATA_BYTES_MAX: u32 = 8 << 10;

/// Types of PDU.
mod kind {
    pub(super) const IC_REQ: u8 = 0x00;
    pub(super) const IC_RESP: u8 = 0x01;
    pub(super) const H2C_TERM_REQ: u8 = 0x02;
    pub(super) const CAPSULE_CMD: u8 = 0x04;
    pub(super) const CAPSULE_RESP: u8 = 0x05;
    pub(super) const H2C_DATA: u8 = 0x06;
    pub(super) const C2H_DATA: u8 = 0x07;
    pub(super) const R2T: u8 = 0x09;
}

/// Flags: a header digest, a data digest.
const DIGESTS: u8 = 0x03;
/// Flag of a data PDU: no more follow for this command.
const LAST: u8 = 0x04;

/// Lengths of headers.
const IC_BYTES: u8 = 128;
const CAPSULE_CMD_BYTES: u8 = 72;
const DATA_BYTES: u8 = 24;

/// A message of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// ICReq: version of the format, the alignment of data that it wants, digests.
    InitConnection {
        /// PFV; 0 is the only one there is.
        version: u16,
        /// HPDA, in units of 4 bytes, counted from 0.
        data_alignment: u8,
        /// DGST: bit 0 header, bit 1 data.
        digests: u8,
    },
    /// CapsuleCmd.
    Command {
        /// The submission queue entry.
        entry: [u8; COMMAND_BYTES],
        /// Data inside the capsule; empty without any.
        data: Vec<u8>,
    },
    /// H2CData.
    Data {
        /// CCCID: the command that it belongs to.
        command_id: u16,
        /// TTAG, as the R2T had it.
        tag: u16,
        /// DATAO: its place in the data of the command.
        offset: u32,
        /// The data.
        data: Vec<u8>,
    },
    /// H2CTermReq: the host gives up.
    Terminate {
        /// FES: why.
        status: u16,
    },
}

/// Reads the next PDU; `None` when the host closed the connection between two of them.
///
/// # Errors
/// When reading fails, or for a PDU that the specification does not allow.
pub fn read(from: &mut impl Read) -> Result<Option<FromHost>, TargetError> {
    let mut common = [0; COMMON_BYTES];
    if from.read(&mut common[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut common[1..])?;
    let [kind, flags, header, data_at, ..] = common;
    let (header, data_at) = (usize::from(header), usize::from(data_at));
    let total = u32_at(&common, 4) as usize;
    let (expected, data_max) = match kind {
        kind::IC_REQ => (IC_BYTES, 0),
        kind::CAPSULE_CMD => (CAPSULE_CMD_BYTES, CAPSULE_DATA_BYTES_MAX),
        kind::H2C_DATA => (DATA_BYTES, HOST_DATA_BYTES_MAX),
        // The header that was not understood comes along, at most 128 bytes of it.
        kind::H2C_TERM_REQ => (DATA_BYTES, 128),
        _ => return Err(TargetError::Type { kind }),
    };
    let wrong = |what, found: usize, expected: usize| {
        Err(TargetError::Header {
            kind,
            what,
            found,
            expected,
        })
    };
    if header != usize::from(expected) {
        return wrong("HLEN", header, usize::from(expected));
    }
    if total < header || total > header + data_max as usize {
        return wrong("PLEN", total, header);
    }
    // The host knows that no padding is wanted.
    if total > header && kind != kind::H2C_TERM_REQ && data_at != header {
        return wrong("PDO", data_at, header);
    }
    if flags & DIGESTS != 0 {
        return wrong("FLAGS", flags.into(), usize::from(flags & !DIGESTS));
    }
    let mut rest = vec![0; total - COMMON_BYTES];
    from.read_exact(&mut rest)?;
    let data = rest.split_off(header - COMMON_BYTES);
    Ok(Some(decoded(kind, &rest, data)?))
}

/// `header` follows the common part, with a checked length.
fn decoded(kind: u8, header: &[u8], data: Vec<u8>) -> Result<FromHost, TargetError> {
    Ok(match kind {
        kind::IC_REQ => FromHost::InitConnection {
            version: u16_at(header, 0),
            data_alignment: header[2],
            digests: header[3],
        },
        kind::CAPSULE_CMD => {
            let mut entry = [0; COMMAND_BYTES];
            entry.copy_from_slice(header);
            FromHost::Command { entry, data }
        }
        kind::H2C_DATA => {
            let stated = u32_at(header, 8) as usize;
            if stated != data.len() {
                return Err(TargetError::Header {
                    kind,
                    what: "DATAL",
                    found: stated,
                    expected: data.len(),
                });
            }
            FromHost::Data {
                command_id: u16_at(header, 0),
                tag: u16_at(header, 2),
                offset: u32_at(header, 4),
                data,
            }
        }
        _ => FromHost::Terminate {
            status: u16_at(header, 0),
        },
    })
}

/// ICResp: no digests, no padding, data of the host in pieces of [`HOST_DATA_BYTES_MAX`].
///
/// # Errors
/// When writing fails.
pub fn write_ic_response(to: &mut impl Write) -> io::Result<()> {
    let mut bytes = [0; IC_BYTES as usize];
    bytes[..COMMON_BYTES].copy_from_slice(&common(kind::IC_RESP, 0, IC_BYTES, 0));
    bytes[12..16].copy_from_slice(&HOST_DATA_BYTES_MAX.to_le_bytes());
    to.write_all(&bytes)
}

/// CapsuleResp.
///
/// # Errors
/// When writing fails.
pub fn write_response(to: &mut impl Write, completion: &[u8; COMPLETION_BYTES]) -> io::Result<()> {
    to.write_all(&common(
        kind::CAPSULE_RESP,
        0,
        COMMON_BYTES as u8 + COMPLETION_BYTES as u8,
        0,
    ))?;
    to.write_all(completion)
}

/// C2HData: all data of a command in one.
///
/// # Errors
/// When writing fails.
pub fn write_data(to: &mut impl Write, command_id: u16, data: &[u8]) -> io::Result<()> {
    let len = u32::try_from(data.len()).map_err(io::Error::other)?;
    to.write_all(&common(kind::C2H_DATA, LAST, DATA_BYTES, len))?;
    to.write_all(&specific(command_id, 0, 0, len))?;
    to.write_all(data)
}

/// R2T: asks for a number of bytes of the data of a command, from its first on.
///
/// # Errors
/// When writing fails.
pub fn write_ready(to: &mut impl Write, command_id: u16, tag: u16, len: u32) -> io::Result<()> {
    to.write_all(&common(kind::R2T, 0, DATA_BYTES, 0))?;
    to.write_all(&specific(command_id, tag, 0, len))
}

/// The part that all PDUs share; data, where there are any, follow the header.
fn common(kind: u8, flags: u8, header: u8, data_len: u32) -> [u8; COMMON_BYTES] {
    let total = (u32::from(header) + data_len).to_le_bytes();
    let data_at = if data_len > 0 { header } else { 0 };
    [
        kind, flags, header, data_at, total[0], total[1], total[2], total[3],
    ]
}

/// The part after the common one in data PDUs and in R2T.
fn specific(command_id: u16, tag: u16, offset: u32, len: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&command_id.to_le_bytes());
    bytes[2..4].copy_from_slice(&tag.to_le_bytes());
    bytes[4..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..12].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// A field within a structure whose length was checked.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The same of four bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDU of the host, byte by byte.
    fn pdu(common: [u8; 8], specific: &[u8], header: usize, data: &[u8]) -> Vec<u8> {
        let mut bytes = common.to_vec();
        bytes.extend(specific);
        bytes.resize(header, 0);
        bytes.extend(data);
        bytes
    }

    fn one(bytes: &[u8]) -> Result<Option<FromHost>, TargetError> {
        let mut from = bytes;
        let pdu = read(&mut from)?;
        assert!(from.is_empty(), "{} bytes left", from.len());
        Ok(pdu)
    }

    #[test]
    fn commands_of_a_host() {
        let request = pdu(
            [0, 0, 128, 0, 128, 0, 0, 0],
            &[0, 0, 3, 2, 7, 0, 0, 0],
            128,
            &[],
        );
        let expected = FromHost::InitConnection {
            version: 0,
            data_alignment: 3,
            digests: 2,
        };
        assert_eq!(one(&request).expect("a PDU"), Some(expected));
        // CapsuleCmd of 72 bytes and 4 of data: PDO 72, PLEN 76.
        let command = pdu(
            [4, 0, 72, 72, 76, 0, 0, 0],
            &[0x7f, 0x40, 0x34, 0x12],
            72,
            b"data",
        );
        let mut entry = [0; 64];
        entry[..4].copy_from_slice(&[0x7f, 0x40, 0x34, 0x12]);
        assert_eq!(
            one(&command).expect("a PDU"),
            Some(FromHost::Command {
                entry,
                data: b"data".to_vec()
            })
        );
        // H2CData: CCCID 5, TTAG 6, DATAO 0x1000, DATAL 3.
        let specific = [5, 0, 6, 0, 0, 0x10, 0, 0, 3, 0, 0, 0];
        let data = pdu([6, 4, 24, 24, 27, 0, 0, 0], &specific, 24, b"abc");
        let expected = FromHost::Data {
            command_id: 5,
            tag: 6,
            offset: 0x1000,
            data: b"abc".to_vec(),
        };
        assert_eq!(one(&data).expect("a PDU"), Some(expected));
        let end = pdu([2, 0, 24, 0, 32, 0, 0, 0], &[1, 0, 4, 0, 0, 0], 24, &[0; 8]);
        assert_eq!(
            one(&end).expect("a PDU"),
            Some(FromHost::Terminate { status: 1 })
        );
        assert_eq!(one(&[]).expect("the end"), None);
    }

    #[test]
    fn invalid_commands_are_rejected() {
        for (bytes, what) in [
            (pdu([8, 0, 24, 0, 24, 0, 0, 0], &[], 24, &[]), "type 0x08"),
            (pdu([4, 0, 64, 0, 64, 0, 0, 0], &[], 64, &[]), "HLEN of 64"),
            (pdu([4, 0, 72, 0, 71, 0, 0, 0], &[], 72, &[]), "PLEN of 71"),
            // 4 GiB less a byte must not be allocated.
            (
                pdu([6, 0, 24, 24, 255, 255, 255, 255], &[], 24, &[]),
                "PLEN of 4294967295",
            ),
            (
                pdu([4, 0, 72, 76, 76, 0, 0, 0], &[], 72, &[0; 4]),
                "PDO of 76",
            ),
            (pdu([4, 1, 72, 0, 72, 0, 0, 0], &[], 72, &[]), "FLAGS of 1"),
            (
                pdu(
                    [6, 0, 24, 24, 28, 0, 0, 0],
                    &[0, 0, 0, 0, 0, 0, 0, 0, 5],
                    24,
                    &[0; 4],
                ),
                "DATAL of 5",
            ),
            (
                pdu([4, 0, 72, 0, 72, 0, 0, 0], &[], 40, &[]),
                "fill whole buffer",
            ),
            (vec![4, 0, 72], "fill whole buffer"),
        ] {
            let error = read(&mut &bytes[..]).expect_err(what).to_string();
            assert!(error.contains(what), "{error}: expected {what}");
        }
    }

    #[test]
    fn responses_of_the_controller() {
        let sent = |write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
            let mut bytes = Vec::new();
            write(&mut bytes).expect("a vector takes all");
            bytes
        };
        let response = sent(&|to| write_ic_response(to));
        // MAXH2CDATA is 64 KiB; version, alignment and digests are 0.
        assert_eq!(
            response[..16],
            [1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
        );
        assert_eq!(response[16..], [0; 112]);
        let completion = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let response = sent(&|to| write_response(to, &completion));
        assert_eq!(
            (&response[..8], &response[8..]),
            (&[5, 0, 24, 0, 24, 0, 0, 0][..], &completion[..])
        );
        let data = sent(&|to| write_data(to, 0x1234, b"xyz"));
        assert_eq!(
            data,
            pdu(
                [7, 4, 24, 24, 27, 0, 0, 0],
                &[0x34, 0x12, 0, 0, 0, 0, 0, 0, 3],
                24,
                b"xyz"
            )
        );
        let ready = sent(&|to| write_ready(to, 2, 9, 0x2_0000));
        let specific = [2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 0];
        assert_eq!(ready, pdu([9, 0, 24, 0, 24, 0, 0, 0], &specific, 24, &[]));
    }
}
