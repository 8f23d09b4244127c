//! Rows whose offsets do not fit 32 bits.
//!
//! Weights of experts are tensors of their own, so however many there are, what can leave 32 bits is the offset of a row;
//! `large_weights` has a single one that large. Strided views put rows 2^30 elements apart: memory is taken only where it is touched.

use crate::{
    case::{Fault, Verdict},
    judge::same_bits,
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Error, Stream, Tensor,
    grouped::GroupedArgs,
    linear::{Activations, HostWeights, LinearSpec},
    moe::{CombineArgs, DispatchArgs, LocalExperts},
};

const HIDDEN: usize = 40;
const TOKENS: usize = 3;
const APART: usize = (1 << 30) + 8;

/// Three rows, the last beyond 2^31 elements: `[3, HIDDEN]`.
fn far<B: Backend>(device: &B, dtype: DType) -> Result<Option<Tensor<B>>, Fault> {
    match Tensor::<B>::new(device, dtype, &[TOKENS, APART]) {
        Ok(all) => Ok(Some(all.narrow(1, 0..HIDDEN)?)),
        Err(Error::OutOfMemory { .. } | Error::Limit { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Copies a row of host values to a row of a far tensor.
fn fill<B: Backend>(stream: &mut B::Stream, to: &Tensor<B>, bytes: &[u8]) -> Verdict {
    for (row, bytes) in bytes.chunks_exact(bytes.len() / TOKENS).enumerate() {
        stream.upload(&to.narrow(0, row..row + 1)?, bytes)?;
    }
    Ok(())
}

/// Dispatches, multiplies and combines rows that lie beyond 2^31 elements: the bits of the same rows close together.
///
/// For devices whose memory is taken when it is touched; it belongs to no group. That there is no memory is right too.
///
/// # Errors
/// Another row was read or written.
pub fn beyond_i32<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(8);
    let local = LocalExperts::all(2);
    let ids = Tensor::<B>::from_slice(stream, &[1, 0, 1], &[TOKENS, 1])?;
    let weights = Tensor::<B>::from_slice(stream, &rng.aways(TOKENS), &[TOKENS, 1])?;
    let offsets = Tensor::<B>::new(device, DType::I32, &[3])?;
    let places = Tensor::<B>::new(device, DType::I32, &[TOKENS, 1])?;
    let values: Vec<half::bf16> = rng.aways(TOKENS * HIDDEN).into_iter().map(half::bf16::from_f32).collect();

    // Dispatch from far and back, BF16.
    let Some(x) = far(device, DType::Bf16)? else { return Ok(()) };
    fill(stream, &x, bytemuck::cast_slice(&values))?;
    let near = Tensor::<B>::from_slice(stream, &values, &[TOKENS, HIDDEN])?;
    let mut results = Vec::new();
    for x in [&near, &x] {
        let rows = Tensor::<B>::new(device, DType::Bf16, &[TOKENS, HIDDEN])?;
        let out = Tensor::<B>::new(device, DType::F32, &[TOKENS, HIDDEN])?;
        let sent = DispatchArgs::<B> {
            local,
            x: Activations::Float(x),
            ids: &ids,
            weights: None,
            rows: Activations::Float(&rows),
            offsets: &offsets,
            places: &places,
        };
        device.dispatch(stream, sent.check()?)?;
        let received = CombineArgs::<B> {
            rows: Activations::Float(x),
            places: &places,
            weights: Some(&weights),
            added: &[],
            out: &out,
        };
        device.combine(stream, received.check()?)?;
        let rows: Vec<half::bf16> = rows.to_vec(stream)?;
        let out: Vec<f32> = out.to_vec(stream)?;
        results.push((bytemuck::cast_slice(&rows).to_vec(), bytemuck::cast_slice(&out).to_vec()));
    }
    same_bits("rows dispatched from beyond 2^31 elements", &results[1].0, &results[0].0)?;
    same_bits("rows combined from beyond 2^31 elements", &results[1].1, &results[0].1)?;
    drop(x);

    // Grouped products of far INT8 rows.
    let Some(q) = far(device, DType::I8)? else { return Ok(()) };
    let values = rng.int8(TOKENS * HIDDEN);
    fill(stream, &q, bytemuck::cast_slice(&values))?;
    let near = Tensor::<B>::from_slice(stream, &values, &[TOKENS, HIDDEN])?;
    let spec = LinearSpec::w8a8(HIDDEN, 24);
    let mut packed = Vec::new();
    for _ in 0..2 {
        let (w, scales) =
            (rng.int8(24 * HIDDEN), rng.aways(24).iter().map(|s| s.abs()).collect::<Vec<f32>>());
        let host = HostWeights::Int8PerChannel { q: &w, scales: &scales };
        packed.push(device.linear_pack(stream, host.check(&spec)?)?);
    }
    stream.reserve(device.grouped_workspace(&packed[0], TOKENS))?;
    let scales = Tensor::<B>::from_slice(stream, &rng.aways(TOKENS), &[TOKENS])?;
    let mut products: Vec<Vec<f32>> = Vec::new();
    for q in [&near, &q] {
        let out = Tensor::<B>::new(device, DType::F32, &[TOKENS, 24])?;
        let args = GroupedArgs::<B> {
            x: Activations::int8_per_token(q, &scales),
            weights: &packed,
            offsets: &offsets,
            bias: None,
            out: &out,
        };
        device.grouped(stream, args.check()?)?;
        products.push(out.to_vec(stream)?);
    }
    let bytes = |values: &[f32]| bytemuck::cast_slice(values).to_vec();
    same_bits("products of rows beyond 2^31 elements", &bytes(&products[1]), &bytes(&products[0]))
}
