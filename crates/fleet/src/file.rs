//! A fleet file: the I/O of hosts, one record for each, in the order of their names. `docs/formats/fleet.md` describes it byte by byte.
//!
//! Reader and writer hold one host at a time. Everything is written in a fixed order, so equal fleets give equal bytes.

use std::io::{self, Read, Seek, Write};

use plumb_profile::codec::{self, CodecError, Saved};
use twox_hash::XxHash64;

use crate::host::{HostFacts, HostIo};

/// First bytes of a fleet file.
pub const MAGIC: &[u8; 8] = b"PLUMBFLT";
/// Version that is written and read.
pub const VERSION: u16 = 1;
const HEAD_BYTES: usize = 12;
/// Facts of a host are not longer: some 250,000 inputs. Unpacked, names and marks take fifteen times as much.
pub const FACTS_BYTES_MAX: u32 = 16 << 20;
/// Profiles of a host are not longer, packed.
pub const PROFILES_BYTES_MAX: u32 = 1 << 30;

/// Why a fleet file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Other first bytes.
    #[error("not a fleet file: found `{}` at byte 0, expected `PLUMBFLT`", .found.escape_ascii())]
    Magic {
        /// First bytes.
        found: Vec<u8>,
    },
    /// Another version.
    #[error("fleet file of version {found}: this program reads version {VERSION}; use a newer one")]
    Version {
        /// Version found.
        found: u16,
    },
    /// It cannot be read.
    #[error("cannot read the fleet file at byte {offset}")]
    Read {
        /// Place.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write the fleet file")]
    Write {
        /// The cause.
        source: io::Error,
    },
    /// Something in it cannot be.
    #[error("damaged fleet file: the record at byte {offset}: found {found}, expected {expected}")]
    Damaged {
        /// First byte of the record.
        offset: u64,
        /// The content of the place.
        found: String,
        /// The content that a sound file has there.
        expected: &'static str,
    },
    /// The profiles of a host are damaged, or too large.
    #[error("profiles of host {host}")]
    Profiles {
        /// The host.
        host: String,
        /// The cause.
        source: CodecError,
    },
    /// A host has more inputs than a record can hold.
    #[error(
        "host {host}: found {len_bytes} bytes of names of inputs, expected at most {FACTS_BYTES_MAX}"
    )]
    TooManyInputs {
        /// The host.
        host: String,
        /// Bytes.
        len_bytes: usize,
    },
}

/// Whether bytes begin like a fleet file.
#[must_use]
pub fn is_fleet_file(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The check of a record: its bytes, and all that was before.
fn check_of(before: u64, parts: &[&[u8]]) -> u64 {
    parts
        .iter()
        .fold(before, |seed, part| XxHash64::oneshot(seed, part))
}

/// Writes a fleet file.
pub struct FleetWriter<W> {
    to: W,
    check: u64,
    hosts: u64,
    last: Option<String>,
}

impl<W: Write> FleetWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut to: W) -> Result<FleetWriter<W>, FleetError> {
        let head = [&MAGIC[..], &VERSION.to_le_bytes(), &[0, 0]].concat();
        to.write_all(&head)
            .map_err(|source| FleetError::Write { source })?;
        Ok(FleetWriter {
            to,
            check: 0,
            hosts: 0,
            last: None,
        })
    }

    /// Adds a host, and returns it. Its name must be behind those of all hosts before.
    ///
    /// # Errors
    /// When it cannot be written, or is too large to be read again.
    pub fn add(&mut self, host: HostIo) -> Result<HostIo, FleetError> {
        let HostIo { facts, profiles } = host;
        let name = facts.host.clone();
        debug_assert!(self.last.as_ref() < Some(&name), "hosts in order");
        let fault = |source| FleetError::Profiles {
            host: name.clone(),
            source,
        };
        let contents = |error: postcard::Error| CodecError::Contents {
            what: error.to_string(),
        };
        let facts_bytes = postcard::to_allocvec(&facts)
            .map_err(contents)
            .map_err(fault)?;
        let saved = Saved {
            profiles,
            ..Saved::default()
        };
        let packed = codec::encode(&saved).map_err(fault)?;
        let facts_len = u32::try_from(facts_bytes.len()).unwrap_or(u32::MAX);
        if facts_len > FACTS_BYTES_MAX {
            return Err(FleetError::TooManyInputs {
                host: name,
                len_bytes: facts_bytes.len(),
            });
        }
        let packed_len = u32::try_from(packed.len()).unwrap_or(u32::MAX);
        if packed_len > PROFILES_BYTES_MAX {
            return Err(fault(CodecError::TooLarge));
        }
        let lengths = [facts_len.to_le_bytes(), packed_len.to_le_bytes()].concat();
        self.hosts += 1;
        self.last = Some(name);
        self.write(&[&lengths, &facts_bytes, &packed])?;
        let profiles = saved.profiles;
        Ok(HostIo { facts, profiles })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<W, FleetError> {
        let hosts = self.hosts.to_le_bytes();
        self.write(&[&[0; 8], &hosts])?;
        Ok(self.to)
    }

    fn write(&mut self, parts: &[&[u8]]) -> Result<(), FleetError> {
        self.check = check_of(self.check, parts);
        let check = self.check.to_le_bytes();
        parts
            .iter()
            .copied()
            .chain([&check[..]])
            .try_for_each(|part| self.to.write_all(part))
            .map_err(|source| FleetError::Write { source })
    }
}

