//! A plan: a step's lengths on the host, where CANN wants them, and its table on the device.

use std::sync::atomic::AtomicBool;

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked,
    attention::{AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec, AttentionStep},
};

use super::{BLOCK_SIZE, runs::Runs};
use crate::{device::Ascend, stream::AscendStream, support::unsupported};

/// The side of the mask that stands for causal masks of every size.
const MASK: usize = 2048;

/// A step's lengths and tables.
#[derive(Debug)]
pub struct AscendAttentionPlan {
    spec: AttentionSpec,
    capacity: AttentionCapacity,
    tokens: usize,
    pub(super) runs: Runs,
    /// I32 `[sequences, blocks of a sequence]`; 0 where a step says nothing that is read.
    pub(super) table: Tensor<Ascend>,
    pub(super) constants: Constants,
    /// Whether this release of CANN has refused sequences of any lengths in one call.
    pub(super) one_by_one: AtomicBool,
}

/// What calls read and no step changes.
#[derive(Debug)]
pub(super) struct Constants {
    /// I8 `[2048, 2048]`, ones above the diagonal.
    pub(super) mask: Tensor<Ascend>,
    /// What a row that sees nothing gives: zeros `[query_heads, value_head_dim]` of the spec's type,
    pub(super) zeros: Tensor<Ascend>,
    /// and -inf, F32 `[query_heads]`.
    pub(super) empty: Tensor<Ascend>,
    /// Plans are made without a stream.
    written: bool,
}

impl AttentionPlan for AscendAttentionPlan {
    fn spec(&self) -> &AttentionSpec {
        &self.spec
    }

    fn capacity(&self) -> &AttentionCapacity {
        &self.capacity
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl AscendAttentionPlan {
    /// A plan without a step. The spec is one that the backend supports.
    pub(super) fn new(device: &Ascend, spec: &AttentionSpec, capacity: &AttentionCapacity) -> Result<Self> {
        let AttentionCapacity { max_sequences, max_blocks_per_sequence, .. } = *capacity;
        let table = [max_sequences.max(1), max_blocks_per_sequence.max(1)];
        let heads = spec.query_heads;
        Ok(AscendAttentionPlan {
            spec: spec.clone(),
            capacity: *capacity,
            tokens: 0,
            runs: Runs::default(),
            table: Tensor::new(device, DType::I32, &table)?,
            constants: Constants {
                mask: Tensor::new(device, DType::I8, &[MASK, MASK])?,
                zeros: Tensor::new(device, spec.dtype, &[heads, spec.kv.value_head_dim])?,
                empty: Tensor::new(device, DType::F32, &[heads])?,
                written: false,
            },
            one_by_one: AtomicBool::new(false),
        })
    }

    /// Takes a step's lengths, and uploads its table. Where that fails, the plan has no step.
    pub(super) fn update(
        &mut self,
        stream: &mut AscendStream,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("attention", &self.limits())?;
        (self.tokens, self.runs) = (0, Runs::default());
        let whole = |(sequence, &kv_len)| {
            let range = step.kv_range(sequence);
            range.start == 0 && range.end == kv_len
        };
        if !step.kv_lens.iter().enumerate().all(whole) {
            let reason = "positions are read from the first to the last, and not in ranges";
            return Err(unsupported("attention", reason, &self.spec));
        }
        self.constants.write(stream)?;
        let runs = Runs::of(self.spec.mask, step);
        let (row, width) = (self.capacity.max_blocks_per_sequence, self.table.dims()[1]);
        let mut table = vec![0; runs.sequences.len() * width];
        for ((to, &sequence), &kv_len) in table.chunks_mut(width).zip(&runs.sequences).zip(&runs.kv_lens) {
            let blocks = (kv_len as usize).div_ceil(BLOCK_SIZE);
            to[..blocks].copy_from_slice(&step.block_table[sequence * row..][..blocks]);
        }
        stream.stage(self.table.buffer(), self.table.offset(), bytemuck::cast_slice::<i32, u8>(&table))?;
        (self.tokens, self.runs) = (step.tokens(), runs);
        Ok(())
    }
}

impl Constants {
    fn write(&mut self, stream: &mut AscendStream) -> Result<()> {
        if self.written {
            return Ok(());
        }
        let mask: Vec<u8> = (0..MASK * MASK).map(|at| u8::from(at % MASK > at / MASK)).collect();
        stream.stage(self.mask.buffer(), self.mask.offset(), &mask)?;
        let (heads, bytes) =
            (self.empty.dims()[0], self.zeros.shape().elements() * self.zeros.dtype().size());
        stream.stage(self.zeros.buffer(), self.zeros.offset(), &vec![0; bytes])?;
        let empty = vec![f32::NEG_INFINITY; heads];
        stream.stage(self.empty.buffer(), self.empty.offset(), bytemuck::cast_slice(&empty))?;
        self.written = true;
        Ok(())
    }
}
