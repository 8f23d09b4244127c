//! The KV cache as a plain array of token slots; formulas and layout from `halite_kernels::cache`.

use crate::poison::{decode, encode, pattern};
use halite_kernels::cache::KvSpec;

/// A cache in the canonical layout: block, layer, keys `[block_size, kv_heads, head_dim]`, then values.
#[derive(Clone, Debug)]
pub struct Blocks {
    spec: KvSpec,
    /// All blocks, one after the other.
    pub bytes: Vec<u8>,
}

impl Blocks {
    /// All slots poisoned.
    pub fn poisoned(spec: &KvSpec, blocks: usize) -> Self {
        let row = spec.head_dim + spec.value_head_dim;
        let elements = blocks * spec.layers * spec.block_size * spec.kv_heads * row;
        Blocks { spec: spec.clone(), bytes: pattern(spec.format.element()).repeat(elements) }
    }

    /// Bytes of one block.
    pub fn block_bytes(&self) -> usize {
        let KvSpec { layers, kv_heads, head_dim, value_head_dim, block_size, format, .. } = self.spec;
        layers * block_size * kv_heads * (head_dim + value_head_dim) * format.element().size()
    }

    /// The first elements of a token's keys and of its values.
    fn starts(&self, layer: usize, slot: usize) -> (usize, usize) {
        let KvSpec { layers, kv_heads, head_dim, value_head_dim, block_size, .. } = self.spec;
        let (block, place) = (slot / block_size, slot % block_size);
        let layer_elements = block_size * kv_heads * (head_dim + value_head_dim);
        let layer_start = (block * layers + layer) * layer_elements;
        let keys = layer_start + place * kv_heads * head_dim;
        let values = layer_start + block_size * kv_heads * head_dim + place * kv_heads * value_head_dim;
        (keys, values)
    }

    /// Writes one token's keys `[kv_heads, head_dim]` and values `[kv_heads, value_head_dim]`.
    pub fn write(&mut self, layer: usize, slot: usize, k: &[f32], v: &[f32]) {
        let (keys, values) = self.starts(layer, slot);
        let (dtype, size) = (self.spec.format.element(), self.spec.format.element().size());
        for (start, data) in [(keys, k), (values, v)] {
            for (i, &x) in data.iter().enumerate() {
                self.bytes[(start + i) * size..][..size].copy_from_slice(&encode(dtype, x));
            }
        }
    }

    /// One token's keys and values, as they are stored.
    pub fn read(&self, layer: usize, slot: usize) -> (Vec<f64>, Vec<f64>) {
        let (keys, values) = self.starts(layer, slot);
        let (dtype, size) = (self.spec.format.element(), self.spec.format.element().size());
        let read = |start: usize, heads: usize| {
            let element = |i| decode(dtype, &self.bytes[(start + i) * size..][..size]);
            (0..self.spec.kv_heads * heads).map(element).collect()
        };
        (read(keys, self.spec.head_dim), read(values, self.spec.value_head_dim))
    }

    /// One block's bytes.
    pub fn block(&self, block: usize) -> &[u8] {
        &self.bytes[block * self.block_bytes()..][..self.block_bytes()]
    }

    /// Copies blocks, all reads before all writes.
    pub fn copy(&mut self, pairs: &[(u32, u32)]) {
        let before = self.clone();
        let size = self.block_bytes();
        for &(from, to) in pairs {
            self.bytes[to as usize * size..][..size].copy_from_slice(before.block(from as usize));
        }
    }
}
