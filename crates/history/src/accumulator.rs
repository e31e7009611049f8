//! The open window of one device in one tier.

use plumb_profile::Profile;

use crate::error::HistoryError;
use crate::record::{self, EncodedRecord, Record};
use crate::senders::Senders;
use crate::settings::TierSettings;
use crate::tier::{Tier, Window};

/// The record that the store had of a window before it was opened, for example before the clock went back. It is kept apart
/// from new I/O: those alone go to the coarser tier, and a record that is written twice is the same record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Base {
    /// Not looked up yet.
    Unread,
    /// Looked up.
    Read(Option<Box<EncodedRecord>>),
}

/// The I/O of an open window since it was opened.
#[derive(Clone, Debug)]
enum Content {
    /// Of the finest tier, which changes every few seconds.
    Live(Box<Profile>),
    /// Of the coarser tiers, which change every few minutes. Three full tables for each of 200 devices would take 150 MB.
    Packed(Vec<u8>),
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub(crate) window: Window,
    pub(crate) base: Base,
    content: Content,
    pub(crate) senders: Senders,
    /// Changed since it was last stored.
    pub(crate) is_dirty: bool,
}

impl Accumulator {
    /// Opens a window with its first I/O.
    pub(crate) fn open(
        window: Window,
        profile: &Profile,
        senders: &Senders,
    ) -> Result<Accumulator, HistoryError> {
        Ok(Accumulator {
            window,
            base: Base::Unread,
            content: Content::of_profile(window.tier, profile.clone())?,
            senders: senders.clone(),
            is_dirty: true,
        })
    }

    /// A stored open window.
    pub(crate) fn restored(
        window: Window,
        base: Option<EncodedRecord>,
        profile: Vec<u8>,
        senders: Senders,
    ) -> Result<Accumulator, String> {
        // Damage is found now and not when the window closes.
        let decoded = record::decode_profile(&profile)?;
        let content = match window.tier {
            Tier::FiveMinutes => Content::Live(Box::new(decoded)),
            _ => Content::Packed(profile),
        };
        Ok(Accumulator {
            window,
            base: Base::Read(base.map(Box::new)),
            content,
            senders,
            is_dirty: false,
        })
    }

    /// Adds I/O of this window.
    pub(crate) fn add(&mut self, profile: &Profile, senders: &Senders) -> Result<(), HistoryError> {
        match &mut self.content {
            Content::Live(mine) => mine.merge(profile),
            Content::Packed(packed) => {
                let mut mine = unpacked(&profile.device, packed)?;
                mine.merge(profile);
                self.content = Content::of_profile(self.window.tier, mine)?;
            }
        }
        self.senders.merge(senders);
        self.is_dirty = true;
        Ok(())
    }

    /// The I/O since the window was opened.
    pub(crate) fn profile(&self, device: &str) -> Result<Profile, HistoryError> {
        match &self.content {
            Content::Live(profile) => Ok((**profile).clone()),
            Content::Packed(packed) => unpacked(device, packed),
        }
    }

    /// The same as bytes.
    pub(crate) fn packed(&self, device: &str) -> Result<Vec<u8>, HistoryError> {
        match &self.content {
            Content::Live(profile) => record::encode_profile(profile).map_err(fault(device)),
            Content::Packed(packed) => Ok(packed.clone()),
        }
    }

    /// The record of the I/O since the window was opened, without its base.
    pub(crate) fn record(
        &self,
        device: &str,
        settings: &TierSettings,
    ) -> Result<EncodedRecord, HistoryError> {
        let profile = self.profile(device)?;
        Record::reduced(&profile, &self.senders, settings)
            .encode()
            .map_err(fault(device))
    }
}

impl Content {
    fn of_profile(tier: Tier, profile: Profile) -> Result<Content, HistoryError> {
        match tier {
            Tier::FiveMinutes => Ok(Content::Live(Box::new(profile))),
            _ => {
                let packed = record::encode_profile(&profile);
                packed.map(Content::Packed).map_err(fault(&profile.device))
            }
        }
    }
}

fn unpacked(device: &str, packed: &[u8]) -> Result<Profile, HistoryError> {
    record::decode_profile(packed).map_err(fault(device))
}

pub(crate) fn fault(device: &str) -> impl Fn(String) -> HistoryError + '_ {
    |what| HistoryError::Record {
        device: device.to_owned(),
        what,
    }
}
