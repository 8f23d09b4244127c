//! The memory of one layer, and the records that its blocks have there.

use halite_hal::{Device, Result};
use halite_kernels::cache::KvSpec;

use crate::{device::Ascend, memory::AscendBuffer};

/// Keys `[blocks, block_size, kv_heads, head_dim]`, values likewise, and scales `[blocks, block_size, kv_heads]` of each where
/// the format has some: rows in the order of slots, as the canonical layout has them, so that whole blocks go out and in as
/// they are. What a cache does not have is of no bytes.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) keys: AscendBuffer,
    pub(crate) values: AscendBuffer,
    pub(crate) key_scales: AscendBuffer,
    pub(crate) value_scales: AscendBuffer,
}

/// Records and the bytes of one block's, in the order of the canonical layout.
pub(super) type Records<'a> = [(&'a AscendBuffer, u64); 4];

impl Layer {
    /// Allocates a layer of so many blocks; the spec's sizes do not overflow.
    pub(super) fn alloc(device: &Ascend, spec: &KvSpec, blocks: usize) -> Result<Self> {
        let [keys, key_scales, values, value_scales] =
            spec.record_bytes().map(|block| (block * blocks) as u64);
        Ok(Layer {
            keys: device.alloc(keys)?,
            values: device.alloc(values)?,
            key_scales: device.alloc(key_scales)?,
            value_scales: device.alloc(value_scales)?,
        })
    }

    /// All kinds of records.
    pub(super) fn records(&self, spec: &KvSpec) -> Records<'_> {
        let [keys, key_scales, values, value_scales] = spec.record_bytes().map(|block| block as u64);
        [
            (&self.keys, keys),
            (&self.key_scales, key_scales),
            (&self.values, values),
            (&self.value_scales, value_scales),
        ]
    }
}
