//! From a model's name, as a person gives it, to a file or folder on this machine.

use crate::cli::CacheArgs;
use crate::progress::{Progress, Stage, Unit};
use anyhow::bail;
use halite_engine::store::{self, Cache, Hub, KNOWN_MODELS, Located, Phase, StoreError};
use indicatif::HumanBytes;
use std::path::PathBuf;

/// The model of those who name none.
pub(crate) use halite_engine::store::DEFAULT_MODEL;

/// The path of a named model or of one on the hub, fetched if it is not there, or the path given: a .gguf file, or a
/// folder that holds a model.
pub(crate) fn find(name: &str, cache: &CacheArgs, progress: &Progress) -> anyhow::Result<PathBuf> {
    let cache = open(cache)?;
    Ok(store::obtain(name, &cache, &mut show(name, progress))?)
}

/// As [`find`], but asks the hub for what has changed there; `file` is the one of several GGUF files.
pub(crate) fn pull(
    name: &str,
    file: Option<&str>,
    cache: &CacheArgs,
    progress: &Progress,
) -> anyhow::Result<PathBuf> {
    let cache = open(cache)?;
    let mut show = show(name, progress);
    match (store::locate(name)?, file) {
        (Located::Hub(model), None) => Ok(Hub::from_env(&cache).pull(&model, &mut show)?),
        (Located::Hub(model), Some(file)) => {
            let model = model.with_file(file).map_err(StoreError::from)?;
            Ok(Hub::from_env(&cache).pull(&model, &mut show)?)
        }
        (_, None) => Ok(store::obtain(name, &cache, &mut show)?),
        (_, Some(_)) => {
            bail!("--file chooses among the files of a model on the hub, ORG/NAME; {name} is none")
        }
    }
}

/// The model if it is here already.
pub(crate) fn cached(name: &str, cache: &CacheArgs) -> Option<PathBuf> {
    store::cached(name, &open(cache).ok()?).ok()
}

/// The cache that the arguments name.
pub(crate) fn open(cache: &CacheArgs) -> anyhow::Result<Cache> {
    let cache = Cache::open(cache.dir.clone())?;
    tracing::debug!(folder = %cache.folder().display(), hub = %cache.hub_folder().display(), "the cache");
    Ok(cache)
}

/// Shows what a fetch does.
fn show(name: &str, progress: &Progress) -> impl FnMut(Phase) {
    let mut shown: Option<(String, Stage)> = None;
    move |phase: Phase| {
        let (title, done, total) = match phase {
            Phase::WaitingForOther => (format!("waiting for another program that fetches {name}"), 0, None),
            Phase::Listing => (format!("asking the hub for {name}"), 0, None),
            Phase::Fetching { file, files, bytes, total, resumed } => {
                let number = if files > 1 { format!(", file {file} of {files}") } else { String::new() };
                let before = match resumed {
                    0 => String::new(),
                    _ => format!(", of which {} were here already", HumanBytes(resumed)),
                };
                (format!("downloading {name}{number}{before}"), bytes, Some(total))
            }
            Phase::Downloading { bytes, total } => (format!("downloading {name}"), bytes, total),
            Phase::Extracting { bytes, total } => (format!("extracting {name}"), bytes, Some(total)),
            Phase::Verifying { bytes, total } => (format!("verifying {name}"), bytes, Some(total)),
            _ => return,
        };
        if shown.as_ref().is_none_or(|(before, _)| *before != title) {
            // The bar before goes first.
            shown = None;
            let stage = progress.stage(&title, Unit::Bytes, total);
            shown = Some((title, stage));
        }
        if let Some((_, stage)) = &mut shown {
            if let Some(total) = total {
                stage.expect(total);
            }
            stage.set(done);
        }
    }
}

/// The models that have names, for the help texts.
pub(crate) fn known_models() -> String {
    let models = KNOWN_MODELS.iter().map(|model| {
        let size = HumanBytes(model.file.bytes);
        format!("\n  {:<16}{}, {size}, {}", model.name, model.file.name, model.licence)
    });
    format!("Models:{}", models.collect::<String>())
}
