//! The choice of experts: scores in vectors, the choice element by element.
//!
//! Ranking reads `top_k` times through a row of at most some hundred experts, which is less than the product that made
//! the logits; it needs no memory and no sorting, and ties need no care of their own.

use crate::{
    cost,
    device::Cpu,
    simd::{Isa, Kernel, LANES, activation::sigmoid, first_lanes, math::exp},
    stream::CpuStream,
    view::{read, write},
};
use halite_hal::Result;
use halite_kernels::moe::{ExpertGroups, GroupScore, RouterWeights, RoutingArgs, RoutingSpec, Scoring};

/// What keeps a sum of zeros from being divided by.
const LEAST_SUM: f32 = 1e-20;

/// F32 values that the choice of one row needs: scores and ranks of experts, scores and places of groups. Whoever asks
/// how much scratch a spec needs may not have checked it.
fn scratch_values(spec: &RoutingSpec) -> usize {
    let groups = spec.groups.map_or(0, |groups| groups.groups);
    spec.experts.saturating_add(groups).saturating_mul(2)
}

/// Scratch bytes of `tokens` rows.
pub(super) fn workspace(spec: &RoutingSpec, tokens: usize) -> u64 {
    (scratch_values(spec) as u64).saturating_mul(size_of::<f32>() as u64).saturating_mul(tokens as u64)
}

pub(super) fn route(cpu: &Cpu, stream: &mut CpuStream, args: &RoutingArgs<'_, Cpu>) -> Result<()> {
    let (spec, tokens) = (args.spec, args.logits.dims()[0]);
    let logits = read::<f32>(args.logits)?;
    let bias = args.correction_bias.map(read::<f32>).transpose()?;
    let (mut ids, mut weights) = (write::<i32>(args.ids)?, write::<f32>(args.weights)?);
    let scratch = stream.scratch_floats("routing", workspace(spec, tokens))?;
    let (rows, logits) = (logits.rows, logits.data());
    let bias = bias.as_ref().map(|bias| bias.data());
    let (id_stride, weight_stride) = (ids.rows.outer_stride, weights.rows.outer_stride);
    let (ids, weights) = (ids.data(), weights.data());
    let per_task = cpu.team().units_per_task(tokens, cost::routed(spec.experts, spec.top_k));
    let tasks = scratch
        .chunks_mut(scratch_values(spec) * per_task)
        .zip(ids.chunks_mut(id_stride * per_task).zip(weights.chunks_mut(weight_stride * per_task)))
        .enumerate();
    cpu.team().each(tasks, |(task, (scratch, (ids, weights)))| {
        let outs = ids.chunks_mut(id_stride).zip(weights.chunks_mut(weight_stride));
        let first = task * per_task;
        for (row, (scratch, (ids, weights))) in scratch.chunks_mut(scratch_values(spec)).zip(outs).enumerate()
        {
            let (ids, weights) = (&mut ids[..spec.top_k], &mut weights[..spec.top_k]);
            let logits = rows.row(logits, first + row);
            cpu.tier().run(RouteRow { spec, logits, bias, scratch, ids, weights });
        }
    });
    Ok(())
}

struct RouteRow<'a> {
    spec: &'a RoutingSpec,
    /// `[experts]`
    logits: &'a [f32],
    /// `[experts]`
    bias: Option<&'a [f32]>,
    scratch: &'a mut [f32],
    /// `[top_k]`
    ids: &'a mut [i32],
    /// `[top_k]`
    weights: &'a mut [f32],
}

impl Kernel for RouteRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { spec, logits, bias, scratch, ids, weights } = self;
        let (scores, rest) = scratch.split_at_mut(spec.experts);
        let (ranks, groups) = rest.split_at_mut(spec.experts);
        match spec.scoring {
            Scoring::Softmax => softmax(isa, logits, scores),
            Scoring::Sigmoid => {
                for (logits, scores) in logits.chunks(LANES).zip(scores.chunks_mut(LANES)) {
                    isa.store_partial(sigmoid(isa, isa.load_partial(logits)), scores);
                }
            }
            _ => scores.copy_from_slice(logits),
        }
        let choice = match bias {
            Some(bias) => {
                for (vector, ranks) in ranks.chunks_mut(LANES).enumerate() {
                    let at = vector * LANES..vector * LANES + ranks.len();
                    let sum = isa.add(isa.load_partial(&scores[at.clone()]), isa.load_partial(&bias[at]));
                    isa.store_partial(sum, ranks);
                }
                Choice { ranks, sums: ranks }
            }
            None => Choice { ranks: logits, sums: scores },
        };
        choice.best(spec, groups, ids);
        for (weight, &id) in weights.iter_mut().zip(ids.iter()) {
            *weight = scores[id as usize];
        }
        if spec.scoring == Scoring::SoftmaxOfChosen {
            // `top_k` logits, of which the sigmoid's and the softmax's scratch is free by now.
            let chosen = &mut scores[..weights.len()];
            chosen.copy_from_slice(weights);
            softmax(isa, chosen, weights);
        }
        if spec.weights == RouterWeights::Renormalized {
            let mut sum = 0.0;
            for &weight in weights.iter() {
                sum += weight;
            }
            sum += LEAST_SUM;
            for weight in weights.iter_mut() {
                *weight /= sum;
            }
        }
        for weight in weights.iter_mut() {
            *weight *= spec.scale;
        }
    }
}

