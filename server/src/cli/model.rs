//! Which model, and how it is kept in memory.

use super::DeviceArgs;
use clap::Args;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use halite_engine::{AttentionCompute, EngineOptions, KvFormat, ValueProducts, WeightsFormat};
use halite_hal::DType;
use std::path::PathBuf;

/// How a model is loaded, for all commands that load one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model options")]
pub(crate) struct LoadArgs {
    /// How weights are kept, whatever the file holds: 8-bit integers with 8-bit activations, 4-bit integers with 8-bit activations (the output layer in 8 bits), BF16, or F32
    #[arg(long, value_name = "FORMAT", default_value_t = WeightsFormat::default(), value_parser = weights())]
    pub(crate) weights: WeightsFormat,

    /// How keys and values are kept; int8 has a scale a token and head [default: f16 for w8a8 and w4a8, bf16 for bf16, f32 for f32]
    #[arg(long, value_name = "TYPE", value_parser = kv())]
    pub(crate) kv: Option<KvFormat>,

    /// In which arithmetic attention computes: floats; int8 for scores from INT8 products, which are faster with long prompts; or int8-values for all of it. Both go with --kv int8, which they choose, and cost accuracy
    #[arg(long, value_name = "ARITHMETIC", default_value = "float", value_parser = attention())]
    pub(crate) attention: AttentionCompute,

    /// Convert the weights at each start: neither take what an earlier start kept nor keep anything
    #[arg(long)]
    pub(crate) no_weights_cache: bool,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

impl LoadArgs {
    /// The engine's options that these arguments decide.
    pub(crate) fn options(&self) -> EngineOptions {
        let options = EngineOptions::new().weights(self.weights).attention_compute(self.attention);
        match self.kv {
            Some(format) => options.kv_format(format),
            None => options,
        }
    }
}

/// Where models are kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model options")]
pub(crate) struct CacheArgs {
    /// Where named models, those of the hub, converted weights (models/weights), and what was compiled for a GPU (models/pipelines, models/kernels) are kept [default: $HALITE_CACHE, or the user's cache folder and the hub's]
    #[arg(long = "cache", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

fn weights() -> impl TypedValueParser<Value = WeightsFormat> {
    PossibleValuesParser::new(WeightsFormat::ALL.map(WeightsFormat::name))
        .try_map(|name| name.parse::<WeightsFormat>())
}

fn kv() -> impl TypedValueParser<Value = KvFormat> {
    PossibleValuesParser::new(["f32", "f16", "bf16", "int8"]).map(|name| match &*name {
        "f16" => KvFormat::Float(DType::F16),
        "bf16" => KvFormat::Float(DType::Bf16),
        "int8" => KvFormat::Int8PerTokenHead,
        _ => KvFormat::Float(DType::F32),
    })
}

fn attention() -> impl TypedValueParser<Value = AttentionCompute> {
    PossibleValuesParser::new(["float", "int8", "int8-values"]).map(|name| match &*name {
        "int8" => AttentionCompute::Int8 { values: ValueProducts::Float },
        "int8-values" => AttentionCompute::Int8 { values: ValueProducts::Int8 },
        _ => AttentionCompute::Float,
    })
}

/// Counts from 1 on.
pub(crate) fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}
