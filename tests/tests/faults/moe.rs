//! Mixture of experts by the oracle.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    moe::{GroupScore, Moe, RouterWeights, RoutingArgs, RoutingSpec},
};
use halite_parity::oracle::moe::routing::Router;

impl Moe for Exact {
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