/// `to[e] = exp(from[e] - max) / Σ`; what is not finite makes NaN of all, as arithmetic does.
#[inline(always)]
fn softmax<I: Isa>(isa: I, from: &[f32], to: &mut [f32]) {
    let least = isa.splat(f32::NEG_INFINITY);
    let mut max = least;
    for logits in from.chunks(LANES) {
        max = isa.max(isa.select(first_lanes(logits.len()), isa.load_partial(logits), least), max);
    }
    let max = isa.splat(isa.max_lane(max));
    let (zero, mut sum) = (isa.splat(0.0), isa.splat(0.0));
    for (logits, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
        let power = exp(isa, isa.sub(isa.load_partial(logits), max));
        sum = isa.add(sum, isa.select(first_lanes(logits.len()), power, zero));
        isa.store_partial(power, to);
    }
    let sum = isa.splat(isa.sum(sum));
    for to in to.chunks_mut(LANES) {
        let share = isa.div(isa.load_partial(to), sum);
        isa.store_partial(share, to);
    }
}

/// What the experts of one row rank by.
struct Choice<'a> {
    /// `[experts]`
    ranks: &'a [f32],
    /// `[experts]`: what sums of groups are made of.
    sums: &'a [f32],
}

impl Choice<'_> {
    /// The ids of the best experts, best first. `scratch` has two values a group.
    fn best(&self, spec: &RoutingSpec, scratch: &mut [f32], ids: &mut [i32]) {
        let size = spec.group_size();
        let (scores, taking_part) = scratch.split_at_mut(scratch.len() / 2);
        if let Some(groups) = spec.groups {
            self.score_groups(groups, size, scores);
            for (group, taking_part) in taking_part.iter_mut().enumerate() {
                let better = (0..scores.len()).filter(|&other| before(scores, other, group)).count();
                *taking_part = if better < groups.kept { 1.0 } else { 0.0 };
            }
        }
        let mut last = None;
        for id in ids {
            let mut best = None;
            for (group, first) in (0..self.ranks.len()).step_by(size.max(1)).enumerate() {
                if taking_part.get(group) == Some(&0.0) {
                    continue;
                }
                for expert in first..first + size {
                    let open = last.is_none_or(|last| before(self.ranks, last, expert));
                    if open && best.is_none_or(|best| before(self.ranks, expert, best)) {
                        best = Some(expert);
                    }
                }
            }
            // The spec's check makes sure that groups which take part hold enough experts.
            let Some(best) = best else { break };
            *id = best as i32;
            last = Some(best);
        }
    }

    fn score_groups(&self, groups: ExpertGroups, size: usize, scores: &mut [f32]) {
        for (group, score) in scores.iter_mut().enumerate() {
            let (mut best, mut second) = (group * size, None);
            for expert in best + 1..best + size {
                if before(self.ranks, expert, best) {
                    (best, second) = (expert, Some(best));
                } else if second.is_none_or(|second| before(self.ranks, expert, second)) {
                    second = Some(expert);
                }
            }
            *score = match (groups.score, second) {
                (GroupScore::TopTwo, Some(second)) => self.sums[best] + self.sums[second],
                (GroupScore::TopTwo, None) => self.sums[best],
                _ => self.ranks[best],
            };
        }
    }
}

/// Whether `a` comes before `b` in the order of `values`: the greater first, NaN last, then the lower index.
#[inline(always)]
fn before(values: &[f32], a: usize, b: usize) -> bool {
    let (x, y) = (values[a], values[b]);
    if x == y || (x.is_nan() && y.is_nan()) { a < b } else { x > y || y.is_nan() }
}
