//! Layers whose every product and sum is exact: sparse small integers, and scales that are powers of two. Whatever the
//! order of a sum, one answer is right, so nothing is allowed: a lost, doubled or misplaced element shows however small.

use crate::{
    case::Verdict,
    judge::{judge, unsupported},
    ledger::denied,
    poison::{Guarded, LAYOUTS, Layout, stored},
    random::Rng,
    tolerance::Bound,
};
use half::{bf16, f16};
use halite_kernels::{
    Backend, DType, Stream,
    linear::{Activations, Epilogue, HostWeights, LinearArgs, LinearSpec, WeightFormat},
};

/// One layer on the grid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Which layer: floats, or W8A8.
    pub spec: LinearSpec,
    /// Rows of the activations.
    pub rows: usize,
    /// Whether there is a bias.
    pub bias: bool,
    /// Whether there is a residual.
    pub residual: bool,
    /// How activations, residual and output lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// What an INT8 sum is multiplied by, `2^-3` a channel and `2^-2` a token.
const CHANNEL: f64 = 0.125;
const TOKEN: f64 = 0.25;

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed ^ 0x6F1D);
    let (k, n) = (1 + rng.below(300), 1 + rng.below(80));
    let output = rng.pick(&[DType::F32, DType::F16, DType::Bf16]);
    let spec = match rng.below(4) {
        0 => LinearSpec::float(k, n, WeightFormat::F32),
        1 => LinearSpec::float(k, n, WeightFormat::F16),
        2 => LinearSpec::float(k, n, WeightFormat::Bf16),
        _ => LinearSpec::w8a8(k, n),
    };
    Case {
        spec: spec.with_output(output),
        rows: rng.below(27),
        bias: rng.coin(),
        residual: rng.coin(),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

/// Mostly zeros, between them integers up to `size` of either sign.
fn sparse(rng: &mut Rng, count: usize, size: usize) -> Vec<i32> {
    let value = |rng: &mut Rng| rng.below(2 * size + 1) as i32 - size as i32;
    (0..count).map(|_| if rng.below(3) == 0 { value(rng) } else { 0 }).collect()
}

fn floats(values: &[i32]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, layout, .. } = case;
    let (rows, k, n) = (*rows, spec.in_features, spec.out_features);
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let int8 = spec.weights == WeightFormat::Int8PerChannel;
    // 300 products of 127 times 127 stay below 2^24, where F32 holds every integer.
    let size = if int8 { 127 } else { 8 };
    let (x, w) = (sparse(&mut rng, rows * k, size), sparse(&mut rng, n * k, size));
    let scales = vec![CHANNEL as f32; n];
    let (w_f32, q): (Vec<f32>, Vec<i8>) = (floats(&w), w.iter().map(|&w| w as i8).collect());
    let w_f16: Vec<f16> = w_f32.iter().map(|&w| f16::from_f32(w)).collect();
    let w_bf16: Vec<bf16> = w_f32.iter().map(|&w| bf16::from_f32(w)).collect();
    let host = match spec.weights {
        WeightFormat::F32 => HostWeights::F32(&w_f32),
        WeightFormat::F16 => HostWeights::F16(&w_f16),
        WeightFormat::Bf16 => HostWeights::Bf16(&w_bf16),
        _ => HostWeights::Int8PerChannel { q: &q, scales: &scales },
    };
    let packed = device.linear_pack(stream, host.check(spec)?);
    if denied(device.linear_supports(spec)) {
        return unsupported("linear", packed);
    }
    let packed = packed?;

    let dims = [rows, k];
    let token_scales = vec![TOKEN as f32; rows];
    let (token_scales, _) = Guarded::<B>::input(stream, DType::F32, &token_scales, &[rows], Layout::Dense)?;
    let operand = if int8 {
        Guarded::<B>::integers(stream, DType::I8, &x, &dims, *layout)?
    } else {
        Guarded::<B>::input(stream, DType::F32, &floats(&x), &dims, *layout)?.0
    };
    let (biases, residuals) = (sparse(&mut rng, n, 99), sparse(&mut rng, rows * n, 8));
    let (bias, _) = Guarded::<B>::input(stream, DType::F32, &floats(&biases), &[n], Layout::Dense)?;
    let (residual, _) = Guarded::<B>::input(stream, spec.output, &floats(&residuals), &[rows, n], *layout)?;
    let out = Guarded::<B>::output(stream, spec.output, &[rows, n], *layout)?;
    stream.reserve(device.linear_workspace(&packed, rows))?;
    let args = LinearArgs::<B> {
        x: if int8 {
            Activations::int8_per_token(&operand.view, &token_scales.view)
        } else {
            Activations::Float(&operand.view)
        },
        weights: &packed,
        epilogue: Epilogue {
            bias: case.bias.then_some(&bias.view),
            residual: case.residual.then_some(&residual.view),
            ..Epilogue::default()
        },
        out: &out.view,
    };
    device.linear(stream, args.check()?)?;

    let scale = if int8 { CHANNEL * TOKEN } else { 1.0 };
    let expected = (0..rows * n).map(|place| {
        let (x, w) = (&x[place / n * k..][..k], &w[place % n * k..][..k]);
        let sum: i64 = x.iter().zip(w).map(|(&x, &w)| i64::from(x) * i64::from(w)).sum();
        let bias = if case.bias { f64::from(biases[place % n]) } else { 0.0 };
        let residual = if case.residual { f64::from(residuals[place]) } else { 0.0 };
        Bound::exact(stored(spec.output, (sum as f64 * scale + bias + residual) as f32))
    });
    judge("out", &[rows, n], &out.read(stream)?, &expected.collect::<Vec<_>>())
}
