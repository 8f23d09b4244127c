//! Norms: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormSpec},
    quantize::QuantizeSpec,
};

impl Norm for Cuda {
    fn norm_supports(&self, _: &NormSpec) -> Support {
        not_yet("norm")
    }

    fn norm_quantize_supports(&self, _: &NormSpec, _: &QuantizeSpec) -> Support {
        not_yet("norm with quantisation")
    }

    fn norm_quantize_workspace(
        &self,
        _: &NormSpec,
        _: &QuantizeSpec,
        _max_rows: usize,
        _columns: usize,
    ) -> u64 {
        0
    }

    fn norm(&self, _: &mut CudaStream, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("norm", "it", args.spec))
    }
}
