//! Serialized extents and grids are checked as constructors check, and carry units in their names.

use plumb_geometry::{Bytes, Extent, Grid, GridKind, ParityLayout, Sectors};
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer, StrDeserializer, U64Deserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};

/// A number or a word: enough of a format to read a grid from, without a dependency for it.
#[derive(Clone, Copy)]
enum FieldValue {
    Number(u64),
    Word(&'static str),
}

impl<'de> IntoDeserializer<'de, Error> for FieldValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for FieldValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Number(number) => visitor.visit_u64(number),
            Self::Word(word) => visitor.visit_str(word),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Number(number) => Err(serde::de::Error::custom(number)),
            Self::Word(word) => {
                let word: StrDeserializer<'_, Error> = word.into_deserializer();
                word.deserialize_enum(name, variants, visitor)
            }
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

fn read<'de, T: Deserialize<'de>>(fields: &[(&'static str, FieldValue)]) -> Result<T, Error> {
    T::deserialize(MapDeserializer::new(fields.iter().copied()))
}

#[test]
fn an_extent_that_overflows_is_not_read() {
    let extent = |start, len| {
        read::<Extent>(&[
            ("start_bytes", FieldValue::Number(start)),
            ("len_bytes", FieldValue::Number(len)),
        ])
    };
    let good = Extent::new(Bytes(17_408), Bytes(8_192)).expect("small");
    assert_eq!(extent(17_408, 8_192), Ok(good));
    let error = extent(u64::MAX, 1).expect_err("ends beyond 64 bits");
    assert!(error.to_string().contains("beyond 64 bits"), "{error}");
}

#[test]
fn a_grid_that_cannot_be_is_not_read() {
    let grid = |granularity, offset, kind| {
        read::<Grid>(&[
            ("granularity_bytes", FieldValue::Number(granularity)),
            ("offset_bytes", FieldValue::Number(offset)),
            ("kind", FieldValue::Word(kind)),
        ])
    };
    let stripe = Grid::parity_stripe(Bytes(196_608)).expect("a grid");
    assert_eq!(grid(196_608, 0, "parity_stripe"), Ok(stripe));
    assert_eq!(grid(4_096, 0, "unit"), Ok(Grid::ASSUMED));
    assert!(grid(0, 0, "unit").is_err());
    assert!(grid(512, 512, "boundary").is_err());
    assert!(grid(512, 0, "stripe").is_err());
}

#[test]
fn units_are_plain_numbers_and_kinds_plain_words() {
    let number = || U64Deserializer::<Error>::new(34);
    assert_eq!(Bytes::deserialize(FieldValue::Number(34)), Ok(Bytes(34)));
    assert_eq!(Sectors::deserialize(number()), Ok(Sectors(34)));
    let word = |word| StrDeserializer::<Error>::new(word);
    assert_eq!(
        GridKind::deserialize(word("boundary")),
        Ok(GridKind::Boundary)
    );
    assert_eq!(
        ParityLayout::deserialize(word("left-symmetric")),
        Ok(ParityLayout::default())
    );
}
