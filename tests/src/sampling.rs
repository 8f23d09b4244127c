//! Sampling and log-probabilities, judged.

mod errors;
mod log_probs;
mod probabilities;
mod verify;

use crate::{
    case::{Group, Verdict, ensure},
    judge::{judge, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    sampling::{SamplingArgs, SamplingParams, SamplingSpec, SamplingStep},
};

/// What a row of logits holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Logits {
    /// A few likely tokens among many unlikely ones.
    Peaked,
    /// Equal values: ties go to the lower id.
    Flat,
    /// NaN everywhere except in one place in four.
    Nans,
    /// -inf everywhere except in one place in four.
    Masked,
    /// Nothing that can be drawn: -inf and NaN.
    Nothing,
    /// Two tokens of the same logit above the rest.
    Tie,
    /// Magnitudes near the largest F32.
    Huge,
    /// Further apart than F32 holds.
    Apart,
}

pub(crate) const KINDS: [Logits; 7] =
    [Logits::Peaked, Logits::Flat, Logits::Nans, Logits::Masked, Logits::Nothing, Logits::Tie, Logits::Huge];

/// One step: a token for each row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Columns of the logits.
    pub vocabulary: usize,
    /// Each row's logits and parameters.
    pub rows: Vec<(Logits, SamplingParams)>,
    /// How the logits lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("sampling", "greedy", greedy(), body),
        Group::listed("sampling", "drawn", drawn(), body),
        Group::seeded("sampling", "random", 60, random, body),
        Group::bodies(
            "sampling",
            "frequencies",
            vec![
                ("draws follow the distribution", frequencies),
                ("tokens that were drafted follow it too", verify::frequencies),
            ],
        ),
        Group::listed("sampling", "probabilities", drawn(), probabilities::body),
        Group::listed("sampling", "log_probs", log_probs::cases(), log_probs::body),
        Group::listed("sampling", "verify", verify::cases(), verify::body),
        Group::seeded("sampling", "verify_random", 60, verify::random, verify::body),
        Group::bodies("sampling", "errors", errors::bodies()),
    ]
}

fn greedy() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, vocabulary) in
        [1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000, 49_152].into_iter().enumerate()
    {
        for rows in [0, 1, KINDS.len()] {
            let rows = KINDS.iter().take(rows).map(|&kind| (kind, SamplingParams::greedy())).collect();
            cases.push(Case { vocabulary, rows, layout: LAYOUTS[number % 3], seed: number as u64 });
        }
    }
    cases
}

