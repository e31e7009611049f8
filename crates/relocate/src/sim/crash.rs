//! Possible results of a power cut for writes without a flush.

use std::collections::BTreeMap;

use plumb_testkit::Rng;

use super::medium::{Event, Which, World};

const SECTOR: u64 = 512;

/// A unit of a disk that has writes in its cache: all of it, none or, torn, something else reaches the medium.
pub(crate) struct CachedUnit {
    which: Which,
    start: u64,
    len: u64,
    /// The writes that touch it, in their order.
    writes: Vec<usize>,
}

/// The result for one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    /// It is as it was.
    Lost,
    /// This number of its writes arrived, at least 1.
    Kept(usize),
    /// The power went while it was written. Each of its sectors is old, new or garbage, by this seed.
    Torn(u64),
}

/// Writes that are in a cache.
#[derive(Default)]
pub(crate) struct Cache {
    writes: Vec<(Which, u64, std::rc::Rc<[u8]>)>,
}

impl Cache {
    /// Processes the event. A flush makes its writes permanent on the medium.
    pub(crate) fn take(&mut self, event: &Event, world: &mut World) {
        match event {
            Event::Write { which, at, bytes } => self.writes.push((*which, *at, bytes.clone())),
            Event::Flush { which: flushed } => {
                for (which, at, bytes) in &self.writes {
                    if which == flushed {
                        world.medium(*which).write(*at, bytes);
                    }
                }
                self.writes.retain(|(which, _, _)| which != flushed);
            }
        }
    }

    /// The units that can have a fate of their own.
    pub(crate) fn units(&self, world: &World) -> Vec<CachedUnit> {
        let mut found: BTreeMap<(Which, u64), Vec<usize>> = BTreeMap::new();
        let (block, offset) = (u64::from(world.physical), world.unit_offset);
        for (index, (which, at, bytes)) in self.writes.iter().enumerate() {
            let offset = if *which == Which::Disk { offset } else { 0 };
            let end = at + bytes.len() as u64;
            let mut start = if *at < offset {
                0
            } else {
                at - (at - offset) % block
            };
            while start < end {
                found.entry((*which, start)).or_default().push(index);
                start = if start < offset {
                    offset
                } else {
                    start + block
                };
            }
        }
        let unit = |((which, start), writes)| {
            let (offset, end) = match which {
                Which::Disk => (offset, world.disk_bytes),
                Which::Journal => (0, world.journal_bytes),
            };
            let next = if start < offset {
                offset
            } else {
                start + block
            };
            CachedUnit {
                which,
                start,
                len: next.min(end) - start,
                writes,
            }
        };
        found.into_iter().map(unit).collect()
    }

    /// Writes the survivors to the media.
    pub(crate) fn cut(&self, units: &[CachedUnit], fates: &[Fate], world: &mut World) {
        for (unit, fate) in units.iter().zip(fates) {
            let kept = match fate {
                Fate::Lost => continue,
                Fate::Kept(kept) => *kept,
                Fate::Torn(_) => unit.writes.len(),
            };
            let mut old = vec![0; unit.len as usize];
            world.medium(unit.which).read(unit.start, &mut old);
            let mut new = old.clone();
            for index in &unit.writes[..kept] {
                self.lay(*index, unit, &mut new);
            }
            if let Fate::Torn(seed) = fate {
                tear(*seed, &old, &mut new);
            }
            world.medium(unit.which).write(unit.start, &new);
        }
    }

    /// The part of a write in a unit.
    fn lay(&self, index: usize, unit: &CachedUnit, into: &mut [u8]) {
        let (_, at, bytes) = &self.writes[index];
        let start = (*at).max(unit.start);
        let end = (at + bytes.len() as u64).min(unit.start + unit.len);
        let from = &bytes[(start - at) as usize..(end - at) as usize];
        into[(start - unit.start) as usize..(end - unit.start) as usize].copy_from_slice(from);
    }
}

/// Every sector of the unit, those included that nobody wrote.
fn tear(seed: u64, old: &[u8], new: &mut [u8]) {
    let mut rng = Rng::new(seed);
    for (new, old) in new
        .chunks_mut(SECTOR as usize)
        .zip(old.chunks(SECTOR as usize))
    {
        match rng.below(3) {
            0 => new.copy_from_slice(old),
            1 => {}
            _ => new.chunks_mut(8).for_each(|word| {
                let noise = rng.next_u64().to_le_bytes();
                let len = word.len();
                word.copy_from_slice(&noise[..len]);
            }),
        }
    }
}

/// The number of results that are tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Up to this number of units every subset is tried.
    pub(crate) every_subset_to: u32,
    /// Random ones: torn units where every subset is tried, both else.
    pub(crate) random: u64,
}

/// The results that are tried: each subset that may survive, if there are few, and random ones.
pub(crate) fn fates(units: &[CachedUnit], effort: Effort, rng: &mut Rng) -> Vec<Vec<Fate>> {
    let count = units.len() as u32;
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    let random_subsets = if count <= effort.every_subset_to {
        for subset in 0..1_u64 << count {
            let fate = |(index, unit): (usize, &CachedUnit)| match subset >> index & 1 {
                0 => Fate::Lost,
                _ => Fate::Kept(unit.writes.len()),
            };
            found.push(units.iter().enumerate().map(fate).collect());
        }
        false
    } else {
        found.push(vec![Fate::Lost; units.len()]);
        found.push(
            units
                .iter()
                .map(|unit| Fate::Kept(unit.writes.len()))
                .collect(),
        );
        true
    };
    for round in 0..effort.random {
        let may_tear = !random_subsets || round % 2 == 0;
        let fate = |unit: &CachedUnit| match rng.below(if may_tear { 3 } else { 2 }) {
            0 => Fate::Lost,
            1 => Fate::Kept(rng.between(1, unit.writes.len() as u64) as usize),
            _ => Fate::Torn(rng.next_u64()),
        };
        found.push(units.iter().map(fate).collect());
    }
    found
}
