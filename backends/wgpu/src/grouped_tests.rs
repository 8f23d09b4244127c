use super::*;
use crate::testing::gpu;
use halite_hal::{Device, Stream};
use halite_kernels::{
    activation::Activation,
    linear::{Epilogue, HostWeights, LinearArgs, WeightFormat},
};

const K: usize = 24;
const N: usize = 20;
const GROUPS: usize = 5;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i + seed) * 37 % 101) as f32 / 16.0 - 3.0).collect()
}

/// Groups that were packed one after the other are one dispatch, whose rows have the bits of each group's own layer.
#[test]
fn groups_that_lie_in_one_buffer_are_one_dispatch() -> Result<()> {
    let Some(gpu) = gpu("groups_that_lie_in_one_buffer_are_one_dispatch") else { return Ok(()) };
    let stream = &mut gpu.stream()?;
    let spec = LinearSpec::float(K, N, WeightFormat::F32).gated(Activation::Silu);
    let mut weights = Vec::new();
    for group in 0..GROUPS {
        let values = numbers(spec.weight_rows() * K, group);
        weights.push(gpu.linear_pack(stream, HostWeights::F32(&values).check(&spec)?)?);
    }
    let bias = Tensor::from_slice(stream, &numbers(GROUPS * 2 * N, 3), &[GROUPS, 2 * N])?;
    // Few rows and many.
    for ends in [[0, 2, 2, 3, 6, 7], [0, 9, 9, 80, 150, 200]] {
        let rows = ends[GROUPS] as usize;
        let x = Tensor::from_slice(stream, &numbers(rows * K, 1), &[rows, K])?;
        let offsets = Tensor::<Wgpu>::from_slice(stream, &ends, &[GROUPS + 1])?;
        let out = Tensor::<Wgpu>::new(&gpu, DType::F32, &[rows, N])?;
        let args = GroupedArgs {
            x: Activations::Float(&x),
            weights: &weights,
            offsets: &offsets,
            bias: Some(&bias),
            out: &out,
        };
        let before = stream.launches();
        gpu.grouped(stream, args.check()?)?;
        assert_eq!(stream.launches(), before.map(|before| before + 1));
        let out = out.to_vec::<f32>(stream)?;
        for (group, weights) in weights.iter().enumerate() {
            let own = ends[group] as usize..ends[group + 1] as usize;
            let layer = Tensor::<Wgpu>::new(&gpu, DType::F32, &[own.len(), N])?;
            let bias = bias.narrow(0, group..group + 1)?.reshape(&[2 * N])?;
            let x = x.narrow(0, own.clone())?;
            let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
            let args = LinearArgs { x: Activations::Float(&x), weights, epilogue, out: &layer };
            gpu.linear(stream, args.check()?)?;
            assert_eq!(
                out[own.start * N..own.end * N],
                layer.to_vec::<f32>(stream)?,
                "group {group} of {rows} rows"
            );
        }
    }
    Ok(())
}
