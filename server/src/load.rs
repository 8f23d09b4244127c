//! From a model's name to an engine.

use crate::cli::{Device, LoadArgs};
use crate::model_file;
use crate::progress::{Progress, Unit};
use anyhow::Context;
use halite_engine::model_file::ModelFile;
use halite_engine::weights_cache::WeightsCache;
use halite_engine::{Engine, EngineOptions, LoadProgress, LoadStep};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A model's file or folder, fetched if need be, open and checked.
pub(crate) struct OpenModel {
    /// As the person named it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn ModelFile>,
    device: Device,
    /// Where its converted weights are kept.
    weights: Option<WeightsCache>,
}

/// Opens the device that the arguments name, finds a model by name or path and opens its file. The device first: nobody
/// fetches a model for one that is not there.
pub(crate) fn open(name: &str, args: &LoadArgs, progress: &Progress) -> anyhow::Result<OpenModel> {
    let device = args.device.open(&args.cache)?;
    let path = model_file::find(name, &args.cache, progress)?;
    tracing::info!(path = %path.display(), "opening the model");
    // Before the model is opened, so that one that is replaced meanwhile is noticed.
    let weights = if args.no_weights_cache { None } else { weights_cache(&path, args) };
    let file = halite_engine::model_file::open(&path)?;
    Ok(OpenModel { name: name.to_owned(), path, file, device, weights })
}

/// Where a model's converted weights are kept. Without such a place they are converted at each start.
fn weights_cache(model: &Path, args: &LoadArgs) -> Option<WeightsCache> {
    let folder = model_file::open(&args.cache).ok()?.weights_folder();
    match WeightsCache::new(folder, model) {
        Ok(cache) => Some(cache),
        Err(error) => {
            tracing::debug!(%error, "the model's state is not known; its weights are not kept");
            None
        }
    }
}

/// Loads an open model onto its device.
pub(crate) fn load(
    model: &OpenModel,
    options: &EngineOptions,
    progress: &Progress,
) -> anyhow::Result<Engine> {
    let started = Instant::now();
    let options = match &model.weights {
        Some(cache) => &options.clone().weights_cache(cache.clone()),
        None => options,
    };
    let title = format!("loading {} as {}", model.name, options.weights);
    let (mut stage, mut step) = (Some(progress.stage(&title, Unit::Bytes, None)), None);
    let mut show = |loaded: LoadProgress<'_>| {
        tracing::debug!(step = ?loaded.step, tensor = loaded.tensor, "loading");
        if loaded.step == LoadStep::Keeping && step != Some(loaded.step) {
            // The bar before goes first.
            drop(stage.take());
            let title = "keeping the converted weights for later starts";
            stage = Some(progress.stage(title, Unit::Bytes, None));
        }
        step = Some(loaded.step);
        if let Some(stage) = &mut stage {
            stage.expect(loaded.total);
            stage.set(loaded.done);
        }
    };
    let file = &*model.file;
    let engine = match &model.device {
        Device::Cpu(device) => Engine::from_file(device.clone(), file, options, &mut show),
        #[cfg(feature = "wgpu")]
        Device::Wgpu(device) => Engine::from_file(device.clone(), file, options, &mut show),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => Engine::from_file(device.clone(), file, options, &mut show),
    };
    let engine = engine.with_context(|| format!("cannot load {}", model.path.display()))?;
    drop(stage);
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    let engine = crate::warm_up::warmed_up(engine, &model.device, progress)?;
    let info = engine.describe();
    tracing::info!(
        seconds = started.elapsed().as_secs_f64(),
        parameters = info.parameters,
        weight_bytes = info.weight_bytes,
        restored = info.weights_restored,
        kv_bytes = info.kv_bytes,
        context = info.context,
        "loaded"
    );
    Ok(engine)
}
