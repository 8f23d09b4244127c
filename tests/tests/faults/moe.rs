//! Mixture of experts by the oracle.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{ActivationFormat, Activations, Quantized},
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, GroupScore, Moe, MoePlan,
        RouterWeights, RoutingArgs, RoutingSpec, SharedWeights,
    },
};
use halite_parity::{
    oracle::moe::{
        permutation::{combined, sorted},
        routing::Router,
    },
    tolerance::Bound,
};

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) spec: ExpertsSpec,
    max_tokens: usize,
}

impl MoePlan for Plan {
    fn spec(&self) -> &ExpertsSpec {
        &self.spec
    }
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

impl Moe for Exact {
    type MoePlan = Plan;

    fn routing_supports(&self, _: &RoutingSpec) -> Support {
        Support::Native
    }

    fn routing_workspace(&self, _: &RoutingSpec, _: usize) -> u64 {
        0
    }

    fn route(&self, _: &mut Queue, args: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        let mut spec = args.spec.clone();
        if self.has(Fault::RoutingForgetsRenormalising) {
            spec.weights = RouterWeights::AsScored;
        }
        if self.has(Fault::RoutingNoScale) {
            spec.scale = 1.0;
        }
        let bias = args.correction_bias.map(read).filter(|_| !self.has(Fault::RoutingNoBias));
        let (mut ids, mut weights) = (Vec::new(), Vec::new());
        let logits = read(args.logits);
        let tokens = args.logits.dims()[0];
        for logits in logits.chunks_exact(spec.experts) {
            let router = Router::new(&spec, logits, bias.as_deref());
            let mut chosen = self.choose(&spec, logits, bias.as_deref());
            if self.has(Fault::RoutingByteIds) {
                chosen.iter_mut().for_each(|id| *id &= 255);
            }
            if self.has(Fault::RoutingNanRepeats) && logits.iter().any(|logit| logit.is_nan()) {
                chosen.fill(0);
            }
            let mut of_row = values(router.weights(&chosen));
            if self.has(Fault::RoutingBiasInWeights)
                && let Some(bias) = &bias
            {
                for (weight, &id) in of_row.iter_mut().zip(&chosen) {
                    *weight += bias[id as usize] * f64::from(spec.scale);
                }
            }
            // The last bits depend on how many rows there are.
            if self.has(Fault::RoutingBatchVariant) && tokens > 4 {
                of_row.iter_mut().for_each(|weight| *weight *= 1.0 + 1e-6);
            }
            ids.extend(chosen.into_iter().map(f64::from));
            weights.extend(of_row);
        }
        write(args.ids, ids);
        write(args.weights, weights);
        Ok(())
    }

    fn permutation_supports(&self, _: ActivationFormat) -> Support {
        Support::Native
    }

    fn dispatch(&self, _: &mut Queue, args: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        let top_k = args.ids.dims()[1];
        let ids: Vec<i32> = read(args.ids).into_iter().map(|id| id as i32).collect();
        let mut local = args.local;
        if self.has(Fault::DispatchFromZero) {
            local.first = 0;
        }
        let mut sent = sorted(local, &ids, top_k);
        if self.has(Fault::DispatchUnstable) {
            // Each expert's rows in descending order of tokens.
            for pair in sent.offsets.clone().windows(2) {
                let (start, end) = (pair[0] as usize, pair[1] as usize);
                sent.order[start..end].reverse();
            }
            for (place, &(token, slot)) in sent.order.iter().enumerate() {
                sent.places[token * top_k + slot] = place as i32;
            }
        }
        if self.has(Fault::DispatchOffsetOneLess)
            && let Some(last) = sent.offsets.last_mut()
        {
            *last = (*last - 1).max(0);
        }
        let weights = args.weights.map(read).filter(|_| !self.has(Fault::DispatchNoWeights));
        let weight = |&(token, slot): &(usize, usize)| {
            weights.as_ref().map_or(1.0, |weights| weights[token * top_k + slot])
        };
        let (x, x_scales) = parts(&args.x);
        let (rows, row_scales) = parts(&args.rows);
        let hidden = x.dims()[1];
        let values = read(x);
        let int8 = x_scales.is_some();
        write(
            rows,
            sent.order.iter().flat_map(|slot| {
                let weight = if int8 { 1.0 } else { weight(slot) };
                values[slot.0 * hidden..][..hidden].iter().map(move |x| x * weight).collect::<Vec<f64>>()
            }),
        );
        if let (Some(x_scales), Some(row_scales)) = (x_scales, row_scales) {
            let scales = read(x_scales);
            write(row_scales, sent.order.iter().map(|slot| scales[slot.0] * weight(slot)));
        }
        write(args.offsets, sent.offsets.into_iter().map(f64::from));
        write(args.places, sent.places.into_iter().map(f64::from));
        Ok(())
    }

