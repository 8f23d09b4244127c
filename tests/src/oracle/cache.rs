//! The KV cache as a plain array of token slots; formulas and layout from `halite_kernels::cache`.

use super::quantize::by_the_letter;
use crate::poison::{decode, encode, pattern};
use halite_hal::DType;
use halite_kernels::cache::{KvFormat, KvSpec, KvValues};
use std::ops::Range;

/// A cache in the canonical layout: block, layer, keys `[block_size, kv_heads, head_dim]` and their scales
/// `[block_size, kv_heads]` where there are some, then values and theirs where they are not part of the keys.
#[derive(Clone, Debug)]
pub struct Blocks {
    spec: KvSpec,
    /// All blocks, one after the other.
    pub bytes: Vec<u8>,
}

/// A kind of rows in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `[kv_heads, head_dim]` a token.
    Keys,
    /// `[kv_heads, value_head_dim]` a token; nothing where they are part of the keys.
    Values,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Keys, Kind::Values];

    /// Stored elements of a row.
    pub fn dim(self, spec: &KvSpec) -> usize {
        match (self, spec.values) {
            (Kind::Keys, _) => spec.head_dim,
            (Kind::Values, KvValues::KeyPrefix) => 0,
            (Kind::Values, _) => spec.value_head_dim,
        }
    }
}

impl Blocks {
    /// Blocks with these contents.
    pub fn of(spec: &KvSpec, bytes: Vec<u8>) -> Self {
        Blocks { spec: spec.clone(), bytes }
    }

    /// All slots poisoned.
    pub fn poisoned(spec: &KvSpec, blocks: usize) -> Self {
        let rows = spec.block_size * spec.kv_heads;
        let scales = if spec.format.scale_bytes() > 0 { rows } else { 0 };
        let plane = |kind: Kind| {
            let elements = pattern(spec.format.element()).repeat(rows * kind.dim(spec));
            [elements, pattern(DType::F32).repeat(scales)].concat()
        };
        let layer = [plane(Kind::Keys), plane(Kind::Values)].concat();
        Blocks { spec: spec.clone(), bytes: layer.repeat(spec.layers * blocks) }
    }

    /// Bytes of one block.
    pub fn block_bytes(&self) -> usize {
        let layer = self.plane_bytes(Kind::Keys) + self.plane_bytes(Kind::Values);
        self.spec.layers * layer
    }

    /// Bytes of a kind's elements and scales in one layer of one block.
    fn plane_bytes(&self, kind: Kind) -> usize {
        let format = self.spec.format;
        let row = kind.dim(&self.spec) * format.element().size() + format.scale_bytes();
        self.spec.block_size * self.spec.kv_heads * row
    }

    /// Where a token's elements lie, and where its scales.
    fn places(&self, kind: Kind, layer: usize, slot: usize) -> (Range<usize>, Range<usize>) {
        let KvSpec { layers, kv_heads, block_size, format, .. } = self.spec;
        let (block, place) = (slot / block_size, slot % block_size);
        let [keys, values] = Kind::ALL.map(|kind| self.plane_bytes(kind));
        let layer_start = (block * layers + layer) * (keys + values);
        let start = layer_start + if kind == Kind::Keys { 0 } else { keys };
        let token = kv_heads * kind.dim(&self.spec) * format.element().size();
        let elements = start + place * token;
        let scales = start + block_size * token + place * kv_heads * format.scale_bytes();
        (elements..elements + token, scales..scales + kv_heads * format.scale_bytes())
    }

