//! `model.safetensors.index.json`: which tensor is in which shard.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::de::{Error, IgnoredAny, MapAccess};

use super::SafetensorsError;
use super::json::{FromEntries, Object};
use crate::quoted::{quoted, shortened};

/// Where a checkpoint of several files says what is where.
pub(crate) const INDEX_FILE: &str = "model.safetensors.index.json";
/// As the limit on a header: an index has one line a tensor.
pub(crate) const MAX_INDEX_BYTES: u64 = 100_000_000;

/// The checked index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The shards' names, sorted.
    pub(crate) shards: Vec<Box<str>>,
    /// Tensors with the number of their shard, sorted by name.
    pub(crate) tensors: Vec<(Box<str>, usize)>,
}

impl Index {
    pub(crate) fn parse(json: &[u8]) -> Result<Self, SafetensorsError> {
        let bad = |reason: String| SafetensorsError::BadIndex { reason };
        let file: Object<IndexFile> = serde_json::from_slice(json).map_err(|error| bad(shortened(error)))?;
        let map = file.0.weight_map.ok_or_else(|| bad("it has no \"weight_map\"".into()))?;
        let mut tensors = map.tensors;
        tensors.sort_unstable();
        if let Some([(name, _), _]) = tensors.array_windows().find(|[(left, _), (right, _)]| left == right) {
            return Err(bad(format!("tensor {} stands in it twice", quoted(name))));
        }
        // Numbered as they came; wanted in the order of their names.
        let shards: Vec<Box<str>> = map.shards.keys().cloned().collect();
        let mut places = vec![0; shards.len()];
        for (place, number) in map.shards.values().enumerate() {
            if let Some(entry) = places.get_mut(*number) {
                *entry = place;
            }
        }
        for (name, shard) in &mut tensors {
            *shard = places.get(*shard).copied().unwrap_or_default();
            let file = shards.get(*shard).map(AsRef::as_ref).unwrap_or_default();
            if !is_shard_name(file) {
                return Err(SafetensorsError::BadShardName { tensor: quoted(name), shard: quoted(file) });
            }
        }
        Ok(Self { shards, tensors })
    }
}

/// True for the name of a file in the same folder on every system, with the right ending.
pub(crate) fn is_shard_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain =
        matches!(parts.next(), Some(Component::Normal(part)) if part == name) && parts.next().is_none();
    let portable = !name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | ':'));
    plain && portable && name.len() <= 255 && name.ends_with(".safetensors")
}

/// The index's object.
#[derive(Default)]
struct IndexFile {
    weight_map: Option<WeightMap>,
}

impl FromEntries for IndexFile {
    fn entry<'de, A: MapAccess<'de>>(&mut self, key: String, map: &mut A) -> Result<(), A::Error> {
        if key != "weight_map" {
            return map.next_value::<IgnoredAny>().map(drop);
        }
        if self.weight_map.is_some() {
            return Err(A::Error::custom("\"weight_map\" stands in it twice"));
        }
        self.weight_map = Some(map.next_value::<Object<WeightMap>>()?.0);
        Ok(())
    }
}

#[derive(Default)]
struct WeightMap {
    tensors: Vec<(Box<str>, usize)>,
    /// Names with their numbers, in the order they came.
    shards: BTreeMap<Box<str>, usize>,
}

impl FromEntries for WeightMap {
    fn entry<'de, A: MapAccess<'de>>(&mut self, key: String, map: &mut A) -> Result<(), A::Error> {
        let shard: String = map.next_value()?;
        let next = self.shards.len();
        let number = *self.shards.entry(shard.into()).or_insert(next);
        self.tensors.push((key.into(), number));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_shards() {
        for name in ["model-00001-of-00002.safetensors", "a b.safetensors", "..safetensors", ".safetensors"] {
            assert!(is_shard_name(name), "{name:?}");
        }
        let long = format!("{}.safetensors", "x".repeat(250));
        let hostile = [
            "",
            ".",
            "..",
            "model.bin",
            "/etc/model.safetensors",
            "../model.safetensors",
            "sub/model.safetensors",
            "./model.safetensors",
            "model.safetensors/",
            "model.safetensors/.",
            "..\\model.safetensors",
            "C:model.safetensors",
            "C:\\model.safetensors",
            "model\0.safetensors",
            "model\n.safetensors",
            &long,
        ];
        for name in hostile {
            assert!(!is_shard_name(name), "{name:?}");
        }
    }
}
