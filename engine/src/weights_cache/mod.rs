//! Converted weights, kept on disk: a later start takes them as they are instead of converting them again.
//!
//! One file holds all weights of one model as one backend packed them in one [`WeightsFormat`]:
//!
//! | bytes | what |
//! |---|---|
//! | 64 | the format's name and version |
//! | each from a multiple of 64 on | sections: what [`Linear::linear_save`](halite_kernels::linear::Linear::linear_save) gave, a table, a vector |
//! | | the table of sections, JSON: what they were made of, name, place and checksum of each |
//! | 40 | length and checksum of that table, and the name again |
//!
//! The file is taken only by the program that wrote it, for the model it was made of: [`WeightsCache::new`] says how that is
//! told. All checksums are compared before anything is used, so that damaged bytes are an error ([`WeightsCacheError`]) and
//! never a wrong number; whatever is wrong, weights are converted from the model's file as if nothing had been kept, and
//! the reason is logged. A file is written under another name and renamed when it is whole and on the disk, so that a
//! reader sees all of it or nothing, however many programs write; one that is in use may be removed or replaced at any time.
//! That nothing can be written is logged and changes nothing else.

mod checksum;
mod error;
mod identity;
mod reader;
mod stale;
mod table;
mod writer;

pub use error::WeightsCacheError;

pub(crate) use reader::KeptWeights;
pub(crate) use writer::WeightsWriter;

use crate::WeightsFormat;
use identity::Identity;
use std::io;
use std::path::{Path, PathBuf};
use table::Key;

/// What the names of the files end in.
const ENDING: &str = ".weights";

/// The place of a model's converted weights: for [`EngineOptions::weights_cache`](crate::EngineOptions::weights_cache).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsCache {
    folder: PathBuf,
    model: Identity,
}

impl WeightsCache {
    /// The converted weights in `folder` of the model at `model`, a file or a folder. To be made **before** the model is
    /// opened, so that a model which is replaced meanwhile is noticed. The folder need not exist.
    ///
    /// Weights belong together where all of this is as it was: the model's path, links followed, of each of its files (in a
    /// folder: safetensors and JSON) the size, the time of the last modification and, on Unix, that of the last change of
    /// any kind, which no program can set back; the weights' format; the backend; this version of Halite, and the size and
    /// times of the running program, since another build may convert otherwise. Contents are not hashed: to read all of a
    /// model takes as long as to convert it. What is the same by sizes and times counts as the same.
    ///
    /// The files are mapped while they are read: nobody may change one in place. To remove or replace one is fine.
    ///
    /// # Errors
    /// There is no such model, or the system does not tell its times.
    pub fn new(folder: impl Into<PathBuf>, model: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { folder: folder.into(), model: Identity::of(model.as_ref())? })
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of weights in a format on a backend, there or not.
    pub fn file(&self, weights: WeightsFormat, backend: &str) -> PathBuf {
        // What a person recognises, and what no two models share.
        let Identity { label, path_hash, .. } = &self.model;
        self.folder.join(format!("{label}-{path_hash:016x}-{weights}-{backend}{ENDING}"))
    }

    /// Takes what was kept.
    pub(crate) fn open(
        &self,
        weights: WeightsFormat,
        backend: &str,
    ) -> Result<KeptWeights, WeightsCacheError> {
        KeptWeights::open(&self.file(weights, backend), &self.key(weights, backend))
    }

    /// Begins to keep weights.
    pub(crate) fn create(&self, weights: WeightsFormat, backend: &str) -> io::Result<WeightsWriter> {
        std::fs::create_dir_all(&self.folder)?;
        stale::remove(&self.folder);
        WeightsWriter::create(self.file(weights, backend), self.key(weights, backend))
    }

    /// Whether the model is still the one it was.
    pub(crate) fn is_current(&self) -> bool {
        Identity::of(&self.model.path).is_ok_and(|now| now.files == self.model.files)
    }

    fn key(&self, weights: WeightsFormat, backend: &str) -> Key {
        Key {
            program: identity::program(),
            backend: backend.to_owned(),
            weights: weights.to_string(),
            path: self.model.path.clone(),
            files: self.model.files.clone(),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
