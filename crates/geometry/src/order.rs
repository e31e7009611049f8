//! Sorting in little code.
//!
//! The standard library's stable sort is compiled once for each type and comparison, 5 KB each, and a hundred of them were a twentieth of
//! the program. Here numbers are sorted, with one comparison behind a pointer, and the items are moved afterwards. That is slower: use it
//! for lists that are sorted once in a command, not for events.

use std::cmp::Ordering;

/// Sorts as the methods of a slice with the same end of their names do; equal items keep their order.
pub trait SmallSort<T> {
    /// Sorts by a comparison.
    fn small_sort_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key.
    fn small_sort_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> SmallSort<T> for [T] {
    fn small_sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut places = places(self.len(), &mut |one, other| {
            compare(&self[one], &self[other])
        });
        for at in 0..self.len() {
            // Each swap brings one item to its place.
            while places[at] != at {
                let to = places[at];
                self.swap(at, to);
                places.swap(at, to);
            }
        }
    }

    fn small_sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.small_sort_by(|one, other| key(one).cmp(&key(other)));
    }
}

/// The place of each of a number of items in their order.
fn places(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|one, other| compare(*one, *other));
    let mut places = vec![0; len];
    for (place, item) in order.into_iter().enumerate() {
        places[item] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_have_the_order_of_the_standard_library(items in prop::collection::vec((0u8..6, any::<u16>()), 0..60)) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            let mut found = items.clone();
            found.small_sort_by_key(|item| item.0);
            prop_assert_eq!(&found, &expected);

            let mut expected = items.clone();
            expected.sort_by(|one, other| other.cmp(one));
            let mut found = items;
            found.small_sort_by(|one, other| other.cmp(one));
            prop_assert_eq!(found, expected);
        }
    }
}
