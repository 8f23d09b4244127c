//! From a model's name to an engine.

use crate::cli::{Device, LoadArgs};
use crate::model_file;
use crate::progress::{Progress, Unit};
use anyhow::Context;
use halite_engine::model_file::ModelFile;
use halite_engine::{Engine, EngineOptions, LoadProgress};
use std::path::PathBuf;
use std::time::Instant;

/// A model's file or folder, fetched if need be, open and checked.
pub(crate) struct OpenModel {
    /// As the person named it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn ModelFile>,
    device: Device,
}

/// Opens the device that the arguments name, finds a model by name or path and opens its file. The device first: nobody
/// fetches a model for one that is not there.
pub(crate) fn open(name: &str, args: &LoadArgs, progress: &Progress) -> anyhow::Result<OpenModel> {
    let device = args.device.open(&args.cache)?;
    let path = model_file::find(name, &args.cache, progress)?;
    tracing::info!(path = %path.display(), "opening the model");
    let file = halite_engine::model_file::open(&path)?;
    Ok(OpenModel { name: name.to_owned(), path, file, device })
}

/// Loads an open model onto its device.
pub(crate) fn load(
    model: &OpenModel,
    options: &EngineOptions,
    progress: &Progress,
) -> anyhow::Result<Engine> {
    let started = Instant::now();
    let mut stage =
        progress.stage(&format!("loading {} as {}", model.name, options.weights), Unit::Bytes, None);
    let mut show = |loaded: LoadProgress<'_>| {
        tracing::debug!(tensor = loaded.tensor, "converted");
        stage.expect(loaded.total);
        stage.set(loaded.done);
    };
    let file = &*model.file;
    let engine = match &model.device {
        Device::Cpu(device) => Engine::from_file(device.clone(), file, options, &mut show),
        #[cfg(feature = "wgpu")]
        Device::Wgpu(device) => Engine::from_file(device.clone(), file, options, &mut show),
    };
    let engine = engine.with_context(|| format!("cannot load {}", model.path.display()))?;
    drop(stage);
    #[cfg(feature = "wgpu")]
    let engine = crate::warm_up::warmed_up(engine, &model.device, progress)?;
    let info = engine.describe();
    tracing::info!(
        seconds = started.elapsed().as_secs_f64(),
        parameters = info.parameters,
        weight_bytes = info.weight_bytes,
        kv_bytes = info.kv_bytes,
        context = info.context,
        "loaded"
    );
    Ok(engine)
}
