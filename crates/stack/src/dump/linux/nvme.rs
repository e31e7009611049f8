//! `nvme id-ns`: as text, with `-H` (*unverified*) or without, and raw (`-b`), which goes to [`identify`].
//!
//! Neither names its namespace: the name of the file has to, `id-ns-nvme0n1.txt`. Both become the structure that the
//! drive returned, for the reader of live drives.

use super::super::text::{anything, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{in_file_name, on_linux};
use crate::builder::Builder;
use crate::linux::{Identified, tell_identified};

pub(super) static FORMAT: Format = Format {
    tool: "nvme id-ns",
    is_verified: true,
    sniff,
    read,
};

/// Length of the structure that a drive returns.
const IDENTIFY_BYTES: usize = 4096;
/// First format of logical blocks.
const LBAF: usize = 128;
/// Formats that there may be.
const FORMATS_MAX: usize = 64;

/// Fields by their place and length in the structure (NVM Express base specification, Identify Namespace).
const FIELDS: [(&str, usize, usize); 11] = [
    ("nsfeat", 24, 1),
    ("nlbaf", 25, 1),
    ("flbas", 26, 1),
    ("nawupf", 36, 2),
    ("noiob", 46, 2),
    ("npwg", 64, 2),
    ("npwa", 66, 2),
    ("npdg", 68, 2),
    ("npda", 70, 2),
    ("nows", 72, 2),
    ("nulbaf", 82, 1),
];

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        line.starts_with("NVME Identify Namespace") || line.starts_with("nsfeat ")
    })
}

/// Decimal, or hexadecimal behind `0x`.
fn number(word: &str) -> Option<u64> {
    let word = word.trim();
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

/// `lbaf  0 : ms:8 lbads:12 rp:0 (in use)`: index, metadata, exponent, performance.
fn plain_format(key: &str, value: &str) -> Option<(usize, [u8; 4])> {
    let index = key.strip_prefix("lbaf")?.trim().parse().ok()?;
    let field = |name: &str| {
        let word = value
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name))?;
        number(word)
    };
    bytes_of(index, field("ms:")?, field("lbads:")?, field("rp:")?)
}

/// `LBA Format  0 : Metadata Size: 8 bytes - Data Size: 4096 bytes - Relative Performance: 0x2 Good (in use)`.
fn long_format(key: &str, value: &str) -> Option<(usize, [u8; 4])> {
    let index = key.strip_prefix("LBA Format")?.trim().parse().ok()?;
    let field = |name: &str| {
        let rest = value.split_once(name)?.1.trim_start();
        number(rest.split_whitespace().next()?)
    };
    let data = field("Data Size:")?;
    let exponent = if data.is_power_of_two() {
        data.trailing_zeros().into()
    } else {
        0
    };
    bytes_of(
        index,
        field("Metadata Size:")?,
        exponent,
        field("Relative Performance:")?,
    )
}

fn bytes_of(
    index: usize,
    metadata: u64,
    exponent: u64,
    performance: u64,
) -> Option<(usize, [u8; 4])> {
    let [low, high] = u16::try_from(metadata).ok()?.to_le_bytes();
    let format = [
        low,
        high,
        u8::try_from(exponent).ok()?,
        u8::try_from(performance).ok()?,
    ];
    (index < FORMATS_MAX).then_some((index, format))
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut namespace = Box::new([0u8; IDENTIFY_BYTES]);
    for (_, text) in lines(input) {
        let Some((key, value)) = text.split_once(':').map(|(key, value)| (key.trim(), value))
        else {
            continue;
        };
        if let Some((index, format)) = plain_format(key, value).or_else(|| long_format(key, value))
        {
            namespace[LBAF + 4 * index..][..4].copy_from_slice(&format);
            taken.understood += 1;
        } else if let Some((_, at, len)) = FIELDS.iter().find(|(name, ..)| *name == key)
            && let Some(value) = number(value)
        {
            namespace[*at..][..*len].copy_from_slice(&value.to_le_bytes()[..*len]);
            taken.understood += 1;
        }
    }
    let taken = anything(
        taken,
        input,
        FORMAT.tool,
        "\"nsfeat : …\" and \"lbaf 0 : …\"",
    )?;
    tell(input.name, namespace, builder);
    Ok(taken)
}

/// Reads the output of `nvme id-ns -b`; `false` if it cannot be that.
pub(crate) fn identify(name: &str, bytes: &[u8], builder: &mut Builder) -> bool {
    let Some(namespace) = <&[u8; IDENTIFY_BYTES]>::try_from(bytes)
        .ok()
        .filter(|it| is_namespace(it))
    else {
        return false;
    };
    tell(name, Box::new(*namespace), builder);
    true
}

/// A size, no more in use than there is, and a format in use that exists.
fn is_namespace(bytes: &[u8; IDENTIFY_BYTES]) -> bool {
    let number = |at: usize| {
        bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |it| u64::from_le_bytes(*it))
    };
    let (size, capacity, used) = (number(0), number(8), number(16));
    let index = usize::from(bytes[26] & 0xf) | usize::from(bytes[26] >> 5 & 3) << 4;
    let exponent = bytes[LBAF + 4 * index + 2];
    size > 0 && capacity <= size && used <= capacity && (9..=16).contains(&exponent)
}

fn tell(file: &str, namespace: Box<[u8; IDENTIFY_BYTES]>, builder: &mut Builder) {
    let Some(name) = in_file_name(file).filter(|name| name.starts_with("nvme")) else {
        return builder.note(format!(
            "{file}: nvme id-ns does not print its namespace: name the file after it, as in id-ns-nvme0n1.txt"
        ));
    };
    let node = builder.node(name);
    on_linux(
        builder,
        &Input {
            name: file,
            text: "",
        }
        .source(FORMAT.tool, 0),
    );
    tell_identified(
        builder,
        node,
        &Identified {
            namespace,
            controller: None,
        },
    );
}
