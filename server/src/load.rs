//! From a model's name to an engine.

use crate::cli::{Device, LoadArgs};
use crate::model_file;
use crate::progress::{Progress, Unit};
use anyhow::Context;
use halite_engine::model_file::ModelFile;
use halite_engine::{Engine, EngineError, EngineOptions, LoadProgress};
use std::path::PathBuf;
use std::time::Instant;

/// A model's file or folder, fetched if need be, open and checked.
pub(crate) struct OpenModel {
    /// As the person named it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn ModelFile>,
}

/// Finds a model by name or path and opens its file.
pub(crate) fn open(name: &str, args: &LoadArgs, progress: &Progress) -> anyhow::Result<OpenModel> {
    let path = model_file::find(name, &args.cache, progress)?;
    tracing::info!(path = %path.display(), "opening the model");
    let file = halite_engine::model_file::open(&path)?;
    Ok(OpenModel { name: name.to_owned(), path, file })
}

/// Loads an open model onto the device that the arguments name.
pub(crate) fn load(
    model: &OpenModel,
    args: &LoadArgs,
    options: &EngineOptions,
    progress: &Progress,
) -> anyhow::Result<Engine> {
    let device = args.device.open(&args.cache)?;
    let started = Instant::now();
    let mut stage =
        progress.stage(&format!("loading {} as {}", model.name, options.weights), Unit::Bytes, None);
    let mut show = |loaded: LoadProgress<'_>| {
        tracing::debug!(tensor = loaded.tensor, "converted");
        stage.expect(loaded.total);
        stage.set(loaded.done);
    };
    let file = &*model.file;
    // Kernels of a GPU are compiled when they are first used.
    let compiles = !matches!(device, Device::Cpu(_));
    let engine = match device {
        Device::Cpu(device) => Engine::from_file(device, file, options, &mut show),
        #[cfg(feature = "wgpu")]
        Device::Wgpu(device) => Engine::from_file(device, file, options, &mut show),
    };
    let mut engine = engine.with_context(|| format!("cannot load {}", model.path.display()))?;
    drop(stage);
    if compiles {
        let _stage = progress.stage("compiling kernels, which later starts need not", Unit::Steps, None);
        warm_up(&mut engine).context("the device fails the first steps")?;
    }
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

/// The two kinds of steps that answers are made of, before anybody waits for one: many rows, and one.
fn warm_up(engine: &mut Engine) -> Result<(), EngineError> {
    let info = engine.describe();
    let room = info.context.min(info.kv_blocks * info.block_size);
    for tokens in [WARM_UP_TOKENS, 2] {
        engine.score(&vec![0; tokens.min(room)])?;
    }
    Ok(())
}

/// More rows than any kernel for few of them takes.
const WARM_UP_TOKENS: usize = 64;
