//! How long sequences may get, and how many KV blocks there are.

use crate::model_file::ModelConfig;
use crate::options::{DEFAULT_CONTEXT, DEFAULT_KV_BYTES, EngineOptions, KvCapacity};
use crate::runner::StepLimits;
use crate::{EngineError, Result};
use halite_kernels::DType;
use halite_kernels::attention::AttentionCompute;
use halite_kernels::cache::KvSpec;

/// What there is room for, decided before anything is allocated.
pub(super) struct Capacity {
    /// The most tokens of a sequence.
    pub(super) context: usize,
    /// The KV cache's shape.
    pub(super) kv: KvSpec,
    /// In which arithmetic attention computes.
    pub(super) compute: AttentionCompute,
    /// KV blocks.
    pub(super) kv_blocks: usize,
    /// The largest step.
    pub(super) limits: StepLimits,
    /// Tokens that may be drawn.
    pub(super) drawn_tokens: usize,
    /// Rows whose logits are computed at a time.
    pub(super) max_output_rows: usize,
}

impl Capacity {
    pub(super) fn new(config: &ModelConfig, options: &EngineOptions) -> Result<Self> {
        let context = context(config, options)?;
        let kv = KvSpec::new(config.layers, config.kv_heads, config.head_dim)
            .with_block_size(options.block_size)
            .with_format(options.kept_kv_format());
        Ok(Self {
            context,
            kv_blocks: kv_blocks(&kv, context, options)?,
            kv,
            compute: options.attention_compute,
            limits: StepLimits { max_tokens: options.max_batch_tokens, max_sequences: options.max_sequences },
            drawn_tokens: options.drawn_tokens.unwrap_or(config.vocabulary).min(config.vocabulary),
            max_output_rows: (LOGITS_BYTES / (config.vocabulary * DType::F32.size()))
                .clamp(1, options.max_batch_tokens),
        })
    }
}

/// Logits take no more memory than this, unless one row does.
const LOGITS_BYTES: usize = 64 << 20;

/// Tokens a sequence has room for in [`KvCapacity::Auto`], where all run at once.
const AUTO_TOKENS_PER_SEQUENCE: usize = 256;

/// The most tokens of a sequence.
fn context(config: &ModelConfig, options: &EngineOptions) -> Result<usize> {
    match options.context {
        None => Ok(config.context.min(DEFAULT_CONTEXT)),
        Some(tokens) if (2..=config.context).contains(&tokens) => Ok(tokens),
        Some(tokens) => {
            let expected = format!("2 to {}, which the model was made for", config.context);
            Err(EngineError::option("context", expected, tokens.to_string()))
        }
    }
}

/// The number of KV blocks.
fn kv_blocks(spec: &KvSpec, context: usize, options: &EngineOptions) -> Result<usize> {
    let block_bytes = spec.block_bytes()?;
    let within = |bytes: u64| usize::try_from(bytes / block_bytes).unwrap_or(usize::MAX);
    let blocks = match options.kv {
        KvCapacity::Auto => {
            let tokens = context.max(options.max_sequences.saturating_mul(AUTO_TOKENS_PER_SEQUENCE));
            tokens.div_ceil(options.block_size).min(within(DEFAULT_KV_BYTES).max(1))
        }
        KvCapacity::Bytes(bytes) => within(bytes),
        KvCapacity::Tokens(tokens) => tokens.div_ceil(options.block_size),
    };
    // Also refuses what no offset reaches.
    if blocks == 0 || spec.cache_bytes(blocks).is_err() {
        let expected = format!("1 to {} blocks of {block_bytes} bytes", i32::MAX);
        return Err(EngineError::option("kv", expected, format!("{:?}", options.kv)));
    }
    Ok(blocks)
}
