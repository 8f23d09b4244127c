//! Rotary embedding, judged.

use crate::{
    case::{Group, Verdict},
    judge::{judge, refused, unsupported},
    oracle,
    poison::{Guarded, Layout, Region},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Support,
    rope::{MAX_ROTARY_DIM, Positions, RopeArgs, RopeScaling, RopeSpec, RopeStyle},
};

const LAYOUTS: [Layout; 3] =
    [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }];
const STYLES: [RopeStyle; 2] = [RopeStyle::HalfSplit, RopeStyle::Interleaved];
const LLAMA3: RopeScaling =
    RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
const SCALINGS: [RopeScaling; 3] = [RopeScaling::None, RopeScaling::Linear { factor: 4.0 }, LLAMA3];

/// One call, in place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// Which rotation.
    pub spec: RopeSpec,
    /// Heads.
    pub heads: usize,
    /// A position a token.
    pub positions: Vec<u32>,
    /// How the heads lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("rope", "edges", edges(), body),
        Group::listed("rope", "supports", supports(), body),
        Group::seeded("rope", "random", 40, random, body),
        Group::bodies("rope", "views", vec![("queries and keys in one buffer, values untouched", views)]),
        Group::bodies("rope", "errors", vec![("wrong specs, steps and shapes", errors)]),
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
                let spec = RopeSpec::new(head_dim, style, 131_072).with_scaling(SCALINGS[number % 3]);
                let layout = LAYOUTS[number % 3];
                cases.push(Case { spec, heads, positions, layout, seed: number as u64 });
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in STYLES {
        for scaling in SCALINGS {
            for rotary_dim in [2, 20, 30, 32, 64] {
                for theta in [10_000.0, 500_000.0] {
                    let spec = RopeSpec::new(64, style, 40_000)
                        .with_theta(theta)
                        .with_rotary_dim(rotary_dim)
                        .with_scaling(scaling);
                    let positions = vec![39_999, 0, 77];
                    cases.push(Case { spec, heads: 3, positions, layout: LAYOUTS[1], seed: 9 });
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
    let spec = RopeSpec::new(head_dim, rng.pick(&STYLES), max_positions)
        .with_rotary_dim(2 + 2 * rng.below(head_dim / 2))
        .with_theta(100.0 + 1e6 * rng.unit())
        .with_scaling(rng.pick(&SCALINGS));
    Case {
        spec,
        heads: rng.below(7),
        positions: (0..tokens).map(|_| rng.below(max_positions) as u32).collect(),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

fn expected(case: &Case, x: &[f64]) -> Vec<Bound> {
    let head_dim = case.spec.head_dim;
    let mut out = Vec::new();
    for (token, &position) in case.positions.iter().enumerate() {
        for head in 0..case.heads {
            let x = &x[(token * case.heads + head) * head_dim..][..head_dim];
            let turned = oracle::rope::head(&case.spec, x, position);
            let rotary_dim = case.spec.rotary_dim;
            // Elements beyond rotary_dim keep their bits.
            out.extend(
                turned.into_iter().enumerate().map(
                    |(i, y)| {
                        if i < rotary_dim { y.rounded(DType::F32) } else { y }
                    },
                ),
            );
        }
    }
    out
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, heads, positions, layout, seed } = case;
    let stream = &mut device.stream()?;
    let planned = device.rope_plan(spec, positions.len() + 2);
    if let Support::No(_) = device.rope_supports(spec) {
        return unsupported("rope", planned);
    }
    let mut plan = planned?;
    // A longer step before it: what it leaves in the tables must not be used.
    let earlier = vec![0; positions.len() + 2];
    let step = Positions { positions: &earlier }.check(&plan)?;
    device.rope_update(stream, &mut plan, &step)?;
    let step = Positions { positions }.check(&plan)?;
    device.rope_update(stream, &mut plan, &step)?;
    let dims = [positions.len(), *heads, spec.head_dim];
    let values = Rng::new(*seed).aways(dims.iter().product());
    let (x, x_values) = Guarded::<B>::input(stream, DType::F32, &values, &dims, *layout)?;
    device.rope(stream, RopeArgs { plan: &plan, x: &x.view }.check()?)?;
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
    let case = Case {
        spec: RopeSpec::new(head_dim, RopeStyle::HalfSplit, 100),
        heads: query_heads + kv_heads,
        positions: vec![4, 5, 6, 99, 0],
        layout: Layout::Dense,
        seed: 11,
    };
    let mut plan = device.rope_plan(&case.spec, tokens)?;
    let step = Positions { positions: &case.positions }.check(&plan)?;
    device.rope_update(stream, &mut plan, &step)?;
    device.rope(stream, RopeArgs { plan: &plan, x: &x }.check()?)?;
    let after = region.get(stream, &[&x, &v])?;
    judge("x", x.dims(), &after[0], &expected(&case, &x_values))?;
    let untouched: Vec<Bound> = v_values.into_iter().map(Bound::exact).collect();
    judge("v", v.dims(), &after[1], &untouched)
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let base = || RopeSpec::new(8, RopeStyle::HalfSplit, 10);
    let llama3 = |factor, low_freq_factor, high_freq_factor, original_context| {
        base().with_scaling(RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context,
        })
    };
    for (argument, spec) in [
        ("rotary_dim", base().with_rotary_dim(0)),
        ("rotary_dim", base().with_rotary_dim(3)),
        ("rotary_dim", base().with_rotary_dim(10)),
        ("rotary_dim", RopeSpec::new(MAX_ROTARY_DIM + 2, RopeStyle::HalfSplit, 10)),
        ("rotary_dim", RopeSpec::new(1 << 60, RopeStyle::HalfSplit, 10)),
        ("theta", base().with_theta(0.0)),
        ("theta", base().with_theta(f32::NAN)),
        ("theta", base().with_theta(f32::INFINITY)),
        ("scaling", base().with_scaling(RopeScaling::Linear { factor: 0.0 })),
        ("scaling", base().with_scaling(RopeScaling::Linear { factor: f32::NAN })),
        ("scaling", llama3(8.0, 4.0, 4.0, 8192)),
        ("scaling", llama3(8.0, 1.0, 4.0, 0)),
        ("scaling", llama3(-1.0, 1.0, 4.0, 8192)),
        ("max_positions", RopeSpec::new(8, RopeStyle::HalfSplit, 1 << 31)),
    ] {
        refused("rope", argument, spec.check())?;
        refused("rope", argument, device.rope_plan(&spec, 4))?;
    }
    let mut plan = device.rope_plan(&base(), 2)?;
    refused("rope", "tokens", Positions { positions: &[0, 1, 2] }.check(&plan))?;
    refused("rope", "positions", Positions { positions: &[0, 10] }.check(&plan))?;
    let step = Positions { positions: &[0, 9] }.check(&plan)?;
    let mut shorter = base();
    shorter.max_positions = 9;
    for mut other in [device.rope_plan(&base(), 1)?, device.rope_plan(&shorter, 2)?] {
        refused("rope", "step", device.rope_update(stream, &mut other, &step))?;
    }
    device.rope_update(stream, &mut plan, &step)?;
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 3, 8], Layout::Dense)?;
    let flat = Guarded::<B>::output(stream, DType::F32, &[2, 24], Layout::Dense)?;
    let half = Guarded::<B>::output(stream, DType::F16, &[2, 3, 8], Layout::Dense)?;
    for x in [&x.view.narrow(0, 0..1)?, &flat.view, &half.view, &flat.view.split_last(4)?] {
        refused("rope", "x", RopeArgs { plan: &plan, x }.check())?;
    }
    x.untouched(stream)
}
