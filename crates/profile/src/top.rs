//! The processes of the I/O, exact as long as they are not too many.
//!
//! Bounded like the residue table: above [`NAMES_MAX`] names the whole list takes the next step of one fixed
//! chain, in which names are shortened until few enough are left. Merging in any order gives the same. A count
//! under a shortened name belongs to all names that begin so: it is exact for them together and an upper bound
//! for each.

use std::collections::BTreeMap;

use plumb_geometry::SmallSort;
use serde::{Deserialize, Serialize};

/// Most names that are kept apart. A host runs some hundreds of different commands.
pub const NAMES_MAX: usize = 1024;

/// The activity of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessShare {
    /// I/O.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

/// I/O by process name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top {
    step: u8,
    #[serde(deserialize_with = "crate::bounded::map::<_, _, _, NAMES_MAX>")]
    names: BTreeMap<String, ProcessShare>,
}

/// A name at a step: whole; without digits and the text after `/` or `:`; four letters; one; none.
fn shorten(name: &str, step: u8) -> String {
    let stem = |name: &str| -> String {
        name.chars()
            .take_while(|letter| !matches!(letter, '/' | ':'))
            .filter(|letter| !letter.is_ascii_digit())
            .collect()
    };
    match step {
        0 => name.to_owned(),
        1 => stem(name),
        2 => stem(name).chars().take(4).collect(),
        // Out of the four letters of the step before, or a list that went through it would differ.
        3 => stem(name)
            .chars()
            .take(4)
            .filter(char::is_ascii)
            .take(1)
            .collect(),
        _ => String::new(),
    }
}

impl Top {
    /// Adds to a process.
    pub fn add(&mut self, name: &str, share: ProcessShare) {
        self.put(shorten(name, self.step), share);
        self.lower_until_it_fits();
    }

    /// Adds another list.
    pub fn merge(&mut self, other: &Top) {
        self.take_step(self.step.max(other.step));
        for (name, share) in &other.names {
            self.put(shorten(name, self.step), *share);
        }
        self.lower_until_it_fits();
    }

    /// Whether names were shortened, so that counts are upper bounds.
    #[must_use]
    pub fn is_shortened(&self) -> bool {
        self.step > 0
    }

    /// The processes with the most I/O, at most `most` of them.
    #[must_use]
    pub fn most(&self, most: usize) -> Vec<(&str, ProcessShare)> {
        let mut names: Vec<(&str, ProcessShare)> = self
            .names
            .iter()
            .map(|(name, share)| (name.as_str(), *share))
            .collect();
        names.small_sort_by_key(|(_, share)| std::cmp::Reverse(share.ios));
        names.truncate(most);
        names
    }

    fn put(&mut self, name: String, share: ProcessShare) {
        let kept = self.names.entry(name).or_default();
        kept.ios = kept.ios.saturating_add(share.ios);
        kept.bytes = kept.bytes.saturating_add(share.bytes);
    }

    fn lower_until_it_fits(&mut self) {
        while self.names.len() > NAMES_MAX {
            self.take_step(self.step + 1);
        }
    }

    fn take_step(&mut self, step: u8) {
        if step == self.step {
            return;
        }
        self.step = step;
        for (name, share) in std::mem::take(&mut self.names) {
            self.put(shorten(&name, step), share);
        }
    }

    pub(crate) fn is_plausible(&self) -> bool {
        self.step <= 4
            && self
                .names
                .keys()
                .all(|name| shorten(name, self.step) == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let names: Vec<String> = (0..3000)
            .map(|n| format!("{}worker/{n}", (b'a' + (n % 5) as u8) as char))
            .collect();
        let add = |names: &mut dyn Iterator<Item = &String>| {
            let mut top = Top::default();
            names.for_each(|name| top.add(name, ProcessShare { ios: 1, bytes: 512 }));
            top
        };
        let (forward, backward) = (add(&mut names.iter()), add(&mut names.iter().rev()));
        let (mut left, right) = (add(&mut names[..900].iter()), add(&mut names[900..].iter()));
        left.merge(&right);
        assert_eq!(forward, backward);
        assert_eq!(forward, left);
        assert!(forward.is_shortened());
        assert_eq!(
            forward.most(1)[0].1,
            ProcessShare {
                ios: 600,
                bytes: 600 * 512
            }
        );
    }
}
