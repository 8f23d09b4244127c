//! The JSON files of a model folder, read with bounds and asked by key.

use super::ModelError;
use crate::Result;
use crate::folder_files;
use crate::quoted::{quoted, shortened};
use serde_json::{Map, Value};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The longest file that is read. The longest in use have about 100 kB.
const MAX_BYTES: u64 = 4 << 20;

/// A JSON object, and how its keys are named in errors.
#[derive(Clone, Debug)]
pub(super) struct JsonObject {
    /// What stands before a key: the file's name, and outer keys.
    at: String,
    map: Map<String, Value>,
}

impl JsonObject {
    /// Reads `folder/name`; `None` where there is no such file.
    pub(super) fn open(folder: &Path, name: &'static str) -> Result<Option<Self>> {
        let path = folder.join(name);
        let unreadable = |cause: String| ModelError::Json { path: path.display().to_string(), cause };
        let file = match folder_files::open(folder, name) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string()).into()),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unreadable(format!("longer than {MAX_BYTES} bytes")).into());
        }
        Ok(Some(Self::parse(name, &bytes).map_err(|error| unreadable(shortened(error)))?))
    }

    fn parse(name: &str, bytes: &[u8]) -> serde_json::Result<Self> {
        Ok(Self { at: format!("{name}: "), map: serde_json::from_slice(bytes)? })
    }

    /// A key as errors name it.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.at)
    }

    /// What is under a key; `None` where it is missing or null.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether there is a key, null included.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    pub(super) fn wrong(&self, name: &str, expected: &str, got: impl ToString) -> ModelError {
        ModelError::Value { key: self.key(name), expected: expected.to_owned(), got: got.to_string() }
    }

    fn typed<'a, T>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong(name, expected, quoted(&value.to_string())).into()),
        }
    }

    pub(super) fn opt_u64(&self, name: &str) -> Result<Option<u64>> {
        self.typed(name, "a non-negative integer", Value::as_u64)
    }

    pub(super) fn opt_f32(&self, name: &str) -> Result<Option<f32>> {
        self.typed(name, "a number", |value| value.as_f64().map(|value| value as f32))
    }

    pub(super) fn opt_bool(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "true or false", Value::as_bool)
    }

    pub(super) fn opt_str(&self, name: &str) -> Result<Option<&str>> {
        self.typed(name, "a text", Value::as_str)
    }

    pub(super) fn opt_array(&self, name: &str) -> Result<Option<&[Value]>> {
        self.typed(name, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// An object inside this one.
    pub(super) fn opt_object(&self, name: &str) -> Result<Option<Self>> {
        let map = self.typed(name, "an object", Value::as_object)?;
        Ok(map.map(|map| Self { at: format!("{}.", self.key(name)), map: map.clone() }))
    }

    /// Every key and what is under it.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }
}