    /// Writes one token's keys `[kv_heads, head_dim]` and values `[kv_heads, value_head_dim]`, none where they are part
    /// of the keys; INT8 by the letter of the formula.
    pub fn write(&mut self, layer: usize, slot: usize, k: &[f32], v: &[f32]) {
        for (kind, data) in Kind::ALL.into_iter().zip([k, v]) {
            match self.spec.format {
                KvFormat::Int8PerTokenHead => {
                    let rows = data.chunks_exact(kind.dim(&self.spec)).map(by_the_letter);
                    let (q, scales): (Vec<Vec<i8>>, Vec<f32>) = rows.unzip();
                    self.put_int8(kind, layer, slot, &q.concat(), &scales);
                }
                other => {
                    let (elements, _) = self.places(kind, layer, slot);
                    let bytes: Vec<u8> = data.iter().flat_map(|&x| encode(other.element(), x)).collect();
                    self.bytes[elements].copy_from_slice(&bytes);
                }
            }
        }
    }

    /// Writes one token's INT8 rows of a kind with their scales.
    pub fn put_int8(&mut self, kind: Kind, layer: usize, slot: usize, q: &[i8], scales: &[f32]) {
        let (elements, places) = self.places(kind, layer, slot);
        self.bytes[elements].iter_mut().zip(q).for_each(|(to, q)| *to = *q as u8);
        let scales: Vec<u8> = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        self.bytes[places].copy_from_slice(&scales);
    }

    /// Takes one token as other blocks have it.
    pub fn take(&mut self, layer: usize, slot: usize, from: &Blocks) {
        for kind in Kind::ALL {
            let (elements, scales) = self.places(kind, layer, slot);
            for range in [elements, scales] {
                self.bytes[range.clone()].copy_from_slice(&from.bytes[range]);
            }
        }
    }

    /// One token's elements of a kind, without their scales.
    pub fn elements(&self, kind: Kind, layer: usize, slot: usize) -> Vec<f64> {
        let (dtype, (elements, _)) = (self.spec.format.element(), self.places(kind, layer, slot));
        self.bytes[elements].chunks_exact(dtype.size()).map(|bytes| decode(dtype, bytes)).collect()
    }

    /// One token's scales of a kind, one a head; none for floats.
    pub fn scales(&self, kind: Kind, layer: usize, slot: usize) -> Vec<f64> {
        let (_, scales) = self.places(kind, layer, slot);
        self.bytes[scales].chunks_exact(4).map(|bytes| decode(DType::F32, bytes)).collect()
    }

    /// One token's keys or values as attention reads them: INT8 as the F32 product of element and scale.
    pub fn values(&self, kind: Kind, layer: usize, slot: usize) -> Vec<f64> {
        let (mut values, scales) = (self.elements(kind, layer, slot), self.scales(kind, layer, slot));
        for (row, scale) in values.chunks_exact_mut(kind.dim(&self.spec)).zip(scales) {
            row.iter_mut().for_each(|x| *x = f64::from(*x as f32 * scale as f32));
        }
        values
    }

    /// One token's keys and values as attention reads them.
    pub fn read(&self, layer: usize, slot: usize) -> (Vec<f64>, Vec<f64>) {
        let keys = self.values(Kind::Keys, layer, slot);
        let values = match self.spec.values {
            KvValues::KeyPrefix => {
                let rows = keys.chunks_exact(self.spec.head_dim);
                rows.flat_map(|row| row[..self.spec.value_head_dim].to_vec()).collect()
            }
            _ => self.values(Kind::Values, layer, slot),
        };
        (keys, values)
    }

    /// One block's bytes.
    pub fn block(&self, block: usize) -> &[u8] {
        &self.bytes[block * self.block_bytes()..][..self.block_bytes()]
    }

    /// Copies blocks, all reads before all writes.
    pub fn copy(&mut self, pairs: &[(u32, u32)]) {
        let before = self.clone();
        self.copy_from(&before, pairs);
    }

    /// Copies blocks of another cache into this one.
    pub fn copy_from(&mut self, from: &Blocks, pairs: &[(u32, u32)]) {
        let size = self.block_bytes();
        for &(source, to) in pairs {
            self.bytes[to as usize * size..][..size].copy_from_slice(from.block(source as usize));
        }
    }
}
