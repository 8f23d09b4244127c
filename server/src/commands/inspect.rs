//! `halite inspect`: what a model is, what it will need, and what stands in its way.

use crate::cli::CacheArgs;
use crate::model_file;
use crate::output;
use crate::progress::Progress;
use clap::Args;
use halite_engine::model_file::{ModelConfig, ModelFile};
use halite_engine::{DEFAULT_CONTEXT, WeightsFormat};
use indicatif::{BinaryBytes, HumanBytes, HumanCount};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most characters that are shown of a text out of the file.
const LONGEST: usize = 256;

/// Tell what a model is, what memory it will need, and what of it is not supported, and why
///
/// Nothing is loaded: headers and texts are read. A model that cannot be run is no error here.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or a model's folder
    #[arg(value_name = "MODEL")]
    model: String,

    /// Write JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    cache: CacheArgs,
}

#[derive(Serialize)]
struct Report {
    path: String,
    architecture: Option<String>,
    supported: bool,
    /// Why it is not.
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Model>,
    stored: Vec<Stored>,
    chat_template: bool,
}

/// Tensors of one element type.
#[derive(Serialize)]
struct Stored {
    element_type: String,
    tensors: usize,
    /// `null`: the type is not read, and its size not known.
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Model {
    name: Option<String>,
    parameters: u64,
    layers: usize,
    hidden: usize,
    query_heads: usize,
    kv_heads: usize,
    head_dim: usize,
    /// Of an expert, where there are experts.
    feed_forward: usize,
    /// `null`: feed-forward layers are one network each.
    experts: Option<Experts>,
    vocabulary: usize,
    context: usize,
    /// How many positions the layers of each kind see; `null`: all.
    windows: Vec<Option<usize>>,
    memory: Vec<Memory>,
}

/// A mixture of experts.
#[derive(Serialize)]
struct Experts {
    count: usize,
    per_token: usize,
}

/// What it takes with weights of one format, and keys and values as go with them.
#[derive(Serialize)]
struct Memory {
    weights: String,
    weight_bytes: u64,
    kv_type: String,
    kv_bytes_per_token: u64,
    /// Of the context that is taken when none is asked for.
    kv_context: usize,
    kv_bytes: u64,
}

pub(crate) fn execute(args: &InspectArgs, progress: &Progress) -> anyhow::Result<()> {
    let path = model_file::find(&args.model, &args.cache, progress)?;
    let file = halite_engine::model_file::open(&path)?;
    let report = report(path.display().to_string(), &*file);
    if args.json { output::write_json(&report) } else { output::write(&text(&report)?) }
}

fn report(path: String, file: &dyn ModelFile) -> Report {
    let (config, texts, generation) = (file.config(), file.texts(), file.generation());
    let mut problems = Vec::new();
    let mut problem = |error: Option<&dyn std::error::Error>| problems.extend(error.map(ToString::to_string));
    problem(config.as_ref().err().map(|error| error as _));
    problem(texts.as_ref().err().map(|error| error as _));
    problem(generation.as_ref().err().map(|error| error as _));
    // The tokenizer's end tokens and the sampling defaults come from one file.
    problems.dedup();
    Report {
        path,
        architecture: file.architecture(),
        supported: problems.is_empty(),
        problems,
        model: config.ok().map(|config| model(&config)),
        stored: stored(file),
        chat_template: texts.is_ok_and(|texts| texts.template().is_some()),
    }
}

/// By element type, the largest part first.
fn stored(file: &dyn ModelFile) -> Vec<Stored> {
    let mut types: BTreeMap<String, Stored> = BTreeMap::new();
    for tensor in file.stored_tensors() {
        let element_type = tensor.element_type;
        let stored =
            types.entry(element_type.clone()).or_insert(Stored { element_type, tensors: 0, bytes: Some(0) });
        stored.tensors += 1;
        stored.bytes = stored.bytes.zip(tensor.bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
    }
    let mut stored: Vec<Stored> = types.into_values().collect();
    stored.sort_by_key(|stored| std::cmp::Reverse(stored.bytes));
    stored
}

fn model(config: &ModelConfig) -> Model {
    let kv_context = config.context.min(DEFAULT_CONTEXT);
    let memory = WeightsFormat::ALL.map(|weights| {
        let kv = weights.default_kv_format();
        let needed = config.memory(weights, kv);
        Memory {
            weights: weights.to_string(),
            weight_bytes: needed.weights,
            kv_type: kv.to_string(),
            kv_bytes_per_token: needed.kv_per_token,
            kv_context,
            kv_bytes: needed.kv_per_token.saturating_mul(kv_context as u64),
        }
    });
    Model {
        name: config.name.clone(),
        parameters: config.parameters(),
        layers: config.layers,
        hidden: config.hidden,
        query_heads: config.query_heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        feed_forward: config.ffn,
        experts: config
            .experts
            .as_ref()
            .map(|routing| Experts { count: routing.experts, per_token: routing.top_k }),
        vocabulary: config.vocabulary,
        context: config.context,
        windows: config.attention_kinds.iter().map(|kind| kind.window).collect(),
        memory: memory.into(),
    }
}

fn text(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "path          {}", report.path)?;
    writeln!(
        text,
        "architecture  {}",
        report.architecture.as_deref().map_or("not named".to_owned(), one_line)
    )?;
    for (index, stored) in report.stored.iter().enumerate() {
        let label = if index == 0 { "stored as" } else { "" };
        let bytes = stored.bytes.map_or("not read".to_owned(), |bytes| HumanBytes(bytes).to_string());
        writeln!(text, "{label:<14}{:<6} {:>5} tensors, {bytes}", stored.element_type, stored.tensors)?;
    }
    if let Some(model) = &report.model {
        model_text(&mut text, model)?;
    }
    writeln!(text, "chat template {}", if report.chat_template { "yes" } else { "no: `halite run --raw`" })?;
    writeln!(text, "supported     {}", if report.supported { "yes" } else { "no" })?;
    for problem in &report.problems {
        writeln!(text, "              - {problem}")?;
    }
    Ok(text)
}

fn model_text(text: &mut String, model: &Model) -> std::fmt::Result {
    if let Some(name) = &model.name {
        writeln!(text, "name          {}", one_line(name))?;
    }
    writeln!(text, "parameters    {}", HumanCount(model.parameters))?;
    writeln!(
        text,
        "shape         {} layers of {}, feed-forward {}, {} query and {} KV heads of {}",
        model.layers, model.hidden, model.feed_forward, model.query_heads, model.kv_heads, model.head_dim
    )?;
    if let Some(Experts { count, per_token }) = &model.experts {
        writeln!(text, "experts       {count} a layer, {per_token} of them a token")?;
    }
    for window in model.windows.iter().flatten() {
        let which = if model.windows.len() == 1 { "all layers see" } else { "some layers see" };
        writeln!(text, "window        {which} the last {} tokens", HumanCount(*window as u64))?;
    }
    writeln!(text, "vocabulary    {} tokens", HumanCount(model.vocabulary as u64))?;
    writeln!(text, "context       {} tokens", HumanCount(model.context as u64))?;
    for (index, memory) in model.memory.iter().enumerate() {
        let label = if index == 0 { "memory needed" } else { "" };
        writeln!(
            text,
            "{label:<14}--weights {:<5} {} + KV cache in {} {} a token, {} for {} tokens",
            memory.weights,
            BinaryBytes(memory.weight_bytes),
            memory.kv_type,
            BinaryBytes(memory.kv_bytes_per_token),
            BinaryBytes(memory.kv_bytes),
            HumanCount(memory.kv_context as u64),
        )?;
    }
    Ok(())
}

/// A text of the file's, which may hold anything: it must not write lines of its own, nor steer the terminal.
fn one_line(text: &str) -> String {
    let harmless = text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    harmless.take(LONGEST).collect()
}
