//! Lists and maps of limited length in the encoded form: a longer one is refused where it exceeds its limit, and
//! not after it has been taken in.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A list of at most `MAX` elements.
pub(crate) fn list<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List::<T, MAX>(PhantomData))
}

/// A map of at most `MAX` entries.
pub(crate) fn map<'de, D, K, V, const MAX: usize>(
    deserializer: D,
) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(Map::<K, V, MAX>(PhantomData))
}

/// The initial reservation: a length in the input is a claim.
const RESERVED_MAX: usize = 1024;

struct List<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for List<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::with_capacity(from.size_hint().unwrap_or(0).min(RESERVED_MAX).min(MAX));
        while let Some(element) = from.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::invalid_length(MAX + 1, &self));
            }
            list.push(element);
        }
        Ok(list)
    }
}

struct Map<K, V, const MAX: usize>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>, const MAX: usize> Visitor<'de>
    for Map<K, V, MAX>
{
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of at most {MAX} entries in rising order")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<BTreeMap<K, V>, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = from.next_entry()? {
            if map.len() == MAX {
                return Err(A::Error::invalid_length(MAX + 1, &self));
            }
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(A::Error::custom(
                    "a map whose entries are not in rising order",
                ));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}
