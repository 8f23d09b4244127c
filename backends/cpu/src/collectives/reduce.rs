//! Elements of all ranks, reduced in ascending rank.

use crate::{
    device::Cpu,
    view::{Reader, read, write},
};
use half::{bf16, f16};
use halite_hal::{DType, Element, Result, Tensor};
use halite_kernels::collectives::{Reduction, in_place};

/// Elements that are reduced at a time: what is added up stays in the first-level cache.
const BLOCK: usize = 256;

/// An element and what its sums are computed in.
trait Reduced: Element {
    type Wide: Copy + Default;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn reduce(reduction: Reduction, so_far: Self::Wide, next: Self::Wide) -> Self::Wide;
}

macro_rules! reduced_in_f32 {
    ($type:ty, $widen:expr, $narrow:expr) => {
        impl Reduced for $type {
            type Wide = f32;
            fn widen(self) -> f32 {
                $widen(self)
            }
            fn narrow(wide: f32) -> Self {
                $narrow(wide)
            }
            fn reduce(reduction: Reduction, so_far: f32, next: f32) -> f32 {
                match reduction {
                    // A NaN that is there stays: nothing is greater.
                    Reduction::Max if next > so_far || next.is_nan() => next,
                    Reduction::Max => so_far,
                    _ => so_far + next,
                }
            }
        }
    };
}

reduced_in_f32!(f32, |x| x, |x| x);
reduced_in_f32!(f16, f16::to_f32, f16::from_f32);
reduced_in_f32!(bf16, bf16::to_f32, bf16::from_f32);

impl Reduced for i32 {
    type Wide = i32;
    fn widen(self) -> i32 {
        self
    }
    fn narrow(wide: i32) -> Self {
        wide
    }
    fn reduce(reduction: Reduction, so_far: i32, next: i32) -> i32 {
        match reduction {
            Reduction::Max => so_far.max(next),
            _ => so_far.wrapping_add(next),
        }
    }
}

/// `out = x[0] + x[1] + …`; all of them of one dimension and size. `out` may be one of them.
pub(super) fn reduce(reduction: Reduction, x: &[Tensor<Cpu>], out: &Tensor<Cpu>) -> Result<()> {
    match out.dtype() {
        DType::F16 => reduce_as::<f16>(reduction, x, out),
        DType::Bf16 => reduce_as::<bf16>(reduction, x, out),
        DType::I32 => reduce_as::<i32>(reduction, x, out),
        _ => reduce_as::<f32>(reduction, x, out),
    }
}

fn reduce_as<T: Reduced>(reduction: Reduction, x: &[Tensor<Cpu>], out: &Tensor<Cpu>) -> Result<()> {
    let mut target = write::<T>(out)?;
    // None where the input is the output itself, whose block is read before it is written.
    let input =
        |x| -> Result<Option<Reader<'_, T>>> { if in_place(x, out) { Ok(None) } else { read(x).map(Some) } };
    let inputs: Vec<Option<Reader<'_, T>>> = x.iter().map(input).collect::<Result<_>>()?;
    for (block, target) in target.data().chunks_mut(BLOCK).enumerate() {
        let mut sums = [T::Wide::default(); BLOCK];
        for (rank, input) in inputs.iter().enumerate() {
            let values: &[T] = match input {
                Some(input) => &input.data()[block * BLOCK..][..target.len()],
                None => target,
            };
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = if rank == 0 { value.widen() } else { T::reduce(reduction, *sum, value.widen()) };
            }
        }
        target.iter_mut().zip(sums).for_each(|(target, sum)| *target = T::narrow(sum));
    }
    Ok(())
}