fn drawn() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, vocabulary) in [1, 2, 7, 16, 33, 257, 1000].into_iter().enumerate() {
        for (setting, params) in [
            SamplingParams::seeded(1.0, 1),
            SamplingParams::seeded(0.3, 2),
            SamplingParams::seeded(3.0, 3),
            SamplingParams::seeded(1.0, 4).with_top_k(1),
            SamplingParams::seeded(1.0, 5).with_top_k(5),
            SamplingParams::seeded(1.0, 6).with_top_k(u32::MAX),
            SamplingParams::seeded(1.0, 7).with_top_p(0.5),
            SamplingParams::seeded(1.0, 8).with_top_p(1e-9),
            SamplingParams::seeded(1.0, 9).with_min_p(0.2),
            SamplingParams::seeded(1.0, 10).with_min_p(1.0),
            SamplingParams::seeded(0.8, u64::MAX).with_top_k(40).with_top_p(0.9).with_min_p(0.05),
            SamplingParams::seeded(1e-30, 12),
            SamplingParams::seeded(1e-45, 13),
            SamplingParams::seeded(1e30, 14),
            SamplingParams::seeded(2e38, 15),
            SamplingParams::seeded(2e38, 16).with_top_p(0.7),
        ]
        .into_iter()
        .enumerate()
        {
            let rows = KINDS
                .into_iter()
                .chain([Logits::Apart])
                .enumerate()
                .map(|(row, kind)| (kind, params.clone().at((row * 1000 + number) as u64)))
                .collect();
            cases.push(Case { vocabulary, rows, layout: LAYOUTS[setting % 3], seed: setting as u64 });
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let count = rng.below(6);
    let rows = (0..count)
        .map(|_| {
            let params = SamplingParams::seeded(rng.pick(&[0.0, 0.5, 1.0, 2.0]), rng.bits())
                .with_top_k(rng.below(30) as u32)
                .with_top_p(1.0 - rng.unit() * 0.9)
                .with_min_p(rng.pick(&[0.0, 0.01, 0.3]))
                .at(rng.bits() >> 20);
            (rng.pick(&KINDS), params)
        })
        .collect();
    Case { vocabulary: 1 + rng.below(300), rows, layout: rng.pick(&LAYOUTS), seed }
}

pub(crate) fn logits(rng: &mut Rng, kind: Logits, vocabulary: usize) -> Vec<f32> {
    let mut row: Vec<f32> = (0..vocabulary)
        .map(|_| if rng.below(20) == 0 { 6.0 + 4.0 * rng.unit() } else { 4.0 * rng.unit() - 8.0 })
        .collect();
    let spared = rng.below(4);
    let special = |place: usize, value: f32, other: f32| if place % 4 == spared { value } else { other };
    let top = [rng.below(vocabulary.max(1)), rng.below(vocabulary.max(1))];
    for (place, value) in row.iter_mut().enumerate() {
        *value = match kind {
            Logits::Peaked => *value,
            Logits::Flat => 0.5,
            Logits::Nans => special(place, *value, f32::NAN),
            Logits::Masked => special(place, *value, f32::NEG_INFINITY),
            Logits::Nothing => special(place, f32::NAN, f32::NEG_INFINITY),
            Logits::Tie => {
                if top.contains(&place) {
                    9.0
                } else {
                    *value
                }
            }
            Logits::Huge => *value * 1e37,
            Logits::Apart => *value * 3e37,
        };
    }
    row
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { vocabulary, rows, layout, seed } = case;
    let spec = SamplingSpec::new(*vocabulary);
    let stream = &mut device.stream()?;
    let planned = device.sampling_plan(&spec, rows.len() + 2);
    if denied(device.sampling_supports(&spec)) {
        return unsupported("sampling", planned);
    }
    let mut plan = planned?;
    // A longer step before it: what it leaves in the plan must not be used.
    let earlier = vec![SamplingParams::seeded(2.0, 99); rows.len() + 2];
    let step = SamplingStep { params: &earlier }.check(&plan)?;
    device.sampling_update(stream, &mut plan, &step)?;
    let params: Vec<SamplingParams> = rows.iter().map(|row| row.1.clone()).collect();
    let step = SamplingStep { params: &params }.check(&plan)?;
    device.sampling_update(stream, &mut plan, &step)?;
    let mut rng = Rng::new(*seed);
    let values: Vec<f32> = rows.iter().flat_map(|row| logits(&mut rng, row.0, *vocabulary)).collect();
    let dims = [rows.len(), *vocabulary];
    let (logits, values) = Guarded::<B>::input(stream, DType::F32, &values, &dims, *layout)?;
    let ids = Guarded::<B>::output(stream, DType::I32, &[rows.len()], Layout::Dense)?;
    let args = SamplingArgs { plan: &plan, logits: &logits.view, ids: &ids.view };
    device.sample(stream, args.check()?)?;
    let ids = ids.read(stream)?;
    for (row, &id) in ids.iter().enumerate() {
        let acceptable =
            oracle::sampling::acceptable(&values[row * vocabulary..][..*vocabulary], &params[row]);
        ensure(id >= 0.0 && acceptable.contains(&(id as usize)), || {
            format!("ids[{row}]: expected one of {acceptable:?}, got {id}")
        })?;
    }
    // The logits are only read.
    let before: Vec<Bound> = values.into_iter().map(Bound::exact).collect();
    judge("logits", &dims, &logits.read(stream)?, &before)
}

/// Over 4,096 positions each token comes as often as its probability says, within five deviations.
fn frequencies<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let p = [0.4, 0.05, 0.25, 0.0, 0.3];
    let row: Vec<f32> = p.iter().map(|p: &f64| p.ln() as f32).collect();
    let (rows, draws) = (64, 4096);
    let spec = SamplingSpec::new(row.len());
    let mut plan = device.sampling_plan(&spec, rows)?;
    let (logits, _) =
        Guarded::<B>::input(stream, DType::F32, &row.repeat(rows), &[rows, row.len()], Layout::Dense)?;
    let mut counts = [0usize; 5];
    for start in (0..draws).step_by(rows) {
        let params: Vec<_> =
            (start..start + rows).map(|at| SamplingParams::seeded(1.0, 31).at(at as u64)).collect();
        let step = SamplingStep { params: &params }.check(&plan)?;
        device.sampling_update(stream, &mut plan, &step)?;
        let ids = Guarded::<B>::output(stream, DType::I32, &[rows], Layout::Dense)?;
        let args = SamplingArgs { plan: &plan, logits: &logits.view, ids: &ids.view };
        device.sample(stream, args.check()?)?;
        for id in ids.read(stream)? {
            let count = counts.get_mut(id as usize);
            ensure(count.is_some(), || format!("id {id} of 5"))?;
            count.into_iter().for_each(|count| *count += 1);
        }
    }
    for (id, (&count, p)) in counts.iter().zip(p).enumerate() {
        let n = draws as f64;
        let deviation = (n * p * (1.0 - p)).sqrt();
        ensure((count as f64 - n * p).abs() <= 5.0 * deviation, || {
            format!("token {id} came {count} times of {draws}; its probability is {p}")
        })?;
    }
    Ok(())
}