/// A host whose profiles were checked and not unpacked: unpacking takes most of the time of a read, and any thread can do it.
#[derive(Clone, Debug)]
pub struct PackedHost {
    /// Everything beside the profiles.
    pub facts: HostFacts,
    packed: Vec<u8>,
}

impl PackedHost {
    /// Unpacks the profiles.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpacked(self) -> Result<HostIo, FleetError> {
        let PackedHost { facts, packed } = self;
        let host = facts.host.clone();
        let saved =
            codec::decode(&packed).map_err(|source| FleetError::Profiles { host, source })?;
        Ok(HostIo {
            facts,
            profiles: saved.profiles,
        })
    }
}

/// Facts that were read ahead of their profiles.
struct Pending {
    offset: u64,
    facts: HostFacts,
    packed_len: u32,
    /// Of the bytes before the profiles.
    check: u64,
}

/// Reads a fleet file, one host after the other; the bytes may come from anywhere.
pub struct FleetReader<R> {
    from: R,
    offset: u64,
    check: u64,
    hosts: u64,
    last: Option<String>,
    pending: Option<Pending>,
    is_over: bool,
}

impl<R: Read> FleetReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// When it is no fleet file of a known version.
    pub fn new(from: R) -> Result<FleetReader<R>, FleetError> {
        let mut reader = FleetReader {
            from,
            offset: 0,
            check: 0,
            hosts: 0,
            last: None,
            pending: None,
            is_over: false,
        };
        let head = reader.bytes(HEAD_BYTES as u64)?;
        if head.len() < HEAD_BYTES || !is_fleet_file(&head) {
            let found = head[..head.len().min(8)].to_vec();
            return Err(FleetError::Magic { found });
        }
        let found = u16::from_le_bytes([head[8], head[9]]);
        if found != VERSION || head[10..] != [0, 0] {
            return Err(FleetError::Version { found });
        }
        Ok(reader)
    }

    /// The facts of the next host; `None` at the end. They are not checked before the host is taken.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read.
    pub fn peek(&mut self) -> Result<Option<&HostFacts>, FleetError> {
        if self.pending.is_none() && !self.is_over {
            self.read_facts()?;
        }
        Ok(self.pending.as_ref().map(|pending| &pending.facts))
    }

    /// The next host; `None` at the end.
    ///
    /// # Errors
    /// As [`FleetReader::peek`].
    pub fn take(&mut self) -> Result<Option<HostIo>, FleetError> {
        self.take_packed()?.map(PackedHost::unpacked).transpose()
    }

    /// The next host, not unpacked; `None` at the end.
    ///
    /// # Errors
    /// As [`FleetReader::peek`].
    pub fn take_packed(&mut self) -> Result<Option<PackedHost>, FleetError> {
        Ok(self
            .record()?
            .map(|(facts, packed)| PackedHost { facts, packed }))
    }

    /// The next record, with its profiles as they are.
    fn record(&mut self) -> Result<Option<(HostFacts, Vec<u8>)>, FleetError> {
        self.peek()?;
        let Some(pending) = self.pending.take() else {
            return Ok(None);
        };
        let offset = pending.offset;
        let packed = self.exactly(u64::from(pending.packed_len), offset)?;
        self.verify(check_of(pending.check, &[&packed]), offset)?;
        self.hosts += 1;
        self.last = Some(pending.facts.host.clone());
        Ok(Some((pending.facts, packed)))
    }

    fn read_facts(&mut self) -> Result<(), FleetError> {
        let offset = self.offset;
        let damaged = |found: String, expected| FleetError::Damaged {
            offset,
            found,
            expected,
        };
        let lengths = self.exactly(8, offset)?;
        let [facts_len, packed_len] = [&lengths[..4], &lengths[4..]].map(number);
        if (facts_len, packed_len) == (0, 0) {
            return self.read_end(&lengths, offset);
        }
        if facts_len > FACTS_BYTES_MAX || packed_len > PROFILES_BYTES_MAX {
            let found = format!("lengths of {facts_len} and {packed_len} bytes");
            return Err(damaged(
                found,
                "at most 16 MiB of facts and 1 GiB of profiles",
            ));
        }
        let bytes = self.exactly(u64::from(facts_len), offset)?;
        let facts: HostFacts = postcard::from_bytes(&bytes)
            .map_err(|error| damaged(error.to_string(), "facts of a host"))?;
        // Names that come twice or in another order, and bytes behind the end, would make two files of one fleet.
        if postcard::to_allocvec(&facts).ok().as_deref() != Some(&bytes[..]) {
            return Err(damaged(
                "facts in another form".to_owned(),
                "that of the writer",
            ));
        }
        if self.last.as_ref().is_some_and(|last| *last >= facts.host) {
            let found = format!("host {} behind {:?}", facts.host, self.last);
            return Err(damaged(found, "hosts in the order of their names"));
        }
        self.pending = Some(Pending {
            offset,
            facts,
            packed_len,
            check: check_of(self.check, &[&lengths, &bytes]),
        });
        Ok(())
    }

    fn read_end(&mut self, lengths: &[u8], offset: u64) -> Result<(), FleetError> {
        let count = self.exactly(8, offset)?;
        self.verify(check_of(self.check, &[lengths, &count]), offset)?;
        if count != self.hosts.to_le_bytes() || !self.bytes(1)?.is_empty() {
            return Err(FleetError::Damaged {
                offset,
                found: "another number of hosts, or bytes behind the end".to_owned(),
                expected: "the number of hosts, and the end of the file",
            });
        }
        self.is_over = true;
        Ok(())
    }

    fn verify(&mut self, computed: u64, offset: u64) -> Result<(), FleetError> {
        if self.exactly(8, offset)? != computed.to_le_bytes() {
            return Err(FleetError::Damaged {
                offset,
                found: "another check".to_owned(),
                expected: "the check of the bytes before it",
            });
        }
        self.check = computed;
        Ok(())
    }

    fn exactly(&mut self, len: u64, record: u64) -> Result<Vec<u8>, FleetError> {
        let bytes = self.bytes(len)?;
        if bytes.len() as u64 == len {
            return Ok(bytes);
        }
        Err(FleetError::Damaged {
            offset: record,
            found: format!("the end of the file at byte {}", self.offset),
            expected: "a whole record",
        })
    }

    /// As many bytes, or fewer at the end. Room is made only for bytes that are there.
    fn bytes(&mut self, len: u64) -> Result<Vec<u8>, FleetError> {
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(len).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        let offset = self.offset;
        read.map_err(|source| FleetError::Read { offset, source })?;
        Ok(bytes)
    }
}

