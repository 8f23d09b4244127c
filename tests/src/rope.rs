//! Rotary embedding, judged.

mod errors;
mod write;

use crate::{
    case::{Group, Verdict},
    judge::{judge, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, Layout, Region},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    rope::{CosSin, Direction, Positions, RopeArgs, RopeScaling, RopeSpec, RopeStyle, Yarn, YarnBounds},
};

const LAYOUTS: [Layout; 3] =
    [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }];
const STYLES: [RopeStyle; 2] = [RopeStyle::HalfSplit, RopeStyle::Interleaved];
const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// What a step turns by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum By {
    /// Positions.
    Positions,
    /// Cosines and sines of the caller's own: random numbers, so that nothing can be made up for them.
    CosSin,
}

/// One call, in place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Which rotation.
    pub spec: RopeSpec,
    /// Which way.
    pub direction: Direction,
    /// By what.
    pub by: By,
    /// Heads.
    pub heads: usize,
    /// A position a token: `[axes, tokens]`.
    pub positions: Vec<u32>,
    /// How the heads lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

impl Case {
    fn new(spec: RopeSpec, heads: usize, positions: Vec<u32>) -> Self {
        let (direction, by) = (Direction::Forward, By::Positions);
        Case { spec, direction, by, heads, positions, layout: Layout::Dense, seed: 9 }
    }

    fn tokens(&self) -> usize {
        self.positions.len() / self.spec.axes()
    }
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("rope", "edges", edges(), body),
        Group::listed("rope", "scalings", scalings(), body),
        Group::listed("rope", "axes", axes(), body),
        Group::listed("rope", "cos_sin", cos_sin(), body),
        Group::listed("rope", "inverse", inverse(), body),
        Group::listed("rope", "supports", supports(), body),
        Group::seeded("rope", "random", 60, random, body),
        Group::bodies("rope", "views", vec![("queries and keys in one buffer, values untouched", views)]),
        Group::listed("rope", "write", write::cases(), write::body),
        Group::seeded("rope", "write_random", 30, write::random, write::body),
        Group::bodies("rope", "errors", errors::bodies()),
    ]
}

fn llama3() -> RopeScaling {
    let (low_freq_factor, high_freq_factor) = (1.0, 4.0);
    RopeScaling::Llama3 { factor: 8.0, low_freq_factor, high_freq_factor, original_context: 8192 }
}

/// Every kind of stretching, for `pairs` pairs.
fn every_scaling(pairs: usize) -> Vec<RopeScaling> {
    let yarn = Yarn::new(16.0, 4096);
    let divisors = (0..pairs).map(|pair| 1.0 + pair as f32 / 3.0).collect();
    vec![
        RopeScaling::None,
        RopeScaling::Linear { factor: 4.0 },
        llama3(),
        RopeScaling::Ntk { factor: 8.0 },
        RopeScaling::Yarn(yarn),
        // DeepSeek-V3's, and gpt-oss's.
        RopeScaling::Yarn(Yarn::new(40.0, 4096).with_attention_factor(1.0)),
        RopeScaling::Yarn(Yarn::new(32.0, 4096).with_bounds(YarnBounds::Exact)),
        // Bounds that leave nothing between them.
        RopeScaling::Yarn(yarn.with_betas(1.1, 1.0).with_attention_factor(0.5)),
        RopeScaling::Yarn(Yarn::new(2.0, 1)),
        RopeScaling::PerPair { divisors, attention_factor: 1.19 },
    ]
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, head_dim) in [2, 4, 6, 16, 30, 32, 34, 56, 64, 80, 96, 128, 192, 256].into_iter().enumerate()
    {
        for style in STYLES {
            for (heads, positions) in [
                (0, vec![1, 2]),
                (3, vec![]),
                (1, vec![0]),
                (4, vec![0, 1, 2, 3, 5, 8191, 8192, 131_071]),
                (12, vec![9_999, 3]),
            ] {
                let spec = RopeSpec::new(head_dim, style, 131_072)
                    .with_scaling(every_scaling(head_dim / 2).swap_remove(number % 3));
                let (layout, seed) = (LAYOUTS[number % 3], number as u64);
                cases.push(Case { layout, seed, ..Case::new(spec, heads, positions) });
            }
        }
    }
    cases
}

