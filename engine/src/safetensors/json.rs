//! Reading JSON from strangers: objects whose keys stand once, without storing what is not needed.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// What is made of the entries of an object, one by one.
pub(super) trait FromEntries: Default {
    /// Reads the value under `key`.
    fn entry<'de, A: MapAccess<'de>>(&mut self, key: String, map: &mut A) -> Result<(), A::Error>;
}

/// An object read by its entries.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: FromEntries> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: FromEntries> Visitor<'de> for Entries<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
                let mut read = T::default();
                while let Some(key) = map.next_key()? {
                    read.entry(key, &mut map)?;
                }
                Ok(read)
            }
        }
        from.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

/// A string that is checked to be one and not kept.
pub(super) struct AnyText;

impl<'de> Deserialize<'de> for AnyText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = AnyText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, _: &str) -> Result<AnyText, E> {
                Ok(AnyText)
            }
        }
        from.deserialize_str(Text)
    }
}
