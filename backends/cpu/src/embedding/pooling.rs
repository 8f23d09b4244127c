//! One row a sequence.

use crate::{
    device::Cpu,
    room::room_for,
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Rows, read, with_float, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    embedding::{PoolArgs, Pooling, PoolingLimits, PoolingPlan, PoolingSpec, PoolingStep},
};
use std::ops::Range;

/// The sequences of a step.
#[derive(Debug)]
pub struct CpuPoolingPlan {
    spec: PoolingSpec,
    max_sequences: usize,
    max_tokens: usize,
    /// `[sequences + 1]`
    cu_seqlens: Vec<u32>,
}

impl CpuPoolingPlan {
    pub(super) fn new(spec: &PoolingSpec, max_sequences: usize, max_tokens: usize) -> Result<Self> {
        let mut cu_seqlens = room_for(max_sequences.saturating_add(1))?;
        cu_seqlens.push(0);
        Ok(CpuPoolingPlan { spec: spec.clone(), max_sequences, max_tokens, cu_seqlens })
    }

    pub(super) fn update(&mut self, step: &Checked<PoolingStep<'_>, PoolingLimits>) -> Result<()> {
        step.checked_against("pool", &self.limits())?;
        self.cu_seqlens.clear();
        self.cu_seqlens.extend_from_slice(step.cu_seqlens);
        Ok(())
    }
}

impl PoolingPlan for CpuPoolingPlan {
    fn spec(&self) -> &PoolingSpec {
        &self.spec
    }

    fn max_sequences(&self) -> usize {
        self.max_sequences
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn sequences(&self) -> usize {
        self.cu_seqlens.len() - 1
    }

    fn tokens(&self) -> usize {
        self.cu_seqlens.last().map_or(0, |&tokens| tokens as usize)
    }
}

pub(super) fn supports(spec: &PoolingSpec) -> Support {
    match crate::float_only(spec.input) {
        Support::Native => crate::float_only(spec.output),
        no => no,
    }
}

pub(super) fn pool(device: &Cpu, args: &PoolArgs<'_, Cpu>) -> Result<()> {
    let plan = args.plan;
    with_float!(plan.spec.input, In => with_float!(plan.spec.output, Out => {
        let (x, mut out) = (read::<In>(args.x)?, write::<Out>(args.out)?);
        let (rows, layout, x) = (x.rows, out.rows, x.data());
        // A sequence is a task: they are long where there is much to do.
        let tasks = plan.cu_seqlens.array_windows().zip(out.data().chunks_mut(layout.outer_stride));
        device.team().each(tasks, |(&[start, end], out)| {
            let (tokens, out) = (start as usize..end as usize, &mut out[..layout.columns]);
            device.tier().run(Pool { pooling: plan.spec.pooling, x, rows, tokens, out });
        });
        Ok(())
    }))
}

/// One sequence.
struct Pool<'a, T, O> {
    pooling: Pooling,
    x: &'a [T],
    rows: Rows,
    tokens: Range<usize>,
    out: &'a mut [O],
}

impl<T: StoredFloat, O: StoredFloat> Kernel for Pool<'_, T, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.tokens.is_empty() {
            self.out.fill(O::ZERO);
            return;
        }
        let tokens = match self.pooling {
            Pooling::First => self.tokens.start..self.tokens.start + 1,
            Pooling::Last => self.tokens.end - 1..self.tokens.end,
            _ => self.tokens,
        };
        for (vector, out) in self.out.chunks_mut(LANES).enumerate() {
            let columns = vector * LANES..vector * LANES + out.len();
            let mut y = T::load_partial(isa, &self.rows.row(self.x, tokens.start)[columns.clone()]);
            for token in tokens.start + 1..tokens.end {
                y = isa.add(y, T::load_partial(isa, &self.rows.row(self.x, token)[columns.clone()]));
            }
            if tokens.len() > 1 {
                y = isa.div(y, isa.splat(tokens.len() as f32));
            }
            O::store_partial(isa, y, out);
        }
    }
}
