//! A mixture of experts: routing, and the experts of a step in one call, for decode and prefill.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{
    Bench, Group, Measured, Product, Work, check_first, cold_copies, for_each_device, values,
};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{activation::Activation, linear::*, moe::*};

const HIDDEN: usize = 576;
const INTERMEDIATE: usize = 384;
const EXPERTS: usize = 16;
const TOP_K: usize = 4;

struct Moes;

impl Bench for Moes {
    const OPERATOR: &'static str = "moe";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        for tokens in [1, 128] {
            routing(group, device, tokens)?;
            for int8 in [false, true] {
                experts(group, device, tokens, int8)?;
            }
        }
        Ok(())
    }
}

fn routing<B: Measured>(group: &mut Group<'_>, device: &B, tokens: usize) -> Result<()> {
    let stream = &mut device.stream()?;
    let spec = RoutingSpec::new(EXPERTS, TOP_K, Scoring::Softmax).renormalized();
    let logits = vec![0.0f32; tokens * EXPERTS];
    let logits = Tensor::from_slice(stream, &logits, &[tokens, EXPERTS])?;
    let ids = Tensor::new(device, DType::I32, &[tokens, TOP_K])?;
    let weights = Tensor::new(device, DType::F32, &[tokens, TOP_K])?;
    stream.reserve(device.routing_workspace(&spec, tokens))?;
    let step = |stream: &mut B::Stream| -> Result<()> {
        let args =
            RoutingArgs { spec: &spec, logits: &logits, correction_bias: None, ids: &ids, weights: &weights };
        device.route(stream, args.check()?)
    };
    step(stream)?;
    // Equal logits: the lowest ids, with equal weights.
    check_first(&weights.to_vec::<f32>(stream)?, 1.0 / TOP_K as f64, 1e-6);
    let work = Work::bytes((tokens * EXPERTS * 4) as u64);
    group.measure(&format!("routing/{tokens}x{EXPERTS}"), work, stream, step)
}

fn experts<B: Measured>(group: &mut Group<'_>, device: &B, tokens: usize, int8: bool) -> Result<()> {
    let stream = &mut device.stream()?;
    let layer = |k, n| if int8 { LinearSpec::w8a8(k, n) } else { LinearSpec::float(k, n, WeightFormat::F32) };
    let gate_up_spec = layer(HIDDEN, INTERMEDIATE).gated(Activation::Silu);
    let down_spec = layer(INTERMEDIATE, HIDDEN);
    // Every expert is the same one, so that the answer does not depend on the choice.
    let mut pack = |spec: &LinearSpec| -> Result<B::Packed> {
        let data = values(spec.weight_rows() * spec.in_features);
        let q: Vec<i8> = data.iter().map(|value| (value * 127.0).round() as i8).collect();
        let scales = vec![1.0 / 127.0; spec.weight_rows()];
        let host = if int8 {
            HostWeights::Int8PerChannel { q: &q, scales: &scales }
        } else {
            HostWeights::F32(&data)
        };
        device.linear_pack(stream, host.check(spec)?)
    };
    let bytes = 3 * HIDDEN * INTERMEDIATE * if int8 { 1 } else { 4 };
    let layers = if tokens == 1 { cold_copies(EXPERTS * bytes) } else { 1 };
    let gate_up = (0..layers * EXPERTS).map(|_| pack(&gate_up_spec)).collect::<Result<Vec<_>>>()?;
    let down = (0..layers * EXPERTS).map(|_| pack(&down_spec)).collect::<Result<Vec<_>>>()?;
    let both = gate_up.chunks(EXPERTS).zip(down.chunks(EXPERTS));
    let layers: Vec<_> = both.map(|(gate_up, down)| ExpertWeights::new(gate_up, down)).collect();
    let network = FeedForward::new(gate_up_spec, down_spec);
    let plan = device.moe_plan(&ExpertsSpec::new(LocalExperts::all(EXPERTS), TOP_K, network), tokens)?;
    stream.reserve(device.moe_workspace(&plan, layers[0], None))?;

    let x_data: Vec<f32> = values(HIDDEN).repeat(tokens);
    let x = Tensor::from_slice(stream, &x_data, &[tokens, HIDDEN])?;
    let chosen: Vec<i32> =
        (0..tokens * TOP_K).map(|i| ((i / TOP_K * 5 + i % TOP_K) % EXPERTS) as i32).collect();
    let ids = Tensor::from_slice(stream, &chosen, &[tokens, TOP_K])?;
    let shares = Tensor::from_slice(stream, &vec![1.0 / TOP_K as f32; tokens * TOP_K], &[tokens, TOP_K])?;
    let out = Tensor::new(device, DType::F32, &[tokens, HIDDEN])?;
    let step = |stream: &mut B::Stream, experts| -> Result<()> {
        let args = ExpertsArgs {
            plan: &plan,
            x: &x,
            ids: &ids,
            weights: &shares,
            experts,
            shared: None,
            residual: None,
            out: &out,
        };
        device.moe(stream, args.check()?)
    };
    step(stream, layers[0])?;
    let (first, second) = (values(2 * INTERMEDIATE * HIDDEN), values(HIDDEN * INTERMEDIATE));
    let dot = |w: &[f32], x: &[f32]| w.iter().zip(x).map(|(w, x)| f64::from(w * x)).sum::<f64>();
    let inner: Vec<f32> = (0..INTERMEDIATE)
        .map(|channel| {
            let row = |row: usize| dot(&first[row * HIDDEN..][..HIDDEN], &x_data[..HIDDEN]);
            let (gate, up) = (row(channel), row(INTERMEDIATE + channel));
            (gate / (1.0 + (-gate).exp()) * up) as f32
        })
        .collect();
    let size = inner.iter().fold(0.0f64, |size, &x| size.max(f64::from(x).abs()));
    let tolerance = if int8 { 0.05 * size * (INTERMEDIATE as f64).sqrt() } else { 1e-4 * size };
    check_first(&out.to_vec::<f32>(stream)?, dot(&second[..INTERMEDIATE], &inner), tolerance);

    let format = if int8 { "W8A8" } else { "F32" };
    let products = (tokens * TOP_K * 3 * HIDDEN * INTERMEDIATE) as u64;
    let moved = TOP_K * bytes;
    let product = if int8 { Product::Int8 } else { Product::F32 };
    let work = match tokens {
        1 => {
            Work::Weights { product, products, moved: moved as u64, resident: (moved * layers.len()) as u64 }
        }
        _ => Work::Products(product, products),
    };
    let mut turn = 0;
    group.measure(&format!("experts/{tokens}x{TOP_K}of{EXPERTS}/{format}"), work, stream, |stream| {
        turn = (turn + 1) % layers.len();
        step(stream, layers[turn])
    })
}

fn moe(criterion: &mut Criterion) {
    for_each_device(criterion, &Moes);
}

criterion_group!(benches, moe);
criterion_main!(benches);
