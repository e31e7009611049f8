//! The I/O of one host, with the inputs that they come from.

use std::collections::{BTreeMap, BTreeSet};

use plumb_profile::{ProfileSet, codec};
use plumb_trace::Layer;
use serde::{Deserialize, Serialize};

/// Length and digest: with its name they identify an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputMark {
    /// Length of its files.
    pub len_bytes: u64,
    /// XXH64 of the profiles made from it. The bytes of a trace would have to be read a second time for a hash of them.
    pub digest: u64,
}

/// The time during which the I/O of a device were observed. From the first to the last I/O of a merged profile there may be weeks without
/// a recording, so the times of the inputs are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedTime {
    /// Sum of the times from the first to the last I/O of each input, ns.
    pub ns: u64,
    /// Inputs with I/O whose time is not known.
    pub untimed: u64,
}

impl ObservedTime {
    /// The whole time, ns; `None` if that of an input is unknown.
    #[must_use]
    pub fn known_ns(self) -> Option<u64> {
        (self.untimed == 0 && self.ns > 0).then_some(self.ns)
    }

    fn add(&mut self, other: ObservedTime) {
        self.ns = self.ns.saturating_add(other.ns);
        self.untimed = self.untimed.saturating_add(other.untimed);
    }
}

/// Everything about a host beside its profiles. The names of inputs are relative to the SOURCE of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub host: String,
    /// The inputs that the profiles hold, by name.
    pub inputs: BTreeMap<String, InputMark>,
    /// Those of them that could be read only in part.
    pub partial: BTreeSet<String>,
    /// Inputs that could not be read, and are not in the profiles.
    pub unread: BTreeSet<String>,
    /// The observed time of each device.
    pub observed: BTreeMap<(String, Layer), ObservedTime>,
}

/// The I/O of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostIo {
    /// Everything beside the profiles.
    pub facts: HostFacts,
    /// The profiles, by device and layer.
    pub profiles: ProfileSet,
}

impl HostIo {
    /// A host without any I/O.
    #[must_use]
    pub fn new(host: &str) -> HostIo {
        HostIo {
            facts: HostFacts {
                host: host.to_owned(),
                ..HostFacts::default()
            },
            profiles: ProfileSet::default(),
        }
    }

    /// The I/O of one input.
    ///
    /// # Errors
    /// When memory is short.
    pub fn of_input(
        host: &str,
        input: &str,
        len_bytes: u64,
        is_whole: bool,
        profiles: ProfileSet,
    ) -> Result<HostIo, postcard::Error> {
        let digest = codec::digest(&profiles)?;
        let mut one = HostIo::new(host);
        let facts = &mut one.facts;
        let mark = InputMark { len_bytes, digest };
        facts.inputs.insert(input.to_owned(), mark);
        if !is_whole {
            facts.partial.insert(input.to_owned());
        }
        for profile in profiles.iter() {
            let time = match (profile.first_ns, profile.last_ns) {
                (Some(first), Some(last)) if last > first => ObservedTime {
                    ns: last.abs_diff(first),
                    untimed: 0,
                },
                _ => ObservedTime { ns: 0, untimed: 1 },
            };
            let key = (profile.device.clone(), profile.layer);
            facts.observed.insert(key, time);
        }
        one.profiles = profiles;
        Ok(one)
    }

    /// Adds other inputs of the host. The caller has made sure that none is in both.
    pub fn absorb(&mut self, other: HostIo) {
        let HostIo { facts, profiles } = other;
        self.facts.add_notes(&facts);
        self.facts.inputs.extend(facts.inputs);
        for (device, time) in facts.observed {
            self.facts.observed.entry(device).or_default().add(time);
        }
        for profile in profiles {
            self.profiles.absorb(profile);
        }
        self.facts.settle();
    }
}

impl HostFacts {
    /// Adds the names of inputs that were not read, or in part.
    pub fn add_notes(&mut self, other: &HostFacts) {
        self.partial.extend(other.partial.iter().cloned());
        self.unread.extend(other.unread.iter().cloned());
        self.settle();
    }

    /// An input that another run could read is not missing any more.
    fn settle(&mut self) {
        self.unread.retain(|name| !self.inputs.contains_key(name));
    }
}
