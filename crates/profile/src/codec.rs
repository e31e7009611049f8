//! The encoded form of profiles: `docs/formats/profile.md` describes it byte by byte.
//!
//! A fixed head, then one zstd frame with a checksum, in it the profiles in postcard's encoding. Everything is
//! written in a fixed order, so equal profiles give equal bytes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::io::Read;

use plumb_trace::IOS_MAX;
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Deserializer, Serialize};
use twox_hash::XxHash64;

use crate::profile::{Profile, ProfileSet};

/// First bytes of the encoded form.
pub const MAGIC: &[u8; 8] = b"PLUMBPRF";
/// Version that is written. Those before it are read as well.
pub const VERSION: u16 = 3;
/// No set of profiles is larger when unpacked; a longer one is not unpacked.
pub const UNPACKED_BYTES_MAX: u64 = 1 << 30;
const HEAD_BYTES: usize = 12;
/// Power of two of the largest window that a frame may ask for; written frames ask for less.
const WINDOW_LOG_MAX: u32 = 23;
const LEVEL: i32 = 3;

/// Why bytes are not the encoded form of profiles.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// Other first bytes.
    #[error("not a profile: found `{}` at byte 0, expected `PLUMBPRF`", .found.escape_ascii())]
    Magic {
        /// First bytes.
        found: Vec<u8>,
    },
    /// Another version.
    #[error(
        "profile of version {found} at byte 8: this program reads versions 1 to {VERSION}; use a newer one"
    )]
    Version {
        /// Version found.
        found: u16,
    },
    /// The frame is damaged or cut off.
    #[error("damaged profile: cannot unpack the data after byte {HEAD_BYTES}")]
    Unpack {
        /// The error of the decompressor.
        source: std::io::Error,
    },
    /// The frame unpacks to more than can be.
    #[error("damaged profile: takes more than {UNPACKED_BYTES_MAX} bytes when unpacked")]
    TooLarge,
    /// The contents are invalid.
    #[error("damaged profile: {what}")]
    Contents {
        /// The text found and expected.
        what: String,
    },
}

/// Versions of the encoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProfileVersion {
    /// Without the cap of a residue table and its sums on grids.
    One,
    /// Without the count of doubtful latencies.
    Two,
    /// The present one.
    Three,
}

impl ProfileVersion {
    fn from_number(number: u16) -> Option<ProfileVersion> {
        match number {
            1 => Some(ProfileVersion::One),
            2 => Some(ProfileVersion::Two),
            VERSION => Some(ProfileVersion::Three),
            _ => None,
        }
    }
}

thread_local! {
    /// The encoding marks no fields, so its reader needs the version from outside.
    static VERSION_READ: Cell<ProfileVersion> = const { Cell::new(ProfileVersion::Three) };
}

/// Version of the bytes that this thread decodes.
pub(crate) fn version_read() -> ProfileVersion {
    VERSION_READ.get()
}

/// A count that profiles have since version 3; 0 in those before it.
pub(crate) fn since_version_3<'de, D: Deserializer<'de>>(source: D) -> Result<u64, D::Error> {
    if version_read() < ProfileVersion::Three {
        return Ok(0);
    }
    u64::deserialize(source)
}

/// Profiles with the lines about their origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// The profiles.
    pub profiles: ProfileSet,
    /// A line for each source, as reports print it.
    pub sources: BTreeSet<String>,
    /// Sentences that a reader of any result must know.
    pub notes: BTreeSet<String>,
}

impl Saved {
    /// Adds other saved profiles.
    pub fn merge(&mut self, other: &Saved) {
        self.profiles.merge(&other.profiles);
        self.sources.extend(other.sources.iter().cloned());
        self.notes.extend(other.notes.iter().cloned());
    }
}

