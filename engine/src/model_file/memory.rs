//! What memory a model will need, from its hyper-parameters alone.

use super::{LayerPart, MatrixFormat, ModelConfig};
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
        let Counts { table, matrices, routers, vectors } = self.counts();
        matrices + routers + vectors + table * if self.tied { 1 } else { 2 }
    }

    /// The memory that the model takes with weights of one format and keys and values of another.
    pub fn memory(&self, weights: WeightsFormat, kv: KvFormat) -> MemoryNeeded {
        let Counts { routers, vectors, .. } = self.counts();
        let of_table = |format: MatrixFormat| format.bytes(self.vocabulary as u64, self.hidden as u64);
        let kv = KvSpec::new(self.layers, self.kv_heads, self.head_dim).with_block_size(1).with_format(kv);
        MemoryNeeded {
            weights: of_table(MatrixFormat::of(self.table_format(weights)))
                + of_table(self.output_format(weights))
                + self.matrices(weights)
                + (routers + vectors) * 4,
            kv_per_token: kv.block_bytes().unwrap_or(u64::MAX),
        }
    }

    /// Bytes of the layers' matrices.
    fn matrices(&self, weights: WeightsFormat) -> u64 {
        let parts = LayerPart::shapes(self);
        let of_layer = |layer: usize| -> u64 {
            let bytes = parts.iter().map(|(part, shape)| match (part.matrix(), shape.as_slice()) {
                (Some(matrix), &[rows, columns]) => {
                    self.matrix_format(weights, layer, matrix).bytes(rows as u64, columns as u64)
                }
                _ => 0,
            });
            bytes.sum()
        };
        (0..self.layers).map(of_layer).sum()
    }

    fn counts(&self) -> Counts {
        let (table, vectors) = (self.vocabulary as u64 * self.hidden as u64, self.hidden as u64);
        let mut counts = Counts { table, matrices: 0, routers: 0, vectors };
        for (part, shape) in LayerPart::shapes(self) {
            let of =
                |dims: &[usize]| dims.iter().map(|&dim| dim as u64).product::<u64>() * self.layers as u64;
            match shape.as_slice() {
                dims if part == LayerPart::Router => counts.routers += of(dims),
                dims @ [_, _] => counts.matrices += of(dims),
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
    /// Of the routers, which are kept in F32.
    routers: u64,
    /// Of all vectors.
    vectors: u64,
}
