//! The stored form of a window of one device: three widths, each packed and checked by itself.

use std::io::Read;

use plumb_profile::codec::{self, Saved};
use plumb_profile::timeline::Timeline;
use plumb_profile::top::Top;
use plumb_profile::{Places, Profile, Table};
use serde::{Deserialize, Serialize};

use crate::glance::Glance;
use crate::senders::Senders;
use crate::settings::TierSettings;

/// Most bytes of the tables of one record, unpacked.
const TABLES_BYTES_MAX: u64 = 64 << 20;

/// Most bytes of the senders of one record, unpacked.
const SENDERS_BYTES_MAX: u64 = 1 << 20;

/// A window of one device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// Without a course over time. Its residue tables are empty if it has no table.
    pub(crate) profile: Profile,
    pub(crate) has_table: bool,
    pub(crate) glance: Glance,
    pub(crate) senders: Senders,
}

/// The bytes of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EncodedRecord {
    pub(crate) glance: Glance,
    pub(crate) profile: Vec<u8>,
    pub(crate) senders: Vec<u8>,
    pub(crate) table: Option<Vec<u8>>,
}

impl EncodedRecord {
    pub(crate) fn len_bytes(&self) -> usize {
        let table = self.table.as_ref().map_or(0, Vec::len);
        // Three rows with identifiers, and the columns of the glance.
        self.profile.len() + self.senders.len() + table + 160
    }
}

/// The residue tables of the device and of its parts: name and columns. The device has an empty name.
#[derive(Serialize, Deserialize)]
struct WrittenTables(Vec<(String, Vec<u8>)>);

impl Record {
    /// The record of a closed window.
    pub(crate) fn reduced(profile: &Profile, senders: &Senders, settings: &TierSettings) -> Record {
        let glance = Glance::of_profile(profile);
        let has_table = profile.ios() >= settings.table_ios_min;
        let mut profile = profile.clone();
        profile.timeline = Timeline::default();
        profile.top = Top::default();
        for places in places_of(&mut profile) {
            places.table = if has_table {
                places
                    .table
                    .reduced(settings.rows_max, settings.keep_squares)
            } else {
                places.table.emptied()
            };
        }
        Record {
            profile,
            has_table,
            glance,
            senders: senders.reduced(),
        }
    }

    /// Adds a record of the same window. Of a sum with a part that has no table, the table is dropped: it would claim
    /// to be whole.
    pub(crate) fn merge(&mut self, other: &Record) {
        let glances = (self.glance, other.glance);
        let has_table = self.has_table && other.has_table;
        self.profile.merge(&other.profile);
        self.senders.merge(&other.senders);
        self.senders = self.senders.reduced();
        self.glance = Glance::of_profile(&self.profile);
        // Counts at the grid were made before the tables were reduced.
        self.glance.off_4k = glances
            .0
            .off_4k
            .zip(glances.1.off_4k)
            .map(|(one, other)| one.saturating_add(other));
        if !has_table {
            places_of(&mut self.profile).for_each(|places| places.table = places.table.emptied());
        }
        self.has_table = has_table;
    }

    pub(crate) fn encode(&self) -> Result<EncodedRecord, String> {
        let mut narrow = self.profile.clone();
        let mut tables = Vec::new();
        if self.has_table {
            let named = narrow.partitions.iter();
            for (name, places) in std::iter::once((&String::new(), &narrow.places)).chain(named) {
                let columns = places.table.to_columns().map_err(|e| e.to_string())?;
                tables.push((name.clone(), columns));
            }
        }
        places_of(&mut narrow).for_each(|places| places.table = places.table.emptied());
        let table = if self.has_table {
            let bytes = postcard::to_allocvec(&WrittenTables(tables)).map_err(|e| e.to_string())?;
            Some(pack(&bytes)?)
        } else {
            None
        };
        Ok(EncodedRecord {
            glance: self.glance,
            profile: encode_profile(&narrow)?,
            senders: encode_senders(&self.senders)?,
            table,
        })
    }

    /// Reads a record; the bytes may come from anywhere.
    pub(crate) fn decode(encoded: &EncodedRecord) -> Result<Record, String> {
        let mut profile = decode_profile(&encoded.profile)?;
        if let Some(packed) = &encoded.table {
            let bytes = unpack(packed, TABLES_BYTES_MAX)?;
            let tables: WrittenTables =
                postcard::from_bytes(&bytes).map_err(|error| error.to_string())?;
            for (name, columns) in tables.0 {
                let table = Table::from_columns(&columns).map_err(|error| error.to_string())?;
                let places = match name.as_str() {
                    "" => Some(&mut profile.places),
                    part => profile.partitions.get_mut(part),
                };
                let place = places.ok_or("a table of a part that the profile does not have")?;
                place.table = table;
            }
        }
        Ok(Record {
            profile,
            has_table: encoded.table.is_some(),
            glance: encoded.glance,
            senders: decode_senders(&encoded.senders)?,
        })
    }
}

fn places_of(profile: &mut Profile) -> impl Iterator<Item = &mut Places> {
    std::iter::once(&mut profile.places).chain(profile.partitions.values_mut())
}

/// A whole profile as bytes.
pub(crate) fn encode_profile(profile: &Profile) -> Result<Vec<u8>, String> {
    let mut saved = Saved::default();
    saved.profiles.add(profile);
    codec::encode(&saved).map_err(|error| error.to_string())
}

/// The only profile of these bytes.
pub(crate) fn decode_profile(bytes: &[u8]) -> Result<Profile, String> {
    let saved = codec::decode(bytes).map_err(|error| error.to_string())?;
    let mut profiles = saved.profiles.iter();
    match (profiles.next(), profiles.next()) {
        (Some(profile), None) => Ok(profile.clone()),
        _ => Err(format!(
            "found {} profiles, expected one",
            saved.profiles.len()
        )),
    }
}

pub(crate) fn encode_senders(senders: &Senders) -> Result<Vec<u8>, String> {
    pack(&postcard::to_allocvec(senders).map_err(|error| error.to_string())?)
}

pub(crate) fn decode_senders(bytes: &[u8]) -> Result<Senders, String> {
    let bytes = unpack(bytes, SENDERS_BYTES_MAX)?;
    let senders: Senders = postcard::from_bytes(&bytes).map_err(|error| error.to_string())?;
    if senders.is_bounded() {
        Ok(senders)
    } else {
        Err("too many senders, or too long names".to_owned())
    }
}

pub(crate) fn pack(bytes: &[u8]) -> Result<Vec<u8>, String> {
    codec::pack(Vec::new(), bytes).map_err(|error| error.to_string())
}

pub(crate) fn unpack(frame: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let unpack = || -> std::io::Result<Vec<u8>> {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(frame)?;
        decoder.window_log_max(23)?;
        let mut bytes = Vec::new();
        decoder
            .take(bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = unpack().map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("takes more than {bytes_max} bytes when unpacked"));
    }
    Ok(bytes)
}
