//! The memory of one layer, and the records that its blocks have there.

use super::records::Records;
use crate::{
    device::Wgpu,
    memory::{ALIGNMENT, WgpuBuffer},
    operand::Operand,
};
use halite_hal::{DType, Device, Error, Result};
use halite_kernels::cache::KvSpec;

/// Keys `[blocks, block_size, kv_heads, head_dim]`, values likewise, and for each of the two, where there are some, scales
/// `[blocks, block_size, kv_heads]`. Rows lie in the order of slots, as they are written and as the canonical layout has
/// them, so that whole blocks go out and in as they are.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) keys: WgpuBuffer,
    /// Of no bytes where values are part of the keys.
    pub(super) values: WgpuBuffer,
    /// The keys', then the values', which begin at `value_scales`.
    pub(super) scales: WgpuBuffer,
}

/// A kind of records, in the order of the canonical layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Keys,
    KeyScales,
    Values,
    ValueScales,
}

pub(super) const KINDS: [Kind; 4] = [Kind::Keys, Kind::KeyScales, Kind::Values, Kind::ValueScales];

impl Kind {
    /// Bytes of a block's record of this kind in one layer.
    pub(super) fn bytes(self, spec: &KvSpec) -> usize {
        let [keys, key_scales, values, value_scales] = spec.record_bytes();
        match self {
            Kind::Keys => keys,
            Kind::KeyScales => key_scales,
            Kind::Values => values,
            Kind::ValueScales => value_scales,
        }
    }
}

impl Layer {
    /// Allocates a layer of so many blocks; the spec's sizes do not overflow.
    pub(super) fn alloc(device: &Wgpu, spec: &KvSpec, blocks: usize) -> Result<Self> {
        let limit = device.largest_binding();
        let alloc = |argument: &'static str, bytes: usize| {
            // A dispatch reaches all blocks of a layer.
            let got = bytes as u64;
            if got > limit {
                return Err(Error::Limit { operator: "cache", argument, got, limit });
            }
            device.alloc(got)
        };
        let scales = blocks * Kind::ValueScales.bytes(spec);
        let scales = if scales > 0 { value_scales(spec, blocks) + scales } else { 0 };
        Ok(Layer {
            keys: alloc(
                "bytes of a layer's keys (bound at once: fewer tokens, or INT8)",
                blocks * Kind::Keys.bytes(spec),
            )?,
            values: alloc(
                "bytes of a layer's values (bound at once: fewer tokens, or INT8)",
                blocks * Kind::Values.bytes(spec),
            )?,
            scales: alloc("bytes of a layer's scales (bound at once: fewer tokens)", scales)?,
        })
    }

    /// All records of a kind.
    pub(super) fn records(&self, kind: Kind, spec: &KvSpec, blocks: usize) -> Records {
        let memory = self.operand(kind, spec, blocks);
        Records { memory, first: 0, stride: kind.bytes(spec) }
    }

    /// The elements or the scales of all blocks.
    pub(super) fn operand(&self, kind: Kind, spec: &KvSpec, blocks: usize) -> Operand {
        let len = (blocks * kind.bytes(spec)) as u64;
        let element = spec.format.element();
        match kind {
            Kind::Keys => Operand::bytes(&self.keys, 0..len, element),
            Kind::Values => Operand::bytes(&self.values, 0..len, element),
            Kind::KeyScales => Operand::bytes(&self.scales, 0..len, DType::F32),
            Kind::ValueScales => {
                let start = value_scales(spec, blocks) as u64;
                Operand::bytes(&self.scales, start..start + len, DType::F32)
            }
        }
    }
}

/// Where the scales of values begin behind those of keys, in bytes: where an allocation might.
pub(super) fn value_scales(spec: &KvSpec, blocks: usize) -> usize {
    (blocks * Kind::KeyScales.bytes(spec)).next_multiple_of(ALIGNMENT as usize)
}