fn scalings() -> Vec<Case> {
    let mut cases = Vec::new();
    for (head_dim, rotary_dim, theta) in
        [(2, 2, 1e4), (64, 64, 1e4), (64, 34, 150_000.0), (128, 128, 1e6), (192, 64, 1e4)]
    {
        for scaling in every_scaling(rotary_dim / 2) {
            for (number, style) in STYLES.into_iter().enumerate() {
                let spec = RopeSpec::new(head_dim, style, 131_072)
                    .with_rotary_dim(rotary_dim)
                    .with_theta(theta)
                    .with_scaling(scaling.clone());
                let case = Case::new(spec, 2, vec![0, 1, 4095, 4096, 131_071]);
                cases.push(Case { layout: LAYOUTS[number], ..case });
            }
        }
    }
    cases
}

fn axes() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in STYLES {
        for (head_dim, pair_axes) in [
            // Qwen2-VL's sections, Qwen3-VL's order, and axes that no pair turns by.
            (128, [vec![0; 16], vec![1; 24], vec![2; 24]].concat()),
            (128, (0..64).map(|pair| if pair < 60 { pair % 3 } else { 0 }).collect()),
            (34, vec![1; 17]),
            (8, vec![3, 0, 0, 1]),
        ] {
            let spec = RopeSpec::new(head_dim, style, 5000).with_pair_axes(pair_axes);
            for tokens in [0, 1, 5] {
                let position = |place: u32| (place * 977 + 3) % 5000;
                let positions = (0..(tokens * spec.axes()) as u32).map(position).collect();
                cases.push(Case { layout: LAYOUTS[1], ..Case::new(spec.clone(), 3, positions) });
            }
        }
    }
    cases
}

fn cos_sin() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in STYLES {
        for (head_dim, rotary_dim) in [(2, 2), (30, 16), (64, 64), (80, 34)] {
            for tokens in [0, 1, 4] {
                // What the spec says of angles is not asked.
                let spec = RopeSpec::new(head_dim, style, 1)
                    .with_rotary_dim(rotary_dim)
                    .with_scaling(RopeScaling::Yarn(Yarn::new(4.0, 100)));
                cases.push(Case { by: By::CosSin, ..Case::new(spec, 2, vec![0; tokens]) });
            }
        }
    }
    cases
}

