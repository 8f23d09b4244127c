//! From a model's name, as a person gives it, to a file on this machine.

use crate::cli::CacheArgs;
use crate::progress::{Progress, Stage, Unit};
use halite_engine::store::{self, Cache, KNOWN_MODELS, Phase};
use indicatif::HumanBytes;
use std::path::PathBuf;

/// The model of those who name none.
pub(crate) use halite_engine::store::DEFAULT_MODEL;

/// The path of a named model, fetched if it is not there, or the path given.
pub(crate) fn find(name: &str, cache: &CacheArgs, progress: &Progress) -> anyhow::Result<PathBuf> {
    let cache = Cache::open(cache.dir.clone())?;
    tracing::debug!(folder = %cache.folder().display(), "the cache");
    let mut shown: Option<(&str, Stage)> = None;
    let mut show = |phase: Phase| {
        let (verb, done, total) = match phase {
            Phase::WaitingForOther => ("waiting for another program that fetches", 0, None),
            Phase::Downloading { bytes, total } => ("downloading", bytes, total),
            Phase::Extracting { bytes, total } => ("extracting", bytes, Some(total)),
            Phase::Verifying { bytes, total } => ("verifying", bytes, Some(total)),
            _ => return,
        };
        if shown.as_ref().is_none_or(|(before, _)| *before != verb) {
            // The bar before goes first.
            shown = None;
            shown = Some((verb, progress.stage(&format!("{verb} {name}"), Unit::Bytes, total)));
        }
        if let Some((_, stage)) = &mut shown {
            stage.set(done);
        }
    };
    Ok(store::obtain(name, &cache, &mut show)?)
}

/// The models that have names, for the help texts.
pub(crate) fn known_models() -> String {
    let models = KNOWN_MODELS.iter().map(|model| {
        let size = HumanBytes(model.file.bytes);
        format!("\n  {:<16}{}, {size}, {}", model.name, model.file.name, model.licence)
    });
    format!("Models:{}", models.collect::<String>())
}
