//! A mixture of experts: routing, and the experts of a step in one call, for decode and prefill.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{
    Bench, Group, Measured, Product, Work, check_first, cold_copies, for_each_device, prompt, values,
};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{activation::Activation, linear::*, moe::*};

/// The sizes of a layer.
#[derive(Clone, Copy)]
struct Layer {
    hidden: usize,
    intermediate: usize,
    experts: usize,
    top_k: usize,
}

const SMALL: Layer = Layer { hidden: 576, intermediate: 384, experts: 16, top_k: 4 };
/// As large mixtures have it; measured in INT8 only.
const LARGE: Layer = Layer { hidden: 2048, intermediate: 1024, experts: 64, top_k: 8 };

struct Moes;

impl Bench for Moes {
    const OPERATOR: &'static str = "moe";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        for tokens in [1, 128] {
            routing(group, device, tokens, &SMALL)?;
            for int8 in [false, true] {
                experts(group, device, tokens, int8, &SMALL)?;
            }
        }
        // For a try, as many experts as a token has: all of them would take longer to make than to try.
        let large = Layer { experts: prompt(LARGE.experts).max(LARGE.top_k), ..LARGE };
        for tokens in [1, 32, 512] {
            experts(group, device, if tokens > 32 { prompt(tokens) } else { tokens }, true, &large)?;
        }
        Ok(())
    }
}

fn routing<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    tokens: usize,
    &Layer { experts, top_k, .. }: &Layer,
) -> Result<()> {
    let stream = &mut device.stream()?;
    let spec = RoutingSpec::new(experts, top_k, Scoring::Softmax).renormalized();
    let logits = vec![0.0f32; tokens * experts];
    let logits = Tensor::from_slice(stream, &logits, &[tokens, experts])?;
    let ids = Tensor::new(device, DType::I32, &[tokens, top_k])?;
    let weights = Tensor::new(device, DType::F32, &[tokens, top_k])?;
    stream.reserve(device.routing_workspace(&spec, tokens))?;
    let step = |stream: &mut B::Stream| -> Result<()> {
        let args =
            RoutingArgs { spec: &spec, logits: &logits, correction_bias: None, ids: &ids, weights: &weights };
        device.route(stream, args.check()?)
    };
    step(stream)?;
    // Equal logits: the lowest ids, with equal weights.
    check_first(&weights.to_vec::<f32>(stream)?, 1.0 / top_k as f64, 1e-6);
    let work = Work::bytes((tokens * experts * 4) as u64);
    group.measure(&format!("routing/{tokens}x{experts}"), work, stream, step)
}

fn experts<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    tokens: usize,
    int8: bool,
    &Layer { hidden, intermediate, experts, top_k }: &Layer,
) -> Result<()> {
    let stream = &mut device.stream()?;
    let layer = |k, n| if int8 { LinearSpec::w8a8(k, n) } else { LinearSpec::float(k, n, WeightFormat::F32) };
    let gate_up_spec = layer(hidden, intermediate).gated(Activation::Silu);
    let down_spec = layer(intermediate, hidden);
    // Every expert is the same one, so that the answer does not depend on the choice.
    let bytes = 3 * hidden * intermediate * if int8 { 1 } else { 4 };
    let layers = if tokens == 1 { cold_copies(experts * bytes) } else { 1 };
    let mut pack = |spec: &LinearSpec| -> Result<Vec<B::Packed>> {
        let data = values(spec.weight_rows() * spec.in_features);
        let q: Vec<i8> = data.iter().map(|value| (value * 127.0).round() as i8).collect();
        let scales = vec![1.0 / 127.0; spec.weight_rows()];
        let host = if int8 {
            HostWeights::Int8PerChannel { q: &q, scales: &scales }
        } else {
            HostWeights::F32(&data)
        };
        (0..layers * experts).map(|_| device.linear_pack(stream, host.check(spec)?)).collect()
    };
    let (gate_up, down) = (pack(&gate_up_spec)?, pack(&down_spec)?);
    let both = gate_up.chunks(experts).zip(down.chunks(experts));
    let layers: Vec<_> = both.map(|(gate_up, down)| ExpertWeights::new(gate_up, down)).collect();
    let network = FeedForward::new(gate_up_spec, down_spec);
    let plan = device.moe_plan(&ExpertsSpec::new(LocalExperts::all(experts), top_k, network), tokens)?;
    stream.reserve(device.moe_workspace(&plan, layers[0], None))?;

    let x_data: Vec<f32> = values(hidden).repeat(tokens);
    let x = Tensor::from_slice(stream, &x_data, &[tokens, hidden])?;
    // Others at each turn, so that the experts of a single token are as cold as those of a next layer.
    let turns = if tokens == 1 { experts / top_k } else { 1 };
    let chosen = |turn: usize| -> Vec<i32> {
        (0..tokens * top_k).map(|i| ((i / top_k * 5 + turn * top_k + i % top_k) % experts) as i32).collect()
    };
    let ids = (0..turns)
        .map(|turn| Tensor::from_slice(stream, &chosen(turn), &[tokens, top_k]))
        .collect::<Result<Vec<_>>>()?;
    let shares = Tensor::from_slice(stream, &vec![1.0 / top_k as f32; tokens * top_k], &[tokens, top_k])?;
    let out = Tensor::new(device, DType::F32, &[tokens, hidden])?;
    let step = |stream: &mut B::Stream, turn: usize| -> Result<()> {
        let args = ExpertsArgs {
            plan: &plan,
            x: &x,
            ids: &ids[turn % ids.len()],
            weights: &shares,
            experts: layers[turn / ids.len() % layers.len()],
            shared: None,
            residual: None,
            out: &out,
        };
        device.moe(stream, args.check()?)
    };
    step(stream, 0)?;
    let (first, second) = (values(2 * intermediate * hidden), values(hidden * intermediate));
    let dot = |w: &[f32], x: &[f32]| w.iter().zip(x).map(|(w, x)| f64::from(w * x)).sum::<f64>();
    let inner: Vec<f32> = (0..intermediate)
        .map(|channel| {
            let row = |row: usize| dot(&first[row * hidden..][..hidden], &x_data[..hidden]);
            let (gate, up) = (row(channel), row(intermediate + channel));
            (gate / (1.0 + (-gate).exp()) * up) as f32
        })
        .collect();
    let size = inner.iter().fold(0.0f64, |size, &x| size.max(f64::from(x).abs()));
    let tolerance = if int8 { 0.05 * size * (intermediate as f64).sqrt() } else { 1e-4 * size };
    check_first(&out.to_vec::<f32>(stream)?, dot(&second[..intermediate], &inner), tolerance);

    let format = if int8 { "W8A8" } else { "F32" };
    let products = (tokens * top_k * 3 * hidden * intermediate) as u64;
    let moved = top_k * bytes;
    let product = if int8 { Product::Int8 } else { Product::F32 };
    let work = match tokens {
        1 => {
            let resident = (moved * turns * layers.len()) as u64;
            Work::Weights { product, products, moved: moved as u64, resident }
        }
        _ => Work::Products(product, products),
    };
    let mut turn = 0;
    group.measure(&format!("experts/{tokens}x{top_k}of{experts}/{format}"), work, stream, |stream| {
        turn = (turn + 1) % (turns * layers.len());
        step(stream, turn)
    })
}

fn moe(criterion: &mut Criterion) {
    for_each_device(criterion, &Moes);
}

criterion_group!(benches, moe);
criterion_main!(benches);
