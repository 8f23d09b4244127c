//! Quantisation of rows: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec},
};

impl Quantize for Cuda {
    fn quantize_supports(&self, _: &QuantizeSpec) -> Support {
        not_yet("quantize")
    }

    fn quantize_workspace(&self, _: &QuantizeSpec, _max_rows: usize, _columns: usize) -> u64 {
        0
    }

    fn quantize(&self, _: &mut CudaStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("quantize", "it", args.spec))
    }

    fn rotate_supports(&self, _: &RotateSpec) -> Support {
        not_yet("rotate")
    }

    fn rotate(&self, _: &mut CudaStream, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("rotate", "it", args.spec))
    }
}
