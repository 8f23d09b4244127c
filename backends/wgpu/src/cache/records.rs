//! Records copied from place to place, as a table says: what copies, swaps, exports and imports of blocks are made of.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    memory::WgpuBuffer,
    operand::Operand,
    stream::WgpuStream,
};
use halite_hal::{DType, Device, Result};

static RECORDS: Shader = Shader { name: "cache", source: &[include_str!("records.wgsl")] };

/// Memory with a record at every so many bytes.
pub(super) struct Records {
    pub(super) memory: Operand,
    /// Where record 0 begins, in bytes from the operand's beginning.
    pub(super) first: usize,
    /// Bytes from record to record.
    pub(super) stride: usize,
}

/// Which records go where: `(from, to)`.
pub(super) struct Pairs {
    table: WgpuBuffer,
    count: usize,
}

impl Pairs {
    /// Uploads a table; numbers are below 2^31.
    pub(super) fn upload(
        device: &Wgpu,
        stream: &mut WgpuStream,
        pairs: impl Iterator<Item = (u32, u32)>,
    ) -> Result<Self> {
        let words: Vec<u32> = pairs.flat_map(|(from, to)| [from, to]).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let table = device.alloc(bytes.len() as u64)?;
        stream.stage(&table, 0, bytes)?;
        Ok(Pairs { table, count: words.len() / 2 })
    }
}

/// Copies records of `bytes` bytes. None that is written is read by another pair.
pub(super) fn copy(
    stream: &mut WgpuStream,
    pairs: &Pairs,
    bytes: usize,
    from: &Records,
    to: &Records,
) -> Result<()> {
    if pairs.count * bytes == 0 {
        return Ok(());
    }
    let whole = [bytes, to.first, to.stride].iter().all(|place| place.is_multiple_of(4));
    // A record that begins within a word may reach into one word more than it fills.
    let words = if whole { bytes / 4 } else { bytes.div_ceil(4) + 1 };
    let table = Operand::bytes(&pairs.table, 0..8 * pairs.count as u64, DType::I32);
    let launch = Launch::new(&RECORDS)
        .operand("pairs", Access::In, table)
        .operand("source", Access::Atomic, from.memory.clone())
        .operand("destination", Access::Atomic, to.memory.clone())
        .size("count", pairs.count)
        .size("words", words)
        .size("bytes", bytes)
        .size("source_first", from.first)
        .size("source_stride", from.stride)
        .size("target_first", to.first)
        .size("target_stride", to.stride);
    stream.launch(launch, spread((pairs.count * words).div_ceil(64)))
}