/// Whether bytes begin like the encoded form.
#[must_use]
pub fn is_encoded(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Encodes profiles.
///
/// # Errors
/// If there are too many to read back, or memory is short.
pub fn encode(saved: &Saved) -> Result<Vec<u8>, CodecError> {
    let contents = |error: postcard::Error| CodecError::Contents {
        what: error.to_string(),
    };
    let mut body = Vec::new();
    written(saved, |bytes| body.extend_from_slice(bytes)).map_err(contents)?;
    if body.len() as u64 > UNPACKED_BYTES_MAX {
        return Err(CodecError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len() / 4);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&0u16.to_le_bytes());
    pack(bytes, &body).map_err(|source| CodecError::Unpack { source })
}

/// XXH64 of the encoding of profiles, before it is packed: equal profiles have equal digests.
///
/// # Errors
/// If memory is short.
pub fn digest(profiles: &ProfileSet) -> Result<u64, postcard::Error> {
    let mut digest = XxHash64::with_seed(0);
    written(profiles, |bytes| digest.write(bytes))?;
    Ok(digest.finish())
}

/// Passes the encoding of a value on, in blocks.
fn written(value: &impl Serialize, pass_on: impl FnMut(&[u8])) -> Result<(), postcard::Error> {
    let blocks = Blocks {
        block: [0; BLOCK_BYTES],
        used: 0,
        pass_on,
    };
    postcard::serialize_with_flavor(value, blocks)
}

/// Length of the blocks of an encoding.
const BLOCK_BYTES: usize = 8 << 10;

/// Gathers an encoding in blocks. Most numbers in profiles take one or two bytes, and a call that copies so few takes longer than the rest.
struct Blocks<F> {
    block: [u8; BLOCK_BYTES],
    used: usize,
    pass_on: F,
}

impl<F: FnMut(&[u8])> Blocks<F> {
    #[inline(never)]
    fn end_block(&mut self) {
        (self.pass_on)(&self.block[..self.used]);
        self.used = 0;
    }
}

impl<F: FnMut(&[u8])> Flavor for Blocks<F> {
    type Output = ();

    #[inline(always)]
    fn try_extend(&mut self, data: &[u8]) -> Result<(), postcard::Error> {
        match *data {
            [first] => return self.try_push(first),
            [first, second] => {
                self.try_push(first)?;
                return self.try_push(second);
            }
            _ => {}
        }
        for part in data.chunks(BLOCK_BYTES) {
            if part.len() > BLOCK_BYTES - self.used {
                self.end_block();
            }
            self.block[self.used..self.used + part.len()].copy_from_slice(part);
            self.used += part.len();
        }
        Ok(())
    }

    #[inline(always)]
    fn try_push(&mut self, data: u8) -> Result<(), postcard::Error> {
        if self.used == BLOCK_BYTES {
            self.end_block();
        }
        self.block[self.used] = data;
        self.used += 1;
        Ok(())
    }

    fn finalize(mut self) -> Result<(), postcard::Error> {
        self.end_block();
        Ok(())
    }
}

/// Appends a frame of zstd with a check to bytes.
///
/// # Errors
/// If memory is short.
pub fn pack(bytes: Vec<u8>, body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::new(bytes, LEVEL)?;
    encoder.include_checksum(true)?;
    // Otherwise zstd takes and clears 3.6 MB for the window of a long input.
    encoder.set_pledged_src_size(Some(body.len() as u64))?;
    std::io::Write::write_all(&mut encoder, body)?;
    encoder.finish()
}

/// Decodes profiles; the bytes may come from anywhere.
///
/// # Errors
/// When the bytes are not the encoded form, are damaged, or are of another version.
pub fn decode(bytes: &[u8]) -> Result<Saved, CodecError> {
    if !is_encoded(bytes) {
        return Err(CodecError::Magic {
            found: bytes[..bytes.len().min(8)].to_vec(),
        });
    }
    let Some(head) = bytes.get(..HEAD_BYTES) else {
        return Err(CodecError::Contents {
            what: format!("found {} bytes, expected a head of 12", bytes.len()),
        });
    };
    let found = u16::from_le_bytes([head[8], head[9]]);
    let Some(version) = ProfileVersion::from_number(found) else {
        return Err(CodecError::Version { found });
    };
    if head[10..] != [0, 0] {
        return Err(CodecError::Contents {
            what: format!("found {:02x?} at byte 10, expected two zeros", &head[10..]),
        });
    }
    let body = unpack(&bytes[HEAD_BYTES..], UNPACKED_BYTES_MAX)?;
    VERSION_READ.set(version);
    let taken = postcard::take_from_bytes(&body);
    VERSION_READ.set(ProfileVersion::Three);
    let (saved, rest): (Saved, &[u8]) = taken.map_err(|error| CodecError::Contents {
        what: error.to_string(),
    })?;
    if !rest.is_empty() {
        let what = format!(
            "found {} bytes after the profiles, expected none",
            rest.len()
        );
        return Err(CodecError::Contents { what });
    }
    if !saved.profiles.is_keyed() {
        return Err(CodecError::Contents {
            what: "a profile has another one's name".to_owned(),
        });
    }
    let fault = saved.profiles.iter().find_map(implausible);
    fault.map_or(Ok(saved), |what| Err(CodecError::Contents { what }))
}

/// Whether no count is larger than can be, so that sums and percentages of them do not overflow.
fn counts_fit(profile: &Profile) -> bool {
    let (ordered, losses) = (&profile.ordered, &profile.losses);
    let of_ops = profile
        .ops
        .iter()
        .flat_map(|op| [op.ios, op.failed, op.timed]);
    let of_order = [
        profile.pieces,
        ordered.continuing,
        ordered.run_ios,
        ordered.seeks.none,
        ordered.in_flight.depth_max,
    ];
    let of_losses = [
        losses.lost,
        losses.damaged,
        losses.unmatched_issues,
        losses.doubtful_latencies,
        losses.unmatched_completions,
        losses.late_completions,
        losses.out_of_order,
    ];
    let imported = &profile.imported;
    let of_histograms = imported
        .histograms
        .iter()
        .flat_map(|given| &given.buckets)
        .map(|bucket| bucket.2);
    let of_totals = imported
        .totals
        .iter()
        .flat_map(|totals| [totals.ios, totals.misaligned_ios, totals.odd_length_ios]);
    let ready_made = of_histograms.chain(of_totals);
    of_ops
        .chain(of_order)
        .chain(of_losses)
        .chain(ready_made)
        .all(|count| count <= IOS_MAX)
}

/// Unpacks a frame to at most `bytes_max` bytes.
fn unpack(frame: &[u8], bytes_max: u64) -> Result<Vec<u8>, CodecError> {
    let unpack = |source| CodecError::Unpack { source };
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(unpack)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(unpack)?;
    let mut body = Vec::new();
    decoder
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut body)
        .map_err(unpack)?;
    if body.len() as u64 > bytes_max {
        Err(CodecError::TooLarge)
    } else {
        Ok(body)
    }
}

