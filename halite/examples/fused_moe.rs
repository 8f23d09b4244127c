//! A mixture-of-experts layer: a router chooses two of eight experts for each token, and one call runs them all.
//!
//! Each expert is a SwiGLU network of its own: `down(silu(gate(x)) * up(x))`. The answer is compared with the same layer
//! in plain loops, which knows nothing of sorting tokens by expert.
//!
//! ```sh
//! cargo run -p halite --example fused_moe
//! ```

use halite::cpu::{Cpu, Options};
use halite::hal::{DType, Device, Stream, Tensor};
use halite::kernels::activation::Activation;
use halite::kernels::linear::{
    Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat,
};
use halite::kernels::moe::{
    ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, LocalExperts, Moe, RoutingArgs, RoutingSpec,
    Scoring,
};

const TOKENS: usize = 5;
const HIDDEN: usize = 64;
const INTERMEDIATE: usize = 48;
const EXPERTS: usize = 8;
const TOP_K: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Cpu::new(Options::default())?;
    let stream = &mut device.stream()?;

    // Once: the router, and each expert's two layers, packed one by one. Gates come before ups, in one matrix.
    let router = numbers(EXPERTS * HIDDEN, 1);
    let router_spec = LinearSpec::float(HIDDEN, EXPERTS, WeightFormat::F32);
    let packed_router = device.linear_pack(stream, HostWeights::F32(&router).check(&router_spec)?)?;
    let gate_up_spec = LinearSpec::float(HIDDEN, INTERMEDIATE, WeightFormat::F32).gated(Activation::Silu);
    let down_spec = LinearSpec::float(INTERMEDIATE, HIDDEN, WeightFormat::F32);
    let (mut gate_up, mut down) = (Vec::new(), Vec::new());
    let (mut packed_gate_up, mut packed_down) = (Vec::new(), Vec::new());
    for expert in 0..EXPERTS as u32 {
        let (first, second) =
            (numbers(2 * INTERMEDIATE * HIDDEN, 10 + expert), numbers(HIDDEN * INTERMEDIATE, 90 + expert));
        packed_gate_up.push(device.linear_pack(stream, HostWeights::F32(&first).check(&gate_up_spec)?)?);
        packed_down.push(device.linear_pack(stream, HostWeights::F32(&second).check(&down_spec)?)?);
        gate_up.push(first);
        down.push(second);
    }

    // Once: memory for so many tokens. `LocalExperts::range` would serve a part of the experts, as one of several ranks.
    let routing = RoutingSpec::new(EXPERTS, TOP_K, Scoring::Softmax).renormalized();
    let experts = FeedForward::new(gate_up_spec, down_spec);
    let spec = ExpertsSpec::new(LocalExperts::all(EXPERTS), TOP_K, experts);
    let plan = device.moe_plan(&spec, TOKENS)?;
    let weights = ExpertWeights::new(&packed_gate_up, &packed_down);
    stream.reserve(device.moe_workspace(&plan, weights, None))?;
    stream.reserve(device.routing_workspace(&routing, TOKENS))?;

    // Each call: logits, ids and weights of the experts, then the experts. The ids stay on the device.
    let x = numbers(TOKENS * HIDDEN, 2);
    let x_tensor = &Tensor::from_slice(stream, &x, &[TOKENS, HIDDEN])?;
    let logits = &Tensor::new(&device, DType::F32, &[TOKENS, EXPERTS])?;
    let args = LinearArgs {
        x: Activations::Float(x_tensor),
        weights: &packed_router,
        epilogue: Epilogue::default(),
        out: logits,
    };
    device.linear(stream, args.check()?)?;
    let ids = &Tensor::new(&device, DType::I32, &[TOKENS, TOP_K])?;
    let shares = &Tensor::new(&device, DType::F32, &[TOKENS, TOP_K])?;
    let args = RoutingArgs { spec: &routing, logits, correction_bias: None, ids, weights: shares };
    device.route(stream, args.check()?)?;
    let out = &Tensor::new(&device, DType::F32, &[TOKENS, HIDDEN])?;
    let args = ExpertsArgs {
        plan: &plan,
        x: x_tensor,
        ids,
        weights: shares,
        experts: weights,
        shared: None,
        residual: None,
        out,
    };
    device.moe(stream, args.check()?)?;

    let (answer, chosen) = (out.to_vec::<f32>(stream)?, ids.to_vec::<i32>(stream)?);
    let (mut expected, mut expected_ids) = (Vec::new(), Vec::new());
    for x in x.chunks_exact(HIDDEN) {
        let logits = product(&router, x);
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        let total: f64 = order[..TOP_K].iter().map(|&expert| logits[expert].exp()).sum();
        let mut y = vec![0.0; HIDDEN];
        for &expert in &order[..TOP_K] {
            let inner = product(&gate_up[expert], x);
            let (gates, ups) = inner.split_at(INTERMEDIATE);
            let hidden: Vec<f32> =
                gates.iter().zip(ups).map(|(gate, up)| (gate / (1.0 + (-gate).exp()) * up) as f32).collect();
            let share = logits[expert].exp() / total;
            y.iter_mut()
                .zip(product(&down[expert], &hidden))
                .for_each(|(y, of_expert)| *y += share * of_expert);
            expected_ids.push(expert as i32);
        }
        expected.extend(y);
    }
    let difference = furthest(&answer, &expected);
    println!("{}: {TOKENS} tokens, {TOP_K} of {EXPERTS} experts each", device.info().name);
    println!("experts of each token: {:?}", chosen.chunks_exact(TOP_K).collect::<Vec<_>>());
    println!("first token, first channels: {:.4?}", &answer[..4]);
    println!("largest difference from plain loops: {difference:.1e}");
    if chosen == expected_ids && difference < 1e-5 { Ok(()) } else { Err("the answer is wrong".into()) }
}

/// `count` numbers between -1/2 and 1/2, in no order that a sum could profit from.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) / 2.0
    };
    (0..count).map(|_| next()).collect()
}

/// A matrix `[rows, x.len()]` times a vector.
fn product(matrix: &[f32], x: &[f32]) -> Vec<f64> {
    let row = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
    matrix.chunks_exact(x.len()).map(row).collect()
}

/// The largest difference; by total order a NaN is the largest.
fn furthest(answer: &[f32], expected: &[f64]) -> f64 {
    let differences = answer.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs());
    differences.max_by(f64::total_cmp).unwrap_or(f64::NAN)
}