impl<R: Read + Seek> FleetReader<R> {
    /// The facts of the next host; `None` at the end. The profiles are neither read nor checked: a reader of the whole file finds their damage,
    /// and a day of many hosts has some hundred times as many bytes of profiles as of facts.
    ///
    /// # Errors
    /// As [`FleetReader::peek`].
    pub fn skip_profiles(&mut self) -> Result<Option<HostFacts>, FleetError> {
        self.peek()?;
        let Some(pending) = self.pending.take() else {
            return Ok(None);
        };
        let skipped = self.from.seek_relative(i64::from(pending.packed_len));
        let offset = self.offset;
        skipped.map_err(|source| FleetError::Read { offset, source })?;
        self.offset += u64::from(pending.packed_len);
        let check = self.exactly(8, pending.offset)?;
        self.check = check.try_into().map_or(0, u64::from_le_bytes);
        self.hosts += 1;
        self.last = Some(pending.facts.host.clone());
        Ok(Some(pending.facts))
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// All hosts of a fleet file in memory.
///
/// # Errors
/// When it is damaged, or no fleet file.
pub fn decode(bytes: &[u8]) -> Result<Vec<HostIo>, FleetError> {
    let mut reader = FleetReader::new(bytes)?;
    let mut hosts = Vec::new();
    while let Some(host) = reader.take()? {
        hosts.push(host);
    }
    Ok(hosts)
}
