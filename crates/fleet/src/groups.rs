//! Groups of a fleet: the attribute values among whose hosts a defect is more frequent than among the others.
//!
//! The unit is the host, because the devices of one host are set up together. Hosts with a device of the value are compared with hosts with a
//! device of another value of the same attribute; an unknown value is on neither side. A value is a group if
//!
//! - Fisher's exact test gives such a share a chance below 1 % in all tests together: each chance is multiplied by the number of pairs of a
//!   value and a defect that are tried (Bonferroni, safe for any dependence of attributes);
//! - the lift is at least 2, and at least three hosts have the defect.
//!
//! Of all such values, the one that explains most (the G statistic) is the first group. Its devices are then left out, and the search repeats:
//! so an image does not follow from a rack that shares it, and two causes of one defect are two groups. Values with exactly the devices of a
//! group are named beside it, because no count can tell them apart.

use std::collections::{BTreeMap, BTreeSet};

use plumb_geometry::SmallSort;
use plumb_stats::{Contrast, Interval, Level};
use plumb_trace::Layer;
use twox_hash::XxHash64;

use crate::inventory::{Attributes, HostAttributes};

/// The chance of any group in a fleet without one is below this.
pub const CHANCE_MAX: f64 = 0.01;
/// Smallest lift of a group: below it other values are hardly better.
pub const LIFT_MIN: f64 = 2.0;
/// Fewest hosts on either side of a comparison, and with the defect: two hosts share many attributes by accident.
pub const HOSTS_MIN: u64 = 3;
/// Most groups of a defect. The search would go on as long as attributes explain something.
const GROUPS_MAX: usize = 32;

/// A device.
#[derive(Clone, Debug)]
pub struct Member {
    /// The place of its host among those of the population.
    pub host: u32,
    /// Its name on the host.
    pub device: String,
    /// Layer at which its I/O were seen.
    pub layer: Layer,
    /// The defects that it has: a bit for each.
    pub found: u64,
    /// The defects that could be judged, likewise.
    pub judged: u64,
    /// Attributes of its own, as places among the values of the population.
    own: Vec<u32>,
}

/// All devices of a fleet with their attributes.
#[derive(Clone, Debug, Default)]
pub struct Population {
    hosts: Vec<(String, Vec<u32>)>,
    members: Vec<Member>,
    values: Vec<(String, String)>,
    /// The number of the name of each value.
    names: Vec<u32>,
    ids: BTreeMap<(String, String), u32>,
    name_ids: BTreeMap<String, u32>,
}

/// A group; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The value that explains most, as its place among those of the population.
    pub value: u32,
    /// Values with exactly the same devices.
    pub same: Vec<u32>,
    /// The hosts on both sides.
    pub sides: Contrast,
    /// The share in the group over that in the rest.
    pub lift: Interval<[u64; 2]>,
    /// The chance of it, multiplied by the number of tests; at most [`CHANCE_MAX`].
    pub chance: f64,
    /// Devices of the group with the defect, as places among the members of the population.
    pub members: Vec<usize>,
}

/// The groups of a defect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// The groups, in the order in which they were found.
    pub groups: Vec<Group>,
    /// Devices with the defect that are in no group.
    pub rest: Vec<usize>,
}

/// Hosts of a value, or of all values of a name.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    hosts: u64,
    with: u64,
    /// Hosts whose devices all have this value, as far as it is known.
    only: u64,
    /// Hosts whose devices with the defect all have this value.
    only_with: u64,
    /// Hash of the devices.
    digest: u64,
}

impl Population {
    /// Adds a host. Its devices follow.
    pub fn add_host(&mut self, name: &str, attributes: &Attributes) {
        let values = self.values_of(attributes);
        self.hosts.push((name.to_owned(), values));
    }

    /// Adds a device of the last host.
    pub fn add_device(&mut self, device: &str, layer: Layer, inventory: Option<&HostAttributes>) {
        let own = inventory.and_then(|host| host.devices.get(device));
        let own = own.map_or_else(Vec::new, |attributes| self.values_of(attributes));
        self.members.push(Member {
            host: u32::try_from(self.hosts.len().saturating_sub(1)).unwrap_or(u32::MAX),
            device: device.to_owned(),
            layer,
            found: 0,
            judged: 0,
            own,
        });
    }

    /// The device that was added last.
    pub fn last_mut(&mut self) -> Option<&mut Member> {
        self.members.last_mut()
    }

    /// The devices.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Notes for each device whether it has a defect; `None` if that is unknown.
    pub fn mark(&mut self, defect: u32, of: impl Fn(usize) -> Option<bool>) {
        for (at, member) in self.members.iter_mut().enumerate() {
            if let Some(has_it) = of(at) {
                member.judged |= 1 << defect;
                member.found |= u64::from(has_it) << defect;
            }
        }
    }

    /// The name of a host.
    #[must_use]
    pub fn host(&self, host: u32) -> &str {
        self.hosts.get(host as usize).map_or("", |(name, _)| name)
    }

    /// The name of an attribute and a value of it.
    #[must_use]
    pub fn value(&self, value: u32) -> (&str, &str) {
        let found = self.values.get(value as usize);
        found.map_or(("", ""), |(name, value)| (name, value))
    }

    fn values_of(&mut self, attributes: &Attributes) -> Vec<u32> {
        let mut values = Vec::with_capacity(attributes.len());
        for (name, value) in attributes {
            let pair = (name.clone(), value.clone());
            let next = self.values.len() as u32;
            let id = *self.ids.entry(pair.clone()).or_insert(next);
            if id == next {
                let next_name = self.name_ids.len() as u32;
                let name = *self.name_ids.entry(name.clone()).or_insert(next_name);
                self.values.push(pair);
                self.names.push(name);
            }
            values.push(id);
        }
        values
    }

