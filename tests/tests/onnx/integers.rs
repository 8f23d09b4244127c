//! `MatMulInteger` and `TensorScatter`.

use crate::fixture::{Array, Fixture};
use halite_hal::{Pending, Stream, Tensor};
use halite_kernels::{
    Backend, DType,
    cache::{BlockExport, BlockImport, CacheWriteArgs, KvSpec, SlotMapping},
    linear::{Activations, Epilogue, HostWeights, LinearArgs, LinearSpec},
};
use halite_parity::{
    Fault, Verdict,
    judge::{judge, same_bits},
    oracle,
    tolerance::Bound,
};

/// The operands with their zero points taken off, which INT8 holds in this test: `(x [rows, k], w [n, k], rows, n)`.
fn operands(fixture: &Fixture) -> Result<(Vec<i8>, Vec<i8>, usize, usize), Fault> {
    let [a, b] = [fixture.array("input.0")?, fixture.array("input.1")?];
    let zero = |tensor: &str| if fixture.has(tensor) { fixture.array(tensor).map(Some) } else { Ok(None) };
    let [a_zero, b_zero] = [zero("input.2")?, zero("input.3")?];
    // One for the whole operand, for each row of the left, or for each column of the right.
    let point =
        |zero: &Option<Array>, place: usize| zero.as_ref().map_or(0.0, |z| z.values[place % z.values.len()]);
    let narrow = |value: f64| {
        let fits = (-128.0..=127.0).contains(&value);
        if fits { Ok(value as i8) } else { Err(Fault::new(format!("{value} does not fit INT8"))) }
    };
    let (k, n) = (b.dims[0], b.dims[1]);
    let x = a.values.iter().enumerate().map(|(place, a)| narrow(a - point(&a_zero, place / k)));
    let x = x.collect::<Result<_, _>>()?;
    let turned =
        (0..n * k).map(|place| narrow(b.values[place % k * n + place / k] - point(&b_zero, place / k)));
    Ok((x, turned.collect::<Result<_, _>>()?, a.dims[0], n))
}

pub(crate) fn matmul_oracle(fixture: &Fixture) -> Verdict {
    let (x, w, rows, n) = operands(fixture)?;
    let sums = oracle::linear::integer_sums(&x, &w, rows, n);
    let expected: Vec<Bound> = sums.into_iter().map(|sum| Bound::exact(sum as f64)).collect();
    judge(&fixture.name, &[rows, n], &fixture.array("output.0")?.values, &expected)
}

pub(crate) fn matmul_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let (x, w, rows, n) = operands(fixture)?;
    let k = x.len() / rows;
    let spec = LinearSpec::w8a8(k, n).with_output(DType::I32);
    let ones = vec![1.0; n];
    let weights = HostWeights::Int8PerChannel { q: &w, scales: &ones }.check(&spec)?;
    let packed = device.linear_pack(stream, weights)?;
    let q = Tensor::<B>::from_slice(stream, &x, &[rows, k])?;
    let scales = Tensor::<B>::from_slice(stream, &vec![1f32; rows], &[rows])?;
    let out = Tensor::<B>::new(device, DType::I32, &[rows, n])?;
    stream.reserve(device.linear_workspace(&packed, rows))?;
    let args = LinearArgs::<B> {
        x: Activations::Int8PerToken { q: &q, scales: &scales },
        weights: &packed,
        epilogue: Epilogue::default(),
        out: &out,
    };
    device.linear(stream, args.check()?)?;
    let got: Vec<f64> = out.to_vec::<i32>(stream)?.into_iter().map(f64::from).collect();
    let published = fixture.array("output.0")?.values;
    judge(&fixture.name, &[rows, n], &got, &published.into_iter().map(Bound::exact).collect::<Vec<_>>())
}

/// A cache of one block a batch entry; keys are the fixture's, values stay zero. The oracle's cache is asked too.
pub(crate) fn scatter<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let [past, update] = [fixture.array("input.0")?, fixture.array("input.1")?];
    let (indices, present) = (fixture.array("input.2")?, fixture.array("output.0")?);
    let rank = past.dims.len();
    let (batch, block_size, dim, count) =
        (past.dims[0], past.dims[rank - 2], past.dims[rank - 1], update.dims[rank - 2]);
    let spec = KvSpec::new(1, 1, dim).with_block_size(block_size).with_dtype(DType::F32);
    let canonical = |values: &[f32]| -> Vec<u8> {
        let block = |keys: &[f32]| {
            let values = vec![0f32; keys.len()];
            keys.iter().chain(&values).flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
        };
        values.chunks_exact(block_size * dim).flat_map(block).collect()
    };
    let slots: Vec<i64> = (0..batch * count)
        .map(|token| {
            let at = indices.values[token / count] as usize + token % count;
            // A ring where `mode` is circular; otherwise nothing lies beyond the end.
            (token / count * block_size + at % block_size) as i64
        })
        .collect();
    let expected = canonical(&present.floats());

    let mut plain = oracle::cache::Blocks::poisoned(&spec, batch);
    plain.bytes = canonical(&past.floats());
    for (&slot, keys) in slots.iter().zip(update.floats().chunks_exact(dim)) {
        plain.write(0, slot as usize, keys, &vec![0.0; dim]);
    }
    same_bits(&format!("{}, by the oracle", fixture.name), &plain.bytes, &expected)?;

    let cache = device.kv_cache(&spec, batch)?;
    let blocks: Vec<u32> = (0..batch as u32).collect();
    let bytes = canonical(&past.floats());
    device.cache_import(stream, BlockImport { cache: &cache, blocks: &blocks, bytes: &bytes }.check()?)?;
    let mut plan = device.slots_plan(&cache, slots.len())?;
    let mapping = SlotMapping { slots: &slots }.check(&plan)?;
    device.slots_update(stream, &mut plan, &mapping)?;
    let k = Tensor::<B>::from_slice(stream, &update.floats(), &[slots.len(), 1, dim])?;
    let v = Tensor::<B>::from_slice(stream, &vec![0f32; slots.len() * dim], &[slots.len(), 1, dim])?;
    let args = CacheWriteArgs { slots: &plan, cache: &cache, layer: 0, k: &k, v: &v };
    device.cache_write(stream, args.check()?)?;
    let export = BlockExport { cache: &cache, blocks: &blocks }.check()?;
    let got = device.cache_export(stream, export)?.wait()?;
    same_bits(&fixture.name, &got, &expected)
}
