//! Sampling by the oracle.

use crate::{
    device::{Exact, Queue, read, write, write_some},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        DraftProbabilities, LogProbArgs, ProbabilityArgs, Sampling, SamplingArgs, SamplingLimits,
        SamplingParams, SamplingPlan, SamplingSpec, SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits,
        VerifyPlan, VerifyStep,
    },
};
use halite_parity::oracle::{
    self,
    sampling::{
        acceptable, draw, kept,
        verify::{Drafted, outcomes},
    },
};

#[derive(Debug)]
pub(crate) struct Draws {
    spec: SamplingSpec,
    max_rows: usize,
    params: Vec<SamplingParams>,
}

impl SamplingPlan for Draws {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }
    fn max_rows(&self) -> usize {
        self.max_rows
    }
    fn rows(&self) -> usize {
        self.params.len()
    }
}

impl Sampling for Exact {
    type SamplingPlan = Draws;
    type VerifyPlan = VerifyTable;

    fn sampling_supports(&self, _: &SamplingSpec) -> Support {
        Support::Native
    }

    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<Draws> {
        spec.check()?;
        Ok(Draws { spec: spec.clone(), max_rows, params: Vec::new() })
    }

    fn sampling_update(
        &self,
        _: &mut Queue,
        plan: &mut Draws,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &plan.limits())?;
        plan.params = step.params.to_vec();
        Ok(())
    }

    fn sample(&self, _: &mut Queue, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        let vocabulary = args.plan.spec.vocabulary;
        let logits = read(args.logits);
        let mut ids = Vec::new();
        for (row, params) in args.plan.params.iter().enumerate() {
            let mut params = params.clone();
            let mut logits = logits[row * vocabulary..][..vocabulary].to_vec();
            if self.has(Fault::SamplingNanFirst) {
                logits.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 1e38);
            }
            if self.has(Fault::SamplingIgnoresTopP) {
                params.top_p = 1.0;
            }
            if self.has(Fault::SamplingIgnoresSeed) {
                (params.seed, params.position) = (0, 0);
            }
            if self.has(Fault::SamplingIgnoresTemperature) && params.temperature > 0.0 {
                params.temperature = 1.0;
            }
            if self.has(Fault::SamplingBatchVariant) {
                params.seed += row as u64;
            }
            if self.has(Fault::SamplingTieHigher) {
                logits.reverse();
            }
            let id = oracle::sampling::acceptable(&logits, &params).first().copied().unwrap_or(0);
            ids.push(if self.has(Fault::SamplingTieHigher) { vocabulary - 1 - id } else { id } as f64);
        }
        write(args.ids, ids);
        Ok(())
    }

    fn probabilities(&self, _: &mut Queue, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        let vocabulary = args.plan.spec.vocabulary;
        let (logits, mut out) = (read(args.logits), Vec::new());
        for (logits, params) in logits.chunks_exact(vocabulary).zip(&args.plan.params) {
            let mut params = params.clone();
            if self.has(Fault::ProbabilitiesOfAll) {
                (params.top_k, params.top_p, params.min_p) = (0, 1.0, 0.0);
            }
            let kept = kept(logits, &params).swap_remove(0);
            let mass = if self.has(Fault::ProbabilitiesNotRenormalised) { kept.mass } else { 1.0 };
            out.extend((0..vocabulary).map(|id| kept.probability(id).value * mass));
        }
        write(args.out, out);
        Ok(())
    }

    fn verify_plan(&self, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<VerifyTable> {
        spec.check()?;
        Ok(VerifyTable { spec: spec.clone(), capacity: *capacity, params: Vec::new(), cu_drafts: vec![0] })
    }

    fn verify_update(
        &self,
        _: &mut Queue,
        plan: &mut VerifyTable,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &plan.limits())?;
        (plan.params, plan.cu_drafts) = (step.params.to_vec(), step.cu_drafts.to_vec());
        Ok(())
    }

    fn verify(&self, _: &mut Queue, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        let VerifyTable { spec, params, cu_drafts, .. } = args.plan;
        let rows = |tensor| -> Vec<Vec<f64>> {
            read(tensor).chunks_exact(spec.vocabulary).map(<[f64]>::to_vec).collect()
        };
        let (logits, drafts) = (rows(args.logits), read(args.drafts));
        let drafts: Vec<i32> = drafts.into_iter().map(|id| id as i32).collect();
        let q = match args.probabilities {
            DraftProbabilities::Drawn(q) if !self.has(Fault::VerifyIgnoresProbabilities) => Some(rows(q)),
            _ => None,
        };
        let (mut accepted, mut next) = (Vec::new(), Vec::new());
        for (request, params) in params.iter().enumerate() {
            let (start, end) = (cu_drafts[request] as usize, cu_drafts[request + 1] as usize);
            let mut params = params.clone();
            if self.has(Fault::VerifyBatchVariant) {
                params.seed = params.seed.wrapping_add(request as u64);
            }
            let request = Drafted {
                logits: &logits[start + request..=end + request],
                drafts: &drafts[start..end],
                q: q.as_ref().map(|q| &q[start..end]),
                params: &params,
            };
            let (count, token) = self.outcome(&request);
            accepted.push(count as f64);
            next.push(token as f64);
        }
        write(args.accepted, accepted);
        write(args.next, next);
        Ok(())
    }

    fn log_probs(&self, _: &mut Queue, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        let vocabulary = args.logits.dims()[1];
        let logits = read(args.logits);
        let log_prob = |row: &[f64], target: i32| match row.get(target as usize) {
            Some(&logit) if self.has(Fault::LogProbLogits) => logit,
            _ => oracle::sampling::log_prob(row, target).value,
        };
        let out = read(args.targets).into_iter().enumerate().map(|(row, target)| {
            let mut target = target as i32;
            if self.has(Fault::LogProbClampsTarget) {
                target = target.clamp(0, (vocabulary as i32 - 1).max(0));
            }
            log_prob(&logits[row * vocabulary..][..vocabulary], target)
        });
        write(args.out, out.collect::<Vec<_>>());
        if let Some(top) = &args.top {
            let n = top.ids.dims()[1];
            let (mut ids, mut highest) = (Vec::new(), Vec::new());
            for row in logits.chunks_exact(vocabulary.max(1)) {
                let mut best = oracle::sampling::ranking(row);
                if self.has(Fault::TopLogProbsTieHigher) {
                    let turned: Vec<f64> = row.iter().rev().copied().collect();
                    best = oracle::sampling::ranking(&turned)
                        .into_iter()
                        .map(|id| vocabulary - 1 - id)
                        .collect();
                }
                best.truncate(n);
                ids.extend(best.iter().map(|&id| id as f64));
                highest.extend(best.iter().map(|&id| log_prob(row, id as i32)));
            }
            if self.has(Fault::TopLogProbsOfTopOnly) {
                for row in highest.chunks_exact_mut(n.max(1)) {
                    let sum: f64 = row.iter().filter(|x| !x.is_nan()).map(|x| x.exp()).sum();
                    row.iter_mut().for_each(|x| *x -= sum.ln());
                }
            }
            write(top.ids, ids);
            write(top.log_probs, highest);
        }
        if let Some(all) = args.all {
            let mut log_softmax: Vec<f64> = Vec::new();
            for row in logits.chunks_exact(vocabulary.max(1)) {
                let poisoned = self.has(Fault::LogSoftmaxNanPoisons) && row.iter().any(|x| x.is_nan());
                let row_of = oracle::sampling::log_softmax(row).into_iter().map(|bound| bound.value);
                log_softmax.extend(row_of.map(|y| if poisoned { f64::NAN } else { y }));
                if self.has(Fault::LogSoftmaxLogits) {
                    let place = log_softmax.len() - vocabulary;
                    log_softmax[place..].copy_from_slice(row);
                }
            }
            let tail = self.has(Fault::LogSoftmaxTail);
            let some = |(place, y): (usize, f64)| (!tail || (place + 1) % vocabulary != 0).then_some(y);
            write_some(all, log_softmax.into_iter().enumerate().map(some));
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct VerifyTable {
    spec: SamplingSpec,
    capacity: VerifyCapacity,
    params: Vec<SamplingParams>,
    cu_drafts: Vec<u32>,
}

impl VerifyPlan for VerifyTable {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }
    fn capacity(&self) -> &VerifyCapacity {
        &self.capacity
    }
    fn requests(&self) -> usize {
        self.params.len()
    }
    fn drafts(&self) -> usize {
        self.cu_drafts.last().map_or(0, |&drafts| drafts as usize)
    }
}

impl Exact {
    /// Draft by draft: how many stand, and the token after them.
    fn outcome(&self, request: &Drafted<'_>) -> (usize, usize) {
        let &Drafted { logits, drafts, q, params } = request;
        let last = logits.len() - 1;
        let at = |place: usize| {
            let place = if self.has(Fault::VerifyFirstPosition) { 0 } else { place as u64 };
            params.clone().at(params.position.wrapping_add(place))
        };
        let taken = |row: usize, place| acceptable(&logits[row], &at(place))[0];
        for (place, &draft) in drafts.iter().enumerate() {
            let vocabulary = logits[place].len() as i32;
            let draft =
                if self.has(Fault::VerifyClampsDrafts) { draft.clamp(0, vocabulary - 1) } else { draft };
            let params = at(place);
            let one = Drafted {
                logits: &logits[place..place + 2],
                drafts: &[draft],
                q: q.map(|q| &q[place..place + 1]),
                params: &params,
            };
            let (stands, token) = outcomes(&one)[0];
            if stands > 0 || self.has(Fault::VerifyAcceptsAll) {
                continue;
            }
            let token = match q {
                _ if self.has(Fault::VerifyNextOfLastRow) => taken(last, place),
                Some(_) if self.has(Fault::VerifyReplacesFromWhole) => taken(place, place),
                Some(q) if self.has(Fault::VerifyOneDraw) => {
                    let p = kept(&logits[place], &params).swap_remove(0);
                    let rest = q[place].iter().enumerate();
                    let rest: Vec<f64> = rest.map(|(id, q)| (p.probability(id).value - q).max(0.0)).collect();
                    let target = draw(params.seed, params.position) * rest.iter().sum::<f64>();
                    let mut running = 0.0;
                    let over = |weight: &f64| {
                        running += weight;
                        running > target
                    };
                    rest.iter().position(over).unwrap_or(token)
                }
                _ => token,
            };
            return (place, token);
        }
        (drafts.len(), taken(last, drafts.len()))
    }
}
