//! What ranks compute together; rules from `halite_kernels::collectives`.

use crate::tolerance::Bound;
use halite_hal::DType;
use halite_kernels::collectives::Reduction;

/// Each element over all ranks, in any order of addition.
pub fn reduced(reduction: Reduction, dtype: DType, inputs: &[Vec<f64>]) -> Vec<Bound> {
    let elements = inputs.first().map_or(0, Vec::len);
    (0..elements).map(|element| one(reduction, dtype, inputs.iter().map(|input| input[element]))).collect()
}

fn one(reduction: Reduction, dtype: DType, values: impl Iterator<Item = f64> + Clone) -> Bound {
    if reduction == Reduction::Max {
        let nan = values.clone().any(f64::is_nan);
        return Bound::exact(if nan { f64::NAN } else { values.fold(f64::NEG_INFINITY, f64::max) });
    }
    if dtype == DType::I32 {
        let sum: i64 = values.map(|value| value as i64).sum();
        return Bound::exact(f64::from(sum as i32));
    }
    Bound::sum(values).rounded(dtype)
}

/// F32 elements added in ascending rank, to the bit.
pub fn summed_in_order(inputs: &[Vec<f32>]) -> Vec<f32> {
    let mut sums = inputs[0].clone();
    for input in &inputs[1..] {
        sums.iter_mut().zip(input).for_each(|(sum, value)| *sum += value);
    }
    sums
}

/// What rank `to` gets where each rank's rows of `width` elements are for the ranks in turn, `counts[from][to]` of them.
pub fn exchanged(inputs: &[Vec<f64>], counts: &[Vec<usize>], width: usize, to: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for (input, counts) in inputs.iter().zip(counts) {
        let start: usize = counts[..to].iter().sum();
        out.extend_from_slice(&input[start * width..(start + counts[to]) * width]);
    }
    out
}
