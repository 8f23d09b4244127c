//! Drafted tokens, verified.

use super::{KINDS, Logits, logits};
use crate::{
    case::{Verdict, ensure},
    judge::unsupported,
    ledger::denied,
    oracle,
    oracle::sampling::verify::{Drafted, outcomes},
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    sampling::{
        DraftProbabilities, ProbabilityArgs, SamplingArgs, SamplingParams, SamplingSpec, SamplingStep,
        VerifyArgs, VerifyCapacity, VerifyStep,
    },
};

/// Where drafts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Chosen: the likeliest tokens, with some others among them.
    Chosen,
    /// Drawn from a distribution near the model's.
    Drawn,
}

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Columns of the logits.
    pub vocabulary: usize,
    /// Each request's drafts, what its rows hold, and its parameters.
    pub requests: Vec<(usize, Logits, SamplingParams)>,
    /// Where the drafts come from.
    pub source: Source,
    /// How logits and probabilities lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let settings = [
        SamplingParams::greedy(),
        SamplingParams::seeded(1.0, 1),
        SamplingParams::seeded(0.4, 2).with_top_k(7),
        SamplingParams::seeded(1.5, 3).with_top_p(0.8),
        SamplingParams::seeded(1.0, 4).with_top_k(50).with_top_p(0.9).with_min_p(0.05),
    ];
    for (number, vocabulary) in [1, 2, 16, 17, 33, 301].into_iter().enumerate() {
        for source in [Source::Chosen, Source::Drawn] {
            for (setting, params) in settings.iter().enumerate() {
                let request = |(place, kind): (usize, &Logits)| {
                    let drafts = [3, 0, 1, 8][(place + setting) % 4];
                    (drafts, *kind, params.clone().at((number * 100 + place * 10) as u64))
                };
                let requests = KINDS.iter().enumerate().map(request).collect();
                let (layout, seed) = (LAYOUTS[setting % 3], (number * 10 + setting) as u64);
                cases.push(Case { vocabulary, requests, source, layout, seed });
            }
        }
        let (source, layout) = (Source::Chosen, Layout::Dense);
        cases.push(Case { vocabulary, requests: vec![], source, layout, seed: 0 });
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let requests = (0..rng.below(5)).map(|_| {
        let params = SamplingParams::seeded(rng.pick(&[0.0, 0.6, 1.0]), rng.bits())
            .with_top_k(rng.below(20) as u32)
            .with_top_p(1.0 - rng.unit() * 0.5)
            .at(rng.bits() >> 10);
        (rng.below(6), rng.pick(&KINDS), params)
    });
    let requests = requests.collect();
    let source = rng.pick(&[Source::Chosen, Source::Drawn]);
    Case { vocabulary: 1 + rng.below(100), requests, source, layout: rng.pick(&LAYOUTS), seed }
}

/// A token that may well stand: the best, mostly; now and then another, or none at all.
fn draft(rng: &mut Rng, logits: &[f32], params: &SamplingParams) -> i32 {
    let row: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
    match rng.below(8) {
        0 => rng.below(logits.len()) as i32,
        1 => rng.pick(&[-1, logits.len() as i32, i32::MIN, i32::MAX]),
        2 => oracle::sampling::ranking(&row)[0] as i32,
        _ => oracle::sampling::acceptable(&row, params).first().map_or(0, |&id| id as i32),
    }
}

