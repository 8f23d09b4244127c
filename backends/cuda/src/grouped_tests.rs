use super::*;
use crate::testing::cuda;
use halite_hal::{Device, Stream, Tensor};
use halite_kernels::{
    activation::Activation,
    linear::{Activations, Epilogue, HostWeights, LinearArgs, WeightFormat},
};

const K: usize = 20;
const N: usize = 3;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i + seed) * 37 % 101) as f32 / 16.0 - 3.0).collect()
}

/// Groups are launched together, as many as a launch has addresses for, and have the bits of their own layers.
#[test]
fn groups_are_one_launch_as_far_as_it_has_addresses() -> Result<()> {
    let Some(cuda) = cuda("groups_are_one_launch_as_far_as_it_has_addresses") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let spec = LinearSpec::float(K, N, WeightFormat::F32).gated(Activation::Silu);
    for (groups, launches) in [(256, 1), (257, 2)] {
        let mut weights = Vec::new();
        for group in 0..groups {
            let values = numbers(spec.weight_rows() * K, group);
            weights.push(cuda.linear_pack(stream, HostWeights::F32(&values).check(&spec)?)?);
        }
        let bias = Tensor::from_slice(stream, &numbers(groups * 2 * N, 3), &[groups, 2 * N])?;
        // Two rows each of some, the last among them.
        let ends: Vec<i32> = (0..=groups as i32).map(|group| (group + 63) / 64 * 2).collect();
        let rows = ends[groups] as usize;
        let x = Tensor::from_slice(stream, &numbers(rows * K, 1), &[rows, K])?;
        let offsets = Tensor::<Cuda>::from_slice(stream, &ends, &[groups + 1])?;
        let out = Tensor::<Cuda>::new(&cuda, DType::F32, &[rows, N])?;
        let args = GroupedArgs {
            x: Activations::Float(&x),
            weights: &weights,
            offsets: &offsets,
            bias: Some(&bias),
            out: &out,
        };
        let before = stream.launches();
        cuda.grouped(stream, args.check()?)?;
        assert_eq!(stream.launches(), before.map(|before| before + launches));
        let out = out.to_vec::<f32>(stream)?;
        for (group, weights) in weights.iter().enumerate() {
            let own = ends[group] as usize..ends[group + 1] as usize;
            if own.is_empty() {
                continue;
            }
            let layer = Tensor::<Cuda>::new(&cuda, DType::F32, &[own.len(), N])?;
            let bias = bias.narrow(0, group..group + 1)?.reshape(&[2 * N])?;
            let x = x.narrow(0, own.clone())?;
            let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
            let args = LinearArgs { x: Activations::Float(&x), weights, epilogue, out: &layer };
            cuda.linear(stream, args.check()?)?;
            let layer = layer.to_vec::<f32>(stream)?;
            assert_eq!(out[own.start * N..own.end * N], layer, "group {group} of {groups}");
        }
    }
    Ok(())
}
