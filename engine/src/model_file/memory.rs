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
        let Counts { table, matrices, routers, vectors, .. } = self.counts();
        matrices + routers + vectors + table * if self.tied { 1 } else { 2 }
    }

    /// The memory that the model takes with weights of one format and keys and values of another.
    pub fn memory(&self, weights: WeightsFormat, kv: KvFormat) -> MemoryNeeded {
        let Counts { table, matrices, rows, routers, vectors } = self.counts();
        let of = |format: WeightsFormat, values: u64, rows: u64| match format {
            WeightsFormat::W8a8 => values + rows * 4,
            WeightsFormat::Bf16 => values * 2,
            WeightsFormat::F32 => values * 4,
        };
        let vocabulary = self.vocabulary as u64;
        let kv = KvSpec::new(self.layers, self.kv_heads, self.head_dim).with_block_size(1).with_format(kv);
        MemoryNeeded {
            weights: of(self.table_format(weights), table, vocabulary)
                + of(weights.output_layer(), table, vocabulary)
                + of(weights, matrices, rows)
                + (routers + vectors) * 4,
            kv_per_token: kv.block_bytes().unwrap_or(u64::MAX),
        }
    }

    fn counts(&self) -> Counts {
        let (table, vectors) = (self.vocabulary as u64 * self.hidden as u64, self.hidden as u64);
        let mut counts = Counts { table, matrices: 0, rows: 0, routers: 0, vectors };
        for (part, shape) in LayerPart::shapes(self) {
            let of =
                |dims: &[usize]| dims.iter().map(|&dim| dim as u64).product::<u64>() * self.layers as u64;
            match shape.as_slice() {
                dims if part == LayerPart::Router => counts.routers += of(dims),
                dims @ [rows, _] => {
                    counts.matrices += of(dims);
                    counts.rows += of(&[*rows]);
                }
                dims => counts.vectors += of(dims),
            }
        }
        counts
    }
}

/// Values of a model's tensors.
struct Counts {
    /// Of the embedding table.
    table: u64,
    /// Of the layers' matrices.
    matrices: u64,
    /// Rows of these.
    rows: u64,
    /// Of the routers, which are kept in F32.
    routers: u64,
    /// Of all vectors.
    vectors: u64,
}