/// A distribution that has something of the model's, with elements that count as 0 among them.
fn probabilities(rng: &mut Rng, logits: &[f32], params: &SamplingParams) -> Vec<f32> {
    let row: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
    let kept = oracle::sampling::kept(&row, params);
    let near = rng.pick(&[0.0, 0.5, 0.9]);
    let even = 1.0 / logits.len() as f64;
    let mut q: Vec<f32> = (0..logits.len())
        .map(|id| (near * kept[0].probability(id).value + (1.0 - near) * even) as f32)
        .collect();
    if rng.below(4) == 0 {
        let at = rng.below(q.len());
        q[at] = rng.pick(&[0.0, -0.5, f32::NAN, f32::INFINITY]);
    }
    q
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { vocabulary, requests, source, layout, seed } = case;
    let spec = SamplingSpec::new(*vocabulary);
    let stream = &mut device.stream()?;
    let drafted: usize = requests.iter().map(|request| request.0).sum();
    let planned = device.verify_plan(&spec, &VerifyCapacity::new(requests.len() + 1, drafted + 3));
    if denied(device.sampling_supports(&spec)) {
        return unsupported("sampling", planned);
    }
    let mut plan = planned?;
    let params: Vec<SamplingParams> = requests.iter().map(|request| request.2.clone()).collect();
    let mut cu_drafts = vec![0u32];
    for (drafts, _, _) in requests {
        cu_drafts.push(cu_drafts[cu_drafts.len() - 1] + *drafts as u32);
    }
    // A longer step before it: what it leaves in the plan must not be used.
    let earlier = vec![SamplingParams::seeded(2.0, 99); requests.len() + 1];
    let mut longer = vec![0u32; requests.len() + 1];
    longer.push(drafted as u32 + 3);
    for (params, cu_drafts) in [(&earlier, &longer), (&params, &cu_drafts)] {
        let step = VerifyStep { params, cu_drafts }.check(&plan)?;
        device.verify_update(stream, &mut plan, &step)?;
    }

    let mut rng = Rng::new(*seed);
    let (mut x, mut drafts, mut q) = (Vec::new(), Vec::new(), Vec::new());
    for (count, kind, params) in requests {
        for place in 0..=*count {
            let row = logits(&mut rng, *kind, *vocabulary);
            let params = params.clone().at(params.position + place as u64);
            if place < *count {
                drafts.push(draft(&mut rng, &row, &params));
                q.extend(probabilities(&mut rng, &row, &params));
            }
            x.extend(row);
        }
    }
    let dims = [drafted + requests.len(), *vocabulary];
    let (guarded, x) = Guarded::<B>::input(stream, DType::F32, &x, &dims, *layout)?;
    let ids = Guarded::<B>::integers(stream, DType::I32, &drafts, &[drafted], Layout::Dense)?;
    let (guarded_q, q) = Guarded::<B>::input(stream, DType::F32, &q, &[drafted, *vocabulary], *layout)?;
    let accepted = Guarded::<B>::output(stream, DType::I32, &[requests.len()], Layout::Dense)?;
    let next = Guarded::<B>::output(stream, DType::I32, &[requests.len()], Layout::Dense)?;
    let drawn = *source == Source::Drawn;
    let args = VerifyArgs {
        plan: &plan,
        logits: &guarded.view,
        drafts: &ids.view,
        probabilities: if drawn {
            DraftProbabilities::Drawn(&guarded_q.view)
        } else {
            DraftProbabilities::Chosen
        },
        accepted: &accepted.view,
        next: &next.view,
    };
    device.verify(stream, args.check()?)?;
    let (accepted, next) = (accepted.read(stream)?, next.read(stream)?);

    let rows = |data: &[f64], first: usize, count: usize| -> Vec<Vec<f64>> {
        data[first * vocabulary..(first + count) * vocabulary]
            .chunks(*vocabulary)
            .map(<[f64]>::to_vec)
            .collect()
    };
    for (request, params) in params.iter().enumerate() {
        let (start, end) = (cu_drafts[request] as usize, cu_drafts[request + 1] as usize);
        let (logits, q) = (rows(&x, start + request, end - start + 1), rows(&q, start, end - start));
        let (drafts, q) = (&drafts[start..end], drawn.then_some(&q[..]));
        let right = outcomes(&Drafted { logits: &logits, drafts, q, params });
        let got = (accepted[request], next[request]);
        ensure(right.iter().any(|&(count, token)| (count as f64, token as f64) == got), || {
            format!("request {request}, drafts {drafts:?}: expected one of {right:?}, got {got:?}")
        })?;
    }
    Ok(())
}

