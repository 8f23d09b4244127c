//! The choice of experts.

use crate::{
    case::{Fault, Verdict},
    judge::{judge, unsupported},
    ledger::denied,
    oracle::moe::routing::Router,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    moe::{GroupScore, RoutingArgs, RoutingSpec, Scoring},
};

pub(crate) const SCORINGS: [Scoring; 3] = [Scoring::Softmax, Scoring::SoftmaxOfChosen, Scoring::Sigmoid];

/// What a row of logits holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logits {
    /// Between -4 and 4.
    Usual,
    /// Of four values only: ties everywhere.
    Ties,
    /// All equal.
    Flat,
    /// NaN in every third place.
    SomeNan,
    /// Nothing but NaN.
    AllNan,
    /// -inf in every second place.
    Masked,
    /// Nothing but -inf.
    AllMasked,
    /// One +inf.
    Infinite,
    /// Up to 1e30, either sign.
    Huge,
    /// The last expert far above the rest.
    LastBest,
    /// So low that no sigmoid is left of them.
    Lost,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Case {
    spec: RoutingSpec,
    rows: Vec<Logits>,
    bias: bool,
    layout: Layout,
    seed: u64,
}

pub(super) fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (experts, top_k)) in [
        (1, 1),
        (2, 1),
        (2, 2),
        (8, 2),
        (15, 3),
        (16, 16),
        (17, 4),
        (32, 1),
        (33, 8),
        (60, 4),
        (64, 6),
        (128, 8),
        (256, 8),
        (257, 10),
    ]
    .into_iter()
    .enumerate()
    {
        for scoring in SCORINGS {
            for bias in [false, true] {
                let mut spec = RoutingSpec::new(experts, top_k, scoring);
                if number % 2 == 0 {
                    spec = spec.renormalized();
                }
                if number % 3 == 0 {
                    spec = spec.with_scale(2.5);
                }
                let rows = vec![Logits::Usual; [0, 1, 5][number % 3]];
                cases.push(Case { spec, rows, bias, layout: LAYOUTS[number % 3], seed: number as u64 });
            }
        }
    }
    // DeepSeek-V3's, -V2's and Llama 4's routers.
    for (spec, bias) in [
        (
            RoutingSpec::new(256, 8, Scoring::Sigmoid)
                .with_groups(8, 4, GroupScore::TopTwo)
                .renormalized()
                .with_scale(2.5),
            true,
        ),
        (
            RoutingSpec::new(160, 6, Scoring::Softmax).with_groups(8, 3, GroupScore::Best).with_scale(16.0),
            false,
        ),
        (RoutingSpec::new(16, 1, Scoring::Sigmoid), false),
    ] {
        cases.push(Case { spec, rows: vec![Logits::Usual; 7], bias, layout: LAYOUTS[1], seed: 5 });
    }
    cases
}

pub(super) fn grouped() -> Vec<Case> {
    let mut cases = Vec::new();
    // Groups of one expert among them, and as many chosen as take part.
    for (number, (experts, groups, kept, top_k)) in [
        (8, 8, 2, 2),
        (8, 8, 8, 8),
        (8, 1, 1, 3),
        (8, 4, 2, 2),
        (12, 4, 1, 3),
        (48, 3, 2, 32),
        (64, 8, 4, 8),
        (256, 8, 4, 8),
        (512, 512, 9, 9),
        (512, 16, 16, 10),
    ]
    .into_iter()
    .enumerate()
    {
        for scoring in SCORINGS {
            for score in [GroupScore::Best, GroupScore::TopTwo] {
                for bias in [false, true] {
                    let spec = RoutingSpec::new(experts, top_k, scoring).with_groups(groups, kept, score);
                    let rows = vec![Logits::Usual, Logits::Usual, Logits::Flat, Logits::SomeNan];
                    let layout = LAYOUTS[number % 3];
                    cases.push(Case { spec, rows, bias, layout, seed: number as u64 });
                }
            }
        }
    }
    cases
}

