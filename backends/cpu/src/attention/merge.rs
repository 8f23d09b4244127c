//! Partial results made one: two passes over a row's parts, the weights and then their sums.

use crate::{
    cost,
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat, math},
    view::{Reader, Rows, read, write},
};
use halite_hal::{Element, Result};
use halite_kernels::attention::AttentionMergeArgs;

/// Vectors of a row that are summed at once.
const WIDE: usize = 4;

impl Cpu {
    pub(super) fn merge<T: Element + StoredFloat>(&self, args: &AttentionMergeArgs<'_, Self>) -> Result<()> {
        let parts = args
            .parts
            .iter()
            .map(|part| Ok((read::<T>(part.out)?, read::<f32>(part.log_sum_exp)?)))
            .collect::<Result<Vec<_>>>()?;
        let mut out = write::<T>(args.out)?;
        let mut log_sum_exp = args.log_sum_exp.map(write::<f32>).transpose()?;
        let layout = out.rows;
        let log_layout = log_sum_exp.as_ref().map(|lse| lse.rows);
        let work = cost::merged(parts.len(), layout.inner, layout.columns);
        let per_task = self.team().units_per_task(layout.outer, work);
        let outs = out.data().chunks_mut(layout.outer_stride * per_task);
        let mut logs = log_sum_exp.as_mut().map(|lse| {
            let stride = lse.rows.outer_stride;
            lse.data().chunks_mut(stride * per_task)
        });
        let tasks = outs.enumerate().map(|(task, out)| (task, out, logs.as_mut().and_then(Iterator::next)));
        self.team().each(tasks, |(task, out, log_sum_exp)| {
            let first = task * per_task;
            self.tier().run(MergeRows {
                parts: &parts,
                tokens: first..layout.outer.min(first + per_task),
                out,
                layout,
                log_sum_exp: log_sum_exp.zip(log_layout),
            });
        });
        Ok(())
    }
}

/// Merges some tokens.
struct MergeRows<'a, T> {
    /// Outputs and log-sum-exps.
    parts: &'a [(Reader<'a, T>, Reader<'a, f32>)],
    tokens: std::ops::Range<usize>,
    /// From the first of the tokens on.
    out: &'a mut [T],
    layout: Rows,
    log_sum_exp: Option<(&'a mut [f32], Rows)>,
}

impl<T: Element + StoredFloat> Kernel for MergeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { parts, tokens, out, layout, mut log_sum_exp } = self;
        for (place, token) in tokens.enumerate() {
            for head in 0..layout.inner {
                let out = &mut out[layout.start(place, head)..][..layout.columns];
                let merged = merge_row(isa, Row { parts, token, head }, out);
                if let Some((log_sum_exp, rows)) = &mut log_sum_exp {
                    log_sum_exp[place * rows.outer_stride + head] = merged;
                }
            }
        }
    }
}

/// A head of a token in every part.
#[derive(Clone, Copy)]
struct Row<'a, T> {
    parts: &'a [(Reader<'a, T>, Reader<'a, f32>)],
    token: usize,
    head: usize,
}

impl<'a, T: Element> Row<'a, T> {
    /// The parts that saw something: their log-sum-exp is a number, or NaN, which must not be lost.
    #[inline(always)]
    fn live(self) -> impl Iterator<Item = (f32, &'a [T])> {
        self.parts.iter().filter_map(move |(out, log_sum_exp)| {
            let log = log_sum_exp.data()[self.token * log_sum_exp.rows.outer_stride + self.head];
            let row = &out.data()[out.rows.start(self.token, self.head)..][..out.rows.columns];
            (log != f32::NEG_INFINITY).then_some((log, row))
        })
    }
}

/// Writes the merged row and returns its log-sum-exp.
#[inline(always)]
fn merge_row<I: Isa, T: Element + StoredFloat>(isa: I, row: Row<'_, T>, out: &mut [T]) -> f32 {
    let mut most = f32::NEG_INFINITY;
    let mut any = false;
    for (log, _) in row.live() {
        any = true;
        most = most.max(log);
    }
    if !any {
        out.fill(T::ZERO);
        return f32::NEG_INFINITY;
    }
    let mut total = 0.0;
    for (log, _) in row.live() {
        total += exp(isa, log - most);
    }
    for (chunk, out) in out.chunks_mut(WIDE * LANES).enumerate() {
        let start = chunk * WIDE * LANES;
        let mut sums = [[0.0; LANES]; WIDE];
        for (log, part) in row.live() {
            let weight = isa.splat(exp(isa, log - most));
            for (sum, part) in sums.iter_mut().zip(part[start..][..out.len()].chunks(LANES)) {
                isa.store(isa.mul_add(weight, T::load_partial(isa, part), isa.load(sum)), sum);
            }
        }
        for (sum, out) in sums.iter().zip(out.chunks_mut(LANES)) {
            T::store_partial(isa, isa.div(isa.load(sum), isa.splat(total)), out);
        }
    }
    let mut log = [0.0; LANES];
    isa.store(math::ln(isa, isa.splat(total)), &mut log);
    most + log[0]
}

#[inline(always)]
fn exp<I: Isa>(isa: I, x: f32) -> f32 {
    let mut y = [0.0; LANES];
    isa.store(math::exp(isa, isa.splat(x)), &mut y);
    y[0]
}
