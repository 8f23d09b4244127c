//! Weights of more than 2^31 elements: a layer, a group and an expert.
//!
//! All channels but the last of each half are zeros, which the host's memory holds untouched; packed they take 2.2 GB, and
//! 1.1 GB more for the expert's second layer. The last channels lie beyond 2^31 elements, on the host and packed.

use crate::{
    case::{Fault, Verdict, ensure},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Error, Stream, Tensor,
    activation::Activation,
    grouped::GroupedArgs,
    linear::{Activations, Epilogue, HostWeights, LinearArgs, LinearSpec},
    moe::{ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, LocalExperts},
};

const HIDDEN: usize = 1 << 16;
/// Gates and ups together are 2^31 + 2^20 elements.
const WIDE: usize = (1 << 14) + 8;
const TOKENS: usize = 2;

/// A layer whose rows are zeros but for some.
fn pack<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &LinearSpec,
    rows: &[(usize, &[i8])],
) -> Result<Option<B::Packed>, Fault> {
    let (k, n) = (spec.in_features, spec.weight_rows());
    let mut q = vec![0i8; n * k];
    for &(row, values) in rows {
        // A row's last columns.
        q[row * k..][..k][k - values.len()..].copy_from_slice(values);
    }
    // Sums of a few units, so that no gate vanishes.
    let scales = vec![0.001; n];
    match device.linear_pack(stream, HostWeights::Int8PerChannel { q: &q, scales: &scales }.check(spec)?) {
        Ok(packed) => Ok(Some(packed)),
        Err(Error::OutOfMemory { .. } | Error::Limit { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A gated layer through `linear` and `grouped`, and an expert that begins with it: the bits of the same network without
/// the channels that are zero.
///
/// For devices whose memory is the host's; it belongs to no group. That there is no memory is right too.
///
/// # Errors
/// Another channel was read or written.
pub fn weights_beyond_i32<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(9);
    let (gate, up, down_weight) = (rng.int8(HIDDEN), rng.int8(HIDDEN), [77i8]);
    let q = Tensor::<B>::from_slice(stream, &rng.int8(TOKENS * HIDDEN), &[TOKENS, HIDDEN])?;
    let scales = Tensor::<B>::from_slice(stream, &[0.002f32, 0.001], &[TOKENS])?;
    let x = Tensor::<B>::from_slice(stream, &rng.aways(TOKENS * HIDDEN), &[TOKENS, HIDDEN])?;
    let offsets = Tensor::<B>::from_slice(stream, &[0i32, 1, 2], &[3])?;
    let ids = Tensor::<B>::from_slice(stream, &[1i32, 0], &[TOKENS, 1])?;
    let weights = Tensor::<B>::from_slice(stream, &[1f32, 0.75], &[TOKENS, 1])?;
    let mut results: Vec<[Vec<f32>; 3]> = Vec::new();
    for width in [1, WIDE] {
        let gate_up_spec = LinearSpec::w8a8(HIDDEN, width).gated(Activation::Silu);
        let down_spec = LinearSpec::w8a8(width, HIDDEN);
        let rows = [(width - 1, &gate[..]), (2 * width - 1, &up[..])];
        let Some(gate_up) = pack(device, stream, &gate_up_spec, &rows)? else { return Ok(()) };
        let Some(down) = pack(device, stream, &down_spec, &[(HIDDEN - 1, &down_weight)])? else {
            return Ok(());
        };
        let (gate_up, down) = ([gate_up.clone(), gate_up], [down.clone(), down]);
        let expert = FeedForward::new(gate_up_spec, down_spec);
        let plan = device.moe_plan(&ExpertsSpec::new(LocalExperts::all(2), 1, expert), TOKENS)?;
        let experts = ExpertWeights::new(&gate_up, &down);
        let room = [
            device.linear_workspace(&gate_up[0], TOKENS),
            device.grouped_workspace(&gate_up[0], TOKENS),
            device.moe_workspace(&plan, experts, None),
        ];
        stream.reserve(room.into_iter().fold(0, u64::max))?;

        let layer = Tensor::<B>::new(device, DType::F32, &[TOKENS, width])?;
        let args = LinearArgs::<B> {
            x: Activations::int8_per_token(&q, &scales),
            weights: &gate_up[0],
            epilogue: Epilogue::default(),
            out: &layer,
        };
        device.linear(stream, args.check()?)?;
        let groups = Tensor::<B>::new(device, DType::F32, &[TOKENS, width])?;
        let args = GroupedArgs::<B> {
            x: Activations::int8_per_token(&q, &scales),
            weights: &gate_up,
            offsets: &offsets,
            bias: None,
            out: &groups,
        };
        device.grouped(stream, args.check()?)?;
        let out = Tensor::<B>::new(device, DType::F32, &[TOKENS, HIDDEN])?;
        let args = ExpertsArgs::<B> {
            plan: &plan,
            x: &x,
            ids: &ids,
            weights: &weights,
            experts,
            shared: None,
            residual: None,
            out: &out,
        };
        device.moe(stream, args.check()?)?;
        results.push([layer.to_vec(stream)?, groups.to_vec(stream)?, out.to_vec(stream)?]);
    }
    let names = ["a layer", "groups", "experts"];
    for ((name, small), large) in names.into_iter().zip(&results[0]).zip(&results[1]) {
        // Of each row the last elements, and zeros before them.
        let (small_width, width) = (small.len() / TOKENS, large.len() / TOKENS);
        for (token, (small, large)) in
            small.chunks_exact(small_width).zip(large.chunks_exact(width)).enumerate()
        {
            let (zeros, rest) = large.split_at(width - small_width);
            let same = rest.iter().zip(small).all(|(a, b)| a.to_bits() == b.to_bits());
            let some = small.last().is_some_and(|&y| y.is_finite() && y != 0.0);
            ensure(same && some && zeros.iter().all(|&y| y == 0.0), || {
                format!(
                    "{name} beyond 2^31 elements, token {token}: {:?}, not {:?}",
                    rest.last(),
                    small.last()
                )
            })?;
        }
    }
    Ok(())
}