pub(super) fn extremes() -> Vec<Case> {
    use Logits::*;
    // Rows beside a strange one are as they would be alone.
    let rows = vec![
        Usual, AllNan, Usual, SomeNan, Ties, Flat, Masked, AllMasked, Infinite, Huge, LastBest, Lost, Usual,
    ];
    let mut cases = Vec::new();
    for (experts, top_k) in [(3, 2), (8, 2), (16, 1), (33, 33), (128, 8), (512, 10)] {
        for scoring in SCORINGS {
            for (setting, bias) in [(0, false), (1, true), (2, false), (3, true)] {
                let mut spec = RoutingSpec::new(experts, top_k, scoring);
                if setting >= 2 {
                    spec = spec.renormalized().with_scale(0.5);
                }
                if setting >= 2 && experts == 128 {
                    let score = [GroupScore::Best, GroupScore::TopTwo][setting % 2];
                    spec = spec.with_groups(16, 3, score);
                }
                cases.push(Case { spec, rows: rows.clone(), bias, layout: LAYOUTS[setting % 3], seed: 3 });
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let groups = 1 + rng.below(12);
    let size = 1 + rng.below(20);
    let kept = 1 + rng.below(groups);
    let mut spec = RoutingSpec::new(groups * size, 1 + rng.below(kept * size), rng.pick(&SCORINGS));
    if rng.coin() {
        spec = spec.with_groups(groups, kept, rng.pick(&[GroupScore::Best, GroupScore::TopTwo]));
    }
    if rng.coin() {
        spec = spec.renormalized();
    }
    if rng.coin() {
        spec = spec.with_scale(rng.pick(&[0.25, 1.5, -2.0]));
    }
    let kinds = [Logits::Usual, Logits::Usual, Logits::Usual, Logits::Ties, Logits::SomeNan, Logits::Masked];
    let rows = (0..rng.below(12)).map(|_| rng.pick(&kinds)).collect();
    Case { spec, rows, bias: rng.coin(), layout: rng.pick(&LAYOUTS), seed }
}

fn logits(rng: &mut Rng, kind: Logits, experts: usize) -> Vec<f32> {
    let one = rng.below(experts);
    (0..experts)
        .map(|expert| {
            let usual = 8.0 * rng.unit() - 4.0;
            match kind {
                Logits::Usual => usual,
                Logits::Ties => usual.floor().clamp(-2.0, 1.0) + 0.3,
                Logits::Flat => 0.7,
                Logits::SomeNan if expert % 3 == one % 3 => f32::NAN,
                Logits::SomeNan => usual,
                Logits::AllNan => f32::NAN,
                Logits::Masked if expert % 2 == one % 2 => f32::NEG_INFINITY,
                Logits::Masked => usual,
                Logits::AllMasked => f32::NEG_INFINITY,
                Logits::Infinite if expert == one => f32::INFINITY,
                Logits::Infinite => usual,
                Logits::Huge => usual * 2.5e29,
                Logits::LastBest if expert + 1 == experts => 9.0,
                Logits::LastBest => usual,
                Logits::Lost => usual - 200.0,
            }
        })
        .collect()
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, layout, .. } = case;
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let (tokens, experts, top_k) = (rows.len(), spec.experts, spec.top_k);
    let values: Vec<f32> = rows.iter().flat_map(|&kind| logits(&mut rng, kind, experts)).collect();
    // Far enough apart to change the choice of sigmoids.
    let bias: Vec<f32> = (0..experts).map(|_| rng.unit() - 0.5).collect();
    let (logits, values) = Guarded::<B>::input(stream, DType::F32, &values, &[tokens, experts], *layout)?;
    let (bias, biases) = Guarded::<B>::input(stream, DType::F32, &bias, &[experts], Layout::Dense)?;
    let ids = Guarded::<B>::output(stream, DType::I32, &[tokens, top_k], *layout)?;
    let weights = Guarded::<B>::output(stream, DType::F32, &[tokens, top_k], *layout)?;
    stream.reserve(device.routing_workspace(spec, tokens))?;
    let args = RoutingArgs::<B> {
        spec,
        logits: &logits.view,
        correction_bias: case.bias.then_some(&bias.view),
        ids: &ids.view,
        weights: &weights.view,
    };
    let ran = device.route(stream, args.check()?);
    if denied(device.routing_supports(spec)) {
        unsupported("routing", ran)?;
        return ids.untouched(stream);
    }
    ran?;
    let chosen: Vec<i32> = ids.read(stream)?.into_iter().map(|id| id as i32).collect();
    let mut expected: Vec<Bound> = Vec::new();
    for (row, (logits, chosen)) in values.chunks_exact(experts).zip(chosen.chunks_exact(top_k)).enumerate() {
        let router = Router::new(spec, logits, case.bias.then_some(&biases));
        router.judge_ids(chosen).map_err(|fault| Fault(format!("row {row} ({:?}): {fault}", rows[row])))?;
        expected.extend(router.weights(chosen));
    }
    judge("weights", &[tokens, top_k], &weights.read(stream)?, &expected)
}
