//! What memory a model will need, from its hyper-parameters alone.

use super::{LayerPart, ModelConfig};
use crate::WeightsFormat;
use halite_kernels::cache::{KvFormat, KvSpec};

/// Bytes of memory, by what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryNeeded {
    /// Weights as they are kept, the embedding table and the output layer each for itself.
    pub weights: u64,
    /// The KV cache of one token, in all layers.
    pub kv_per_token: u64,
}

impl ModelConfig {
    /// Values of all weights, a tied output layer counted once.
    pub fn parameters(&self) -> u64 {
        let [table, matrices, vectors] = self.values();
        matrices + vectors + table * if self.tied { 1 } else { 2 }
    }

    /// The memory that the model takes with weights of one format and keys and values of another.
    pub fn memory(&self, weights: WeightsFormat, kv: KvFormat) -> MemoryNeeded {
        let [table, matrices, vectors] = self.values();
        let of = |format: WeightsFormat, values: u64, rows: u64| match format {
            WeightsFormat::W8a8 => values + rows * 4,
            WeightsFormat::Bf16 => values * 2,
            WeightsFormat::F32 => values * 4,
        };
        let vocabulary = self.vocabulary as u64;
        let rows = (self.query_width() + 2 * self.kv_width() + 2 * self.hidden + 2 * self.ffn) * self.layers;
        let kv = KvSpec::new(self.layers, self.kv_heads, self.head_dim).with_block_size(1).with_format(kv);
        MemoryNeeded {
            weights: of(self.table_format(weights), table, vocabulary)
                + of(weights.output_layer(), table, vocabulary)
                + of(weights, matrices, rows as u64)
                + vectors * 4,
            kv_per_token: kv.block_bytes().unwrap_or(u64::MAX),
        }
    }

    /// Values of the embedding table, of the layers' matrices, and of all vectors.
    fn values(&self) -> [u64; 3] {
        let (mut matrices, mut vectors) = (0, self.hidden as u64);
        for (_, shape) in LayerPart::shapes(self) {
            let values = shape.iter().map(|&dim| dim as u64).product::<u64>() * self.layers as u64;
            *(if shape.len() == 2 { &mut matrices } else { &mut vectors }) += values;
        }
        [self.vocabulary as u64 * self.hidden as u64, matrices, vectors]
    }
}
