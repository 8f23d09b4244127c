//! Safetensors folders for tests.
#![allow(dead_code, reason = "each test binary uses its own part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

/// A folder that is gone at the end.
pub(crate) struct TestFolder {
    root: TempDir,
}

/// A tensor to be written: name, type, shape, bytes.
pub(crate) type Written<'a> = (&'a str, Dtype, &'a [usize], Vec<u8>);

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// An index that says which tensor is in which file.
    pub(crate) fn index(&self, places: &[(&str, &str)]) {
        let map: serde_json::Map<_, _> =
            places.iter().map(|(tensor, file)| (tensor.to_string(), (*file).into())).collect();
        let index = serde_json::json!({ "metadata": { "total_size": 1 }, "weight_map": map });
        self.file("model.safetensors.index.json", index.to_string());
    }
}

/// The bytes of a file with these tensors.
pub(crate) fn safetensors(tensors: &[Written]) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, data)| (*name, TensorView::new(*dtype, shape.to_vec(), data).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A file with this header and these bytes behind it, however wrong.
pub(crate) fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}