/// An impossible value in a decoded profile: the parts rely on their bounds.
fn implausible(profile: &Profile) -> Option<String> {
    let histograms_fit = profile.ops.iter().all(|op| {
        op.sizes.can_be_ios(65) && op.device_ns.can_be_ios(976) && op.queue_ns.can_be_ios(976)
    });
    let places_fit = std::iter::once(&profile.places)
        .chain(profile.partitions.values())
        .all(|places| places.read_heads.is_plausible() && places.write_heads.is_plausible());
    let ordered = &profile.ordered;
    let ordered_fit = ordered.runs_reaching.can_be_ios(64)
        && ordered.interarrival_ns.can_be_ios(976)
        && ordered.seeks.forward.can_be_ios(65)
        && ordered.seeks.backward.can_be_ios(65)
        && ordered.in_flight.depth_ns.is_plausible(976)
        && ordered.in_flight.threads_ns.is_plausible(976);
    let fits = counts_fit(profile)
        && histograms_fit
        && places_fit
        && ordered_fit
        && profile.timeline.is_plausible()
        && profile.top.is_plausible();
    (!fits).then(|| {
        format!(
            "profile of {}: a histogram, list or window is not as it can be",
            profile.device
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_the_encoding_of_the_library() {
        for len in [
            0,
            1,
            2,
            3,
            200,
            BLOCK_BYTES - 2,
            BLOCK_BYTES,
            3 * BLOCK_BYTES,
        ] {
            // Numbers of one byte and of more, between texts of many bytes.
            let value = (
                7u64,
                "x".repeat(len),
                u64::MAX,
                vec![300u16; len],
                u128::MAX,
            );
            let mut found = Vec::new();
            written(&value, |bytes| found.extend_from_slice(bytes)).expect("room");
            assert_eq!(found, postcard::to_allocvec(&value).expect("room"), "{len}");
        }
    }

    #[test]
    fn a_frame_that_swells_is_stopped() {
        let frame = zstd::encode_all(&vec![0; 1 << 20][..], 1).expect("room to pack");
        assert!(frame.len() < 1000);
        let unpacked = unpack(&frame, 1 << 20).expect("just as long");
        assert_eq!(unpacked.len(), 1 << 20);
        assert!(matches!(
            unpack(&frame, (1 << 20) - 1),
            Err(CodecError::TooLarge)
        ));
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let check = |change: fn(&mut Profile)| {
            let mut profile = Profile::new(
                "sda",
                plumb_trace::Layer::Request,
                crate::table::Table::default(),
            );
            change(&mut profile);
            let mut saved = Saved::default();
            saved.profiles.add(&profile);
            decode(&encode(&saved).expect("room to pack")).is_ok()
        };
        assert!(check(|profile| profile.ops[0].ios = IOS_MAX));
        assert!(!check(|profile| profile.ops[0].ios = IOS_MAX + 1));
        assert!(!check(|profile| profile.losses.lost = u64::MAX));
        assert!(!check(|profile| profile
            .ordered
            .seeks
            .forward
            .add(3, u64::MAX)));
        // A time may be any number; its sums are held at the largest.
        assert!(check(|profile| profile
            .ordered
            .in_flight
            .depth_ns
            .add(3, u64::MAX)));
    }
}