    /// The values of a device: its own, and those of its host for other names.
    fn values_at(&self, member: &Member) -> impl Iterator<Item = u32> {
        let names = &self.names;
        let own = &member.own;
        let of_host = self.hosts.get(member.host as usize);
        let of_host = of_host.map_or(&[][..], |(_, values)| values);
        let is_free = move |value: &u32| {
            let name = names[*value as usize];
            own.iter().all(|mine| names[*mine as usize] != name)
        };
        own.iter()
            .copied()
            .chain(of_host.iter().copied().filter(is_free))
    }

    /// The groups of each defect. `defects` are the numbers of their bits.
    #[must_use]
    pub fn groups(&self, defects: &[u32]) -> Vec<Groups> {
        let tests: usize = defects.iter().map(|defect| self.tests(*defect)).sum();
        defects
            .iter()
            .map(|defect| self.groups_of(*defect, tests))
            .collect()
    }

    /// Values that can be compared at all for a defect.
    fn tests(&self, defect: u32) -> usize {
        let judged = self.judged(defect);
        let (values, names) = self.tallies(defect, &judged);
        let sides = (0..values.len()).map(|value| self.contrast(value, &values, &names));
        sides
            .filter(|sides| {
                sides.inside.min(sides.outside) >= HOSTS_MIN
                    && sides.inside_with + sides.outside_with >= HOSTS_MIN
            })
            .count()
    }

    /// Devices for which a defect could be judged.
    fn judged(&self, defect: u32) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        members
            .filter(|(_, member)| member.judged & (1 << defect) != 0)
            .map(|(at, _)| at)
            .collect()
    }

    fn groups_of(&self, defect: u32, tests: usize) -> Groups {
        let mut left = self.judged(defect);
        let mut groups = Vec::new();
        while groups.len() < GROUPS_MAX {
            let Some(group) = self.best(defect, tests, &left) else {
                break;
            };
            left.retain(|at| {
                let mut values = self.values_at(&self.members[*at]);
                !values.any(|value| value == group.value)
            });
            groups.push(group);
        }
        left.retain(|at| self.has(defect, *at));
        Groups { groups, rest: left }
    }

    fn has(&self, defect: u32, at: usize) -> bool {
        self.members[at].found & (1 << defect) != 0
    }

    /// The value that explains most among some devices.
    fn best(&self, defect: u32, tests: usize, left: &[usize]) -> Option<Group> {
        let (values, names) = self.tallies(defect, left);
        let mut best: Option<(f64, Group)> = None;
        for value in 0..values.len() {
            let sides = self.contrast(value, &values, &names);
            if sides.inside_with < HOSTS_MIN || sides.outside < HOSTS_MIN {
                continue;
            }
            let chance = (sides.chance() * tests.max(1) as f64).min(1.0);
            let Ok(lift) = sides.lift(Level::P95) else {
                continue;
            };
            if chance > CHANCE_MAX || lift.estimate < LIFT_MIN {
                continue;
            }
            let explained = sides.explained();
            let group = Group {
                value: value as u32,
                same: Vec::new(),
                sides,
                lift,
                chance,
                members: Vec::new(),
            };
            match &mut best {
                Some((most, group)) if explained <= *most => {
                    if values[group.value as usize].digest == values[value].digest {
                        group.same.push(value as u32);
                    }
                }
                _ => best = Some((explained, group)),
            }
        }
        let (_, mut group) = best?;
        group.same.small_sort_by_key(|value| self.value(*value));
        let is_in = |at: &usize| {
            let mut values = self.values_at(&self.members[*at]);
            self.has(defect, *at) && values.any(|value| value == group.value)
        };
        group.members = left.iter().copied().filter(is_in).collect();
        Some(group)
    }

    /// Counts hosts by value and by name.
    fn tallies(&self, defect: u32, left: &[usize]) -> (Vec<Tally>, Vec<Tally>) {
        let mut values = vec![Tally::default(); self.values.len()];
        let mut names = vec![Tally::default(); self.name_ids.len()];
        for of_host in
            left.chunk_by(|one, other| self.members[*one].host == self.members[*other].host)
        {
            // Of the host: each value by name, for all devices and for those with the defect.
            let mut all = BTreeSet::new();
            let mut with = BTreeSet::new();
            for at in of_host {
                for value in self.values_at(&self.members[*at]) {
                    let name = self.names[value as usize];
                    all.insert((name, value));
                    if self.has(defect, *at) {
                        with.insert((name, value));
                    }
                    let digest = &mut values[value as usize].digest;
                    *digest = XxHash64::oneshot(*digest, &at.to_le_bytes());
                }
            }
            let alone = |set: &BTreeSet<(u32, u32)>, name: u32| {
                set.range((name, 0)..=(name, u32::MAX)).count() == 1
            };
            let mut last = None;
            for (name, value) in &all {
                values[*value as usize].hosts += 1;
                values[*value as usize].only += u64::from(alone(&all, *name));
                names[*name as usize].hosts += u64::from(last != Some(*name));
                last = Some(*name);
            }
            last = None;
            for (name, value) in &with {
                values[*value as usize].with += 1;
                values[*value as usize].only_with += u64::from(alone(&with, *name));
                names[*name as usize].with += u64::from(last != Some(*name));
                last = Some(*name);
            }
        }
        (values, names)
    }

    fn contrast(&self, value: usize, values: &[Tally], names: &[Tally]) -> Contrast {
        let (one, all) = (values[value], names[self.names[value] as usize]);
        Contrast {
            inside: one.hosts,
            inside_with: one.with,
            outside: all.hosts - one.only,
            outside_with: all.with - one.only_with,
        }
    }
}
