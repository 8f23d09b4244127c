//! Linear layers as an operator: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::{HostWeights, Linear, LinearArgs, LinearSpec},
};

/// Packed weights; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaPacked {}

impl AsRef<LinearSpec> for CudaPacked {
    fn as_ref(&self) -> &LinearSpec {
        match *self {}
    }
}

impl Linear for Cuda {
    type Packed = CudaPacked;

    fn linear_supports(&self, _: &LinearSpec) -> Support {
        not_yet("linear")
    }

    fn linear_pack(
        &self,
        _: &mut CudaStream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<CudaPacked> {
        Err(unsupported("linear", "it", weights.context()))
    }

    fn linear_save(&self, _: &mut CudaStream, packed: &CudaPacked) -> Result<Vec<u8>> {
        match *packed {}
    }

    fn linear_restore(&self, _: &mut CudaStream, spec: &LinearSpec, _: &[u8]) -> Result<CudaPacked> {
        Err(unsupported("linear", "it", spec))
    }

    fn linear_workspace(&self, packed: &CudaPacked, _max_rows: usize) -> u64 {
        match *packed {}
    }

    fn linear(&self, _: &mut CudaStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        match *args.weights {}
    }
}