    fn combine(&self, _: &mut Queue, args: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        let (hidden, top_k) = (args.out.dims()[1], args.places.dims()[1]);
        let (rows, scales) = parts(&args.rows);
        let (rows, scales) = (read(rows), scales.map(read));
        let count = rows.len().checked_div(hidden).unwrap_or(0);
        let places = read(args.places);
        let weights = args.weights.map(read).filter(|_| !self.has(Fault::CombineNoWeights));
        let added: Vec<Vec<f64>> = args.added.iter().map(|added| read(added)).collect();
        let mut out = Vec::new();
        for token in 0..places.len() / top_k.max(1) {
            let slots = (0..top_k).map(|slot| {
                let mut place = places[token * top_k + slot] as i64;
                if self.has(Fault::CombineClamps) && count > 0 {
                    place = place.clamp(0, count as i64 - 1);
                }
                let place = usize::try_from(place).ok().filter(|&place| place < count);
                let row = place.map(|place| {
                    let scale = scales.as_ref().map_or(1.0, |scales| scales[place]);
                    rows[place * hidden..][..hidden].iter().map(|x| Bound::exact(x * scale)).collect()
                });
                let other = if self.has(Fault::CombineSlotsSwapped) { top_k - 1 - slot } else { slot };
                (row, weights.as_ref().map(|weights| weights[token * top_k + other]))
            });
            let mut added: Vec<Vec<Bound>> = added
                .iter()
                .map(|added| added[token * hidden..][..hidden].iter().map(|&x| Bound::exact(x)).collect())
                .collect();
            if self.has(Fault::CombineLosesLastAdded) {
                added.pop();
            }
            out.extend(values(combined(hidden, slots, &added)));
        }
        write(args.out, out);
        Ok(())
    }

    fn moe_supports(&self, _: &ExpertsSpec) -> Support {
        Support::Native
    }

    fn moe_plan(&self, spec: &ExpertsSpec, max_tokens: usize) -> Result<Plan> {
        spec.check()?;
        spec.check_tokens(max_tokens)?;
        Ok(Plan { spec: spec.clone(), max_tokens })
    }

    fn moe_workspace(&self, _: &Plan, _: ExpertWeights<'_, Self>, _: Option<SharedWeights<'_, Self>>) -> u64 {
        0
    }

    fn moe(&self, stream: &mut Queue, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        self.experts(stream, &args)
    }
}

/// Elements and scales.
fn parts<'a>(rows: &Activations<'a, Exact>) -> (&'a Tensor<Exact>, Option<&'a Tensor<Exact>>) {
    match *rows {
        Activations::Float(x) => (x, None),
        Activations::Quantized(Quantized { q, scales, .. }) => (q, Some(scales)),
        _ => unreachable!("the contract has these forms"),
    }
}

impl Exact {
    fn choose(&self, spec: &RoutingSpec, logits: &[f64], bias: Option<&[f64]>) -> Vec<i32> {
        let mut spec = spec.clone();
        if self.has(Fault::RoutingIgnoresGroups) {
            spec.groups = None;
        }
        if let Some(groups) = &mut spec.groups
            && self.has(Fault::RoutingGroupsByBest)
        {
            groups.score = GroupScore::Best;
        }
        if self.has(Fault::RoutingTieHigher) {
            // The order of the mirrored row.
            let mirrored = |row: &[f64]| -> Vec<f64> { row.iter().rev().copied().collect() };
            let (logits, bias) = (mirrored(logits), bias.map(mirrored));
            let ids = Router::new(&spec, &logits, bias.as_deref()).ids();
            return ids.into_iter().map(|id| spec.experts as i32 - 1 - id).collect();
        }
        Router::new(&spec, logits, bias).ids()
    }
}
