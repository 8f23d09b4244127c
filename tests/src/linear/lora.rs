//! Low-rank adapters, several in one batch.

use super::{FLOAT_WEIGHTS, FLOATS, Fill, operands::Weights};
use crate::{
    case::{Fault, Verdict, ensure},
    judge::{judge, refused, unsupported},
    ledger::denied,
    oracle::linear::lora::{Adapter, row},
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    activation::Activation,
    linear::{LinearSpec, LoraAdapter, LoraArgs, LoraPlan, LoraSpec, LoraStep, WeightFormat},
};

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Columns of the activations.
    pub in_features: usize,
    /// Columns of the output.
    pub out_features: usize,
    /// Of each adapter; 0 for one that leaves the layer alone.
    pub ranks: Vec<usize>,
    /// The adapter of each row.
    pub rows: Vec<i32>,
    /// How the adapters' matrices are stored.
    pub weights: WeightFormat,
    /// Type of the activations.
    pub activations: DType,
    /// Type of the output.
    pub output: DType,
    /// How activations and output lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let rows: [&[i32]; 9] = [
        &[],
        &[-1],
        &[0],
        &[2, 2, 2],
        &[-1, -1, -1],
        &[0, 1, 0, 1, -1, 2, 3],
        &[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0],
        &[-1, 0, 0, -1, 1, 1, 1, 2],
        &[3, 2, 1, 0, -1],
    ];
    let mut cases = Vec::new();
    for (number, (in_features, out_features)) in
        [(1, 1), (33, 17), (64, 48), (100, 33), (17, 130), (576, 64)].into_iter().enumerate()
    {
        for (other, rows) in rows.into_iter().enumerate() {
            cases.push(Case {
                in_features,
                out_features,
                ranks: [[1, 4, 16, 33], [8, 0, 1, 5]][other % 2].to_vec(),
                rows: rows.to_vec(),
                weights: FLOAT_WEIGHTS[(number + other) % 3],
                activations: FLOATS[number % 3],
                output: FLOATS[other % 3],
                layout: LAYOUTS[other % 3],
                seed: (number * 100 + other) as u64,
            });
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (adapters, rows) = (1 + rng.below(5), rng.below(40));
    Case {
        in_features: 1 + rng.below(200),
        out_features: 1 + rng.below(100),
        ranks: (0..adapters).map(|_| rng.below(20)).collect(),
        rows: (0..rows).map(|_| rng.below(adapters + 1) as i32 - 1).collect(),
        weights: rng.pick(&FLOAT_WEIGHTS),
        activations: rng.pick(&FLOATS),
        output: rng.pick(&FLOATS),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

/// A layer's adapters, packed, and exact.
pub(crate) struct Adapters<B: Backend> {
    packed: Vec<Option<Packed<B>>>,
    exact: Vec<Option<Adapter>>,
}

struct Packed<B: Backend> {
    down: B::Packed,
    up: B::Packed,
    scale: f32,
}

impl<B: Backend> Adapters<B> {
    pub(crate) fn new(device: &B, stream: &mut B::Stream, rng: &mut Rng, case: &Case) -> Result<Self, Fault> {
        let (mut packed, mut exact) = (Vec::new(), Vec::new());
        for &rank in &case.ranks {
            if rank == 0 {
                packed.push(None);
                exact.push(None);
                continue;
            }
            let down =
                LinearSpec::float(case.in_features, rank, case.weights).with_activations(case.activations);
            let up = LinearSpec::float(rank, case.out_features, case.weights).with_output(case.output);
            let (a, b) = (Weights::new(rng, &down, Fill::Away), Weights::new(rng, &up, Fill::Away));
            let scale = 0.25 + 2.0 * rng.unit();
            let (down, up) = (a.pack(device, stream, &down)?, b.pack(device, stream, &up)?);
            packed.push(Some(Packed { down, up, scale }));
            exact.push(Some(Adapter { down: a.values(), up: b.values(), rank, scale: f64::from(scale) }));
        }
        Ok(Adapters { packed, exact })
    }

    pub(crate) fn arguments(&self) -> Vec<Option<LoraAdapter<'_, B>>> {
        let mut arguments = Vec::new();
        for adapter in &self.packed {
            let argument = adapter.as_ref();
            arguments.push(argument.map(|Packed { down, up, scale }| LoraAdapter {
                down,
                up,
                scale: *scale,
            }));
        }
        arguments
    }
}

impl Case {
    pub(crate) fn spec(&self) -> LoraSpec {
        let rank = self.ranks.iter().copied().max().unwrap_or(0).max(1);
        LoraSpec::new(self.ranks.len(), rank).with_activations(self.activations).with_output(self.output)
    }
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { in_features, out_features, rows: adapters, output, layout, .. } = case;
    let (spec, rows) = (case.spec(), adapters.len());
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let plan = device.lora_plan(&spec, rows.max(1));
    if denied(device.lora_supports(&spec)) {
        return unsupported("lora", plan);
    }
    let mut plan = plan?;
    let all = Adapters::<B>::new(device, stream, &mut rng, case)?;
    // Another step first, of which nothing may be left.
    let stale = [case.ranks.len() as i32 - 1];
    for adapters in [&stale[..], adapters] {
        let step = LoraStep { adapters }.check(&plan)?;
        device.lora_update(stream, &mut plan, &step)?;
    }
    ensure(plan.rows() == rows, || format!("a step of {rows} rows has {}", plan.rows()))?;

    let x = rng.aways(rows * in_features);
    let (x, xs) = Guarded::<B>::input(stream, case.activations, &x, &[rows, *in_features], *layout)?;
    let before = rng.spreads(rows * out_features);
    let (out, before) = Guarded::<B>::input(stream, *output, &before, &[rows, *out_features], *layout)?;
    let arguments = all.arguments();
    stream.reserve(device.lora_workspace(&plan, &arguments))?;
    let args = LoraArgs::<B> { plan: &plan, x: &x.view, adapters: &arguments, out: &out.view };
    device.lora(stream, args.check()?)?;

    let mut expected = Vec::new();
    for (t, &adapter) in adapters.iter().enumerate() {
        let out = &before[t * out_features..][..*out_features];
        let adapter = usize::try_from(adapter).ok().and_then(|adapter| all.exact[adapter].as_ref());
        match adapter {
            Some(adapter) => {
                expected.extend(row(&xs[t * in_features..][..*in_features], adapter, out, *output))
            }
            None => expected.extend(out.iter().map(|&y| Bound::exact(y))),
        }
    }
    judge("out", &[rows, *out_features], &out.read(stream)?, &expected)
}

pub(super) fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for (argument, spec) in [
        ("max_adapters", LoraSpec::new(0, 4)),
        ("max_adapters", LoraSpec::new(1 << 31, 4)),
        ("max_rank", LoraSpec::new(2, 0)),
        ("activations", LoraSpec::new(2, 4).with_activations(DType::I8)),
        ("output", LoraSpec::new(2, 4).with_output(DType::I32)),
    ] {
        refused("lora", argument, spec.check())?;
        refused("lora", argument, device.lora_plan(&spec, 3))?;
    }
    let spec = LoraSpec::new(2, 4);
    if denied(device.lora_supports(&spec)) {
        return unsupported("lora", device.lora_plan(&spec, 3));
    }
    let mut plan = device.lora_plan(&spec, 3)?;
    for (argument, adapters) in [
        ("rows", &[0, 0, 0, 0][..]),
        ("adapters", &[0, 2]),
        ("adapters", &[-2]),
        ("adapters", &[i32::MAX]),
        ("adapters", &[i32::MIN]),
    ] {
        refused("lora", argument, LoraStep { adapters }.check(&plan))?;
    }
    let other = device.lora_plan(&LoraSpec::new(3, 4), 3)?;
    let step = LoraStep { adapters: &[2] }.check(&other)?;
    refused("lora", "step", device.lora_update(stream, &mut plan, &step))?;
    let step = LoraStep { adapters: &[1, -1] }.check(&plan)?;
    device.lora_update(stream, &mut plan, &step)?;

    let mut pack =
        |spec: LinearSpec| Weights::new(&mut Rng::new(1), &spec, Fill::Away).pack(device, stream, &spec);
    let float = |k, n| LinearSpec::float(k, n, WeightFormat::F32);
    let (down, wide, long, half) = (
        pack(float(6, 4))?,
        pack(float(6, 5))?,
        pack(float(7, 4))?,
        pack(float(6, 4).with_output(DType::F16))?,
    );
    let (up, short, narrow) = (pack(float(4, 5))?, pack(float(4, 3))?, pack(float(3, 5))?);
    let (gated, wide_up) = (pack(float(4, 5).gated(Activation::Silu))?, pack(float(5, 5))?);
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, out, rows, halves, flat) = (
        tensor(DType::F32, &[2, 6])?,
        tensor(DType::F32, &[2, 5])?,
        tensor(DType::F32, &[3, 6])?,
        tensor(DType::F16, &[2, 5])?,
        tensor(DType::F32, &[10])?,
    );
    let adapter = |down, up, scale| Some(LoraAdapter::<B> { down, up, scale });
    let good = [None, adapter(&down, &up, 0.5)];
    let args = |x, adapters, out| LoraArgs::<B> { plan: &plan, x, adapters, out };
    args(&x.view, &good, &out.view).check()?;
    for (argument, args) in [
        ("x", args(&rows.view, &good, &out.view)),
        ("out", args(&x.view, &good, &halves.view)),
        ("out", args(&x.view, &good, &flat.view)),
        ("out", args(&rows.view.narrow(0, 0..2)?, &good, &rows.view.narrow(0, 1..3)?.narrow(1, 0..5)?)),
        ("adapters", args(&x.view, &good[..1], &out.view)),
        ("down", args(&x.view, &[None, adapter(&long, &up, 0.5)], &out.view)),
        ("down", args(&x.view, &[None, adapter(&half, &up, 0.5)], &out.view)),
        ("up", args(&x.view, &[None, adapter(&down, &short, 0.5)], &out.view)),
        ("up", args(&x.view, &[None, adapter(&down, &narrow, 0.5)], &out.view)),
        ("up", args(&x.view, &[None, adapter(&down, &gated, 0.5)], &out.view)),
        ("rank", args(&x.view, &[None, adapter(&wide, &wide_up, 0.5)], &out.view)),
        ("scale", args(&x.view, &[None, adapter(&down, &up, f32::NAN)], &out.view)),
        // An adapter that no row has is held against the layer too.
        ("up", args(&x.view, &[adapter(&down, &short, 0.5), None], &out.view)),
    ] {
        refused("lora", argument, args.check())?;
    }
    out.untouched(stream)
}