/// Over many positions the first token of a request comes as often as the model's probability says, however it was
/// drafted: each token within five deviations. Drafts are drawn by `sample`, with the request's own seed and position.
pub(super) fn frequencies<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let p = [0.4, 0.05, 0.25, 0.0, 0.3];
    let q = [0.1, 0.5, 0.25, 0.1, 0.05];
    let row = |p: [f64; 5]| p.map(|p: f64| p.ln() as f32);
    let (requests, draws, vocabulary) = (64, 4096, p.len());
    let spec = SamplingSpec::new(vocabulary);
    let mut plan = device.verify_plan(&spec, &VerifyCapacity::new(requests, requests))?;
    let mut draft_plan = device.sampling_plan(&spec, requests)?;
    let logits = Tensor::<B>::from_slice(stream, &row(p).repeat(2 * requests), &[2 * requests, vocabulary])?;
    let draft_logits = Tensor::<B>::from_slice(stream, &row(q).repeat(requests), &[requests, vocabulary])?;
    let cu_drafts: Vec<u32> = (0..=requests as u32).collect();
    for chosen in [false, true] {
        let (mut counts, mut stood) = ([0usize; 5], 0usize);
        for start in (0..draws).step_by(requests) {
            let params: Vec<_> =
                (start..start + requests).map(|at| SamplingParams::seeded(1.0, 31).at(at as u64)).collect();
            let step = SamplingStep { params: &params }.check(&draft_plan)?;
            device.sampling_update(stream, &mut draft_plan, &step)?;
            let drafts = Tensor::<B>::new(device, DType::I32, &[requests])?;
            let args = SamplingArgs { plan: &draft_plan, logits: &draft_logits, ids: &drafts };
            device.sample(stream, args.check()?)?;
            let drawn = Tensor::<B>::new(device, DType::F32, &[requests, vocabulary])?;
            let args = ProbabilityArgs { plan: &draft_plan, logits: &draft_logits, out: &drawn };
            device.probabilities(stream, args.check()?)?;
            let step = VerifyStep { params: &params, cu_drafts: &cu_drafts }.check(&plan)?;
            device.verify_update(stream, &mut plan, &step)?;
            let (accepted, next) = (
                Tensor::<B>::new(device, DType::I32, &[requests])?,
                Tensor::new(device, DType::I32, &[requests])?,
            );
            let args = VerifyArgs {
                plan: &plan,
                logits: &logits,
                drafts: &drafts,
                probabilities: if chosen {
                    DraftProbabilities::Chosen
                } else {
                    DraftProbabilities::Drawn(&drawn)
                },
                accepted: &accepted,
                next: &next,
            };
            device.verify(stream, args.check()?)?;
            let (accepted, next) = (accepted.to_vec::<i32>(stream)?, next.to_vec::<i32>(stream)?);
            let drafts = drafts.to_vec::<i32>(stream)?;
            for request in 0..requests {
                let first = if accepted[request] > 0 { drafts[request] } else { next[request] };
                stood += usize::from(accepted[request] > 0);
                let count = usize::try_from(first).ok().and_then(|first| counts.get_mut(first));
                ensure(count.is_some(), || format!("id {first} of 5"))?;
                count.into_iter().for_each(|count| *count += 1);
            }
        }
        let n = draws as f64;
        let near = |count: usize, p: f64| (count as f64 - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt();
        for (id, (&count, p)) in counts.iter().zip(p).enumerate() {
            ensure(near(count, p), || {
                format!("token {id} came {count} times of {draws}; its probability is {p} (chosen: {chosen})")
            })?;
        }
        // A draft stands with probability Σ min(p, q).
        let overlap = p.iter().zip(q).map(|(p, q)| p.min(q)).sum();
        ensure(chosen || near(stood, overlap), || {
            format!("{stood} of {draws} drafts stood; the probability is {overlap}")
        })?;
    }
    Ok(())
}
