use super::*;
use crate::testing::cuda;
use halite_hal::{Device, Stream};
use halite_kernels::{
    activation::Activation,
    linear::{HostWeights, Linear, LinearSpec},
    moe::{ExpertWeights, LocalExperts, Moe},
};

const EXPERTS: usize = 4;
const HIDDEN: usize = 40;
const INTERMEDIATE: usize = 24;
const TOP_K: usize = 2;
const TOKENS: usize = 5;

fn packed(
    cuda: &Cuda,
    stream: &mut CudaStream,
    spec: &LinearSpec,
    seed: usize,
) -> Result<crate::linear::CudaPacked> {
    let (n, k) = (spec.weight_rows(), spec.in_features);
    let q: Vec<i8> = (0..n * k).map(|i| ((i * 37 + seed * 11) % 251) as i8).collect();
    let scales: Vec<f32> = (0..n).map(|i| 0.002 + i as f32 * 1e-4).collect();
    cuda.linear_pack(stream, HostWeights::Int8PerChannel { q: &q, scales: &scales }.check(spec)?)
}

/// Slots that are sorted and slots that are not give a token the same bits; what a call queues waits for nothing, so that a
/// graph of it serves other tokens.
#[test]
fn a_token_has_its_bits_in_any_batch_and_in_a_graph() -> Result<()> {
    let Some(cuda) = cuda("a_token_has_its_bits_in_any_batch_and_in_a_graph") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let gate_up = LinearSpec::w8a8(HIDDEN, INTERMEDIATE).gated(Activation::Silu);
    let network = FeedForward::new(gate_up, LinearSpec::w8a8(INTERMEDIATE, HIDDEN));
    // The last of them is elsewhere.
    let spec = ExpertsSpec::new(LocalExperts::range(0, EXPERTS - 1), TOP_K, network.clone());
    let (mut gate_up, mut down) = (Vec::new(), Vec::new());
    for expert in 0..EXPERTS - 1 {
        gate_up.push(packed(&cuda, stream, &network.gate_up, expert)?);
        down.push(packed(&cuda, stream, &network.down, expert + 7)?);
    }
    let plan = cuda.moe_plan(&spec, TOKENS)?;
    let values: Vec<f32> = (0..TOKENS * HIDDEN).map(|i| (i * 29 % 97) as f32 / 24.0 - 2.0).collect();
    let x = Tensor::<Cuda>::from_slice(stream, &values, &[TOKENS, HIDDEN])?;
    let ids = Tensor::<Cuda>::from_slice(stream, &[0i32, 2, 1, 3, 3, 0, 2, 1, 1, 0], &[TOKENS, TOP_K])?;
    let weights: Vec<f32> = (0..TOKENS * TOP_K).map(|i| 0.25 + i as f32 / 16.0).collect();
    let weights = Tensor::<Cuda>::from_slice(stream, &weights, &[TOKENS, TOP_K])?;
    let experts = ExpertWeights::new(&gate_up, &down);
    stream.reserve(cuda.moe_workspace(&plan, experts, None))?;
    let run = |stream: &mut CudaStream, x: &Tensor<Cuda>, ids, weights, out: &Tensor<Cuda>| {
        let args = ExpertsArgs { plan: &plan, x, ids, weights, experts, shared: None, residual: None, out };
        cuda.moe(stream, args.check()?)
    };
    let all = Tensor::<Cuda>::new(&cuda, DType::F32, &[TOKENS, HIDDEN])?;
    let before = stream.launches();
    run(stream, &x, &ids, &weights, &all)?;
    assert_eq!(stream.launches(), before.map(|before| before + 6), "tokens, sort, layers, between, sum");
    let all = all.to_vec::<f32>(stream)?;
    assert!(all.chunks(HIDDEN).all(|row| row.iter().any(|&y| y != 0.0)));

    let first = [x.narrow(0, 0..1)?, ids.narrow(0, 0..1)?, weights.narrow(0, 0..1)?];
    let out = Tensor::<Cuda>::new(&cuda, DType::F32, &[1, HIDDEN])?;
    let before = stream.launches();
    run(stream, &first[0], &first[1], &first[2], &out)?;
    assert_eq!(stream.launches(), before.map(|before| before + 5), "nothing is sorted");
    assert_eq!(out.to_vec::<f32>(stream)?, all[..HIDDEN]);

    let (alone, slots) = (
        Tensor::<Cuda>::new(&cuda, DType::F32, &[1, HIDDEN])?,
        Tensor::<Cuda>::new(&cuda, DType::I32, &[1, TOP_K])?,
    );
    let factors = Tensor::<Cuda>::new(&cuda, DType::F32, &[1, TOP_K])?;
    stream.begin_capture()?;
    run(stream, &alone, &slots, &factors, &out)?;
    let graph = stream.end_capture()?;
    for token in 0..TOKENS {
        crate::copy::elements(stream, &x.narrow(0, token..token + 1)?, &alone)?;
        crate::copy::elements(stream, &ids.narrow(0, token..token + 1)?, &slots)?;
        crate::copy::elements(stream, &weights.narrow(0, token..token + 1)?, &factors)?;
        stream.launch_graph(&graph)?;
        assert_eq!(out.to_vec::<f32>(stream)?, all[token * HIDDEN..][..HIDDEN], "token {token}");
    }
    Ok(())
}