fn inverse() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in STYLES {
        for head_dim in [2, 30, 64, 96] {
            for by in [By::Positions, By::CosSin] {
                let spec = RopeSpec::new(head_dim, style, 1000);
                let case = Case::new(spec, 3, vec![999, 1, 0, 77]);
                cases.push(Case { direction: Direction::Inverse, by, layout: LAYOUTS[2], ..case });
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in STYLES {
        for rotary_dim in [2, 20, 30, 32, 64] {
            for (number, scaling) in every_scaling(rotary_dim / 2).into_iter().enumerate() {
                for theta in [10_000.0, 500_000.0] {
                    let spec = RopeSpec::new(64, style, 40_000)
                        .with_theta(theta)
                        .with_rotary_dim(rotary_dim)
                        .with_scaling(scaling.clone())
                        .with_dtype(FLOATS[number % 3]);
                    cases.push(Case { layout: LAYOUTS[1], ..Case::new(spec, 3, vec![39_999, 0, 77]) });
                }
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (head_dim, tokens) = (2 + rng.below(127), rng.below(9));
    let max_positions = 1 + rng.below(100_000);
    let rotary_dim = 2 + 2 * rng.below(head_dim / 2);
    let mut scalings = every_scaling(rotary_dim / 2);
    let scaling = scalings.swap_remove(rng.below(scalings.len()));
    let axes = 1 + rng.below(3);
    let pair_axes = if rng.coin() { (0..rotary_dim / 2).map(|_| rng.below(axes)).collect() } else { vec![] };
    let spec = RopeSpec::new(head_dim, rng.pick(&STYLES), max_positions)
        .with_rotary_dim(rotary_dim)
        .with_theta(100.0 + 1e6 * rng.unit())
        .with_scaling(scaling)
        .with_pair_axes(pair_axes)
        .with_dtype(rng.pick(&FLOATS));
    Case {
        direction: rng.pick(&[Direction::Forward, Direction::Forward, Direction::Inverse]),
        by: rng.pick(&[By::Positions, By::Positions, By::CosSin]),
        layout: rng.pick(&LAYOUTS),
        seed,
        positions: (0..tokens * spec.axes()).map(|_| rng.below(max_positions) as u32).collect(),
        ..Case::new(spec, rng.below(7), Vec::new())
    }
}

/// Cosines and sines of the caller's own, `[tokens, pairs]`.
fn own_turns(case: &Case) -> (Vec<f32>, Vec<f32>) {
    let (mut rng, count) = (Rng::new(case.seed ^ 7), case.tokens() * case.spec.rotary_dim / 2);
    (rng.aways(count), rng.aways(count))
}

fn expected(case: &Case, x: &[f64]) -> Vec<Bound> {
    let Case { spec, heads, positions, .. } = case;
    let (head_dim, rotary_dim, pairs) = (spec.head_dim, spec.rotary_dim, spec.rotary_dim / 2);
    let (own_cos, own_sin) = own_turns(case);
    let mut out = Vec::new();
    for token in 0..case.tokens() {
        let (cos, mut sin) = match case.by {
            By::Positions => {
                let position: Vec<u32> =
                    positions.iter().copied().skip(token).step_by(case.tokens()).collect();
                oracle::rope::tables(spec, &position)
            }
            By::CosSin => {
                let of = |own: &[f32]| own[token * pairs..][..pairs].iter().map(|&x| f64::from(x)).collect();
                (of(&own_cos), of(&own_sin))
            }
        };
        if case.direction == Direction::Inverse {
            sin.iter_mut().for_each(|sin| *sin = -*sin);
        }
        for head in 0..*heads {
            let x = &x[(token * heads + head) * head_dim..][..head_dim];
            let turned = oracle::rope::turn(spec.style, x, &cos, &sin).into_iter().enumerate();
            // Elements beyond rotary_dim keep their bits.
            out.extend(turned.map(|(i, y)| if i < rotary_dim { y.rounded(spec.dtype) } else { y }));
        }
    }
    out
}

/// Updates a plan for a case, after a longer step: what that leaves in the tables must not be used.
fn update<B: Backend>(device: &B, stream: &mut B::Stream, plan: &mut B::RopePlan, case: &Case) -> Verdict {
    let earlier = vec![0; (case.tokens() + 2) * case.spec.axes()];
    let step = Positions { positions: &earlier }.check(plan)?;
    device.rope_update(stream, plan, &step)?;
    match case.by {
        By::Positions => {
            let step = Positions { positions: &case.positions }.check(plan)?;
            device.rope_update(stream, plan, &step)?;
        }
        By::CosSin => {
            let (cos, sin) = own_turns(case);
            let step = CosSin { cos: &cos, sin: &sin }.check(plan)?;
            device.rope_update_cos_sin(stream, plan, &step)?;
        }
    }
    Ok(())
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, heads, layout, seed, .. } = case;
    let stream = &mut device.stream()?;
    let planned = device.rope_plan(spec, case.tokens() + 2);
    if denied(device.rope_supports(spec)) {
        return unsupported("rope", planned);
    }
    let mut plan = planned?;
    update(device, stream, &mut plan, case)?;
    let dims = [case.tokens(), *heads, spec.head_dim];
    let values = Rng::new(*seed).aways(dims.iter().product());
    let (x, x_values) = Guarded::<B>::input(stream, spec.dtype, &values, &dims, *layout)?;
    let args = RopeArgs { plan: &plan, direction: case.direction, x: &x.view };
    device.rope(stream, args.check()?)?;
    judge("x", &dims, &x.read(stream)?, &expected(case, &x_values))
}

fn views<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (tokens, query_heads, kv_heads, head_dim) = (5, 6, 2, 32);
    let (turning, width) = ((query_heads + kv_heads) * head_dim, (query_heads + 2 * kv_heads) * head_dim);
    let region = Region::<B>::new(stream, DType::F32, &[tokens + 2, width])?;
    let rows = region.parent().narrow(0, 1..tokens + 1)?;
    let x = rows.narrow(1, 0..turning)?.split_last(head_dim)?;
    let v = rows.narrow(1, turning..width)?;
    let mut rng = Rng::new(11);
    let x_values = region.put(stream, &x, &rng.aways(tokens * turning))?;
    let v_values = region.put(stream, &v, &rng.aways(tokens * (width - turning)))?;
    let spec = RopeSpec::new(head_dim, RopeStyle::HalfSplit, 100);
    let case = Case::new(spec, query_heads + kv_heads, vec![4, 5, 6, 99, 0]);
    let mut plan = device.rope_plan(&case.spec, tokens)?;
    let step = Positions { positions: &case.positions }.check(&plan)?;
    device.rope_update(stream, &mut plan, &step)?;
    device.rope(stream, RopeArgs { plan: &plan, direction: Direction::Forward, x: &x }.check()?)?;
    let after = region.get(stream, &[&x, &v])?;
    judge("x", x.dims(), &after[0], &expected(&case, &x_values))?;
    let untouched: Vec<Bound> = v_values.into_iter().map(Bound::exact).collect();
    judge("v", v.dims(), &after[1], &untouched)
}
