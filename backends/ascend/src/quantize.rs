//! Quantisation: not begun. CANN's DynamicQuant takes no F32, and its document does not say what becomes of rows of zeros, of
//! NaN and of infinities, which the contract does; so it needs operators around it.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec},
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

impl Quantize for Ascend {
    fn quantize_supports(&self, _: &QuantizeSpec) -> Support {
        not_yet()
    }

    fn quantize_workspace(&self, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn quantize(&self, _: &mut AscendStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        refused("quantize", args.spec)
    }

    fn rotate_supports(&self, _: &RotateSpec) -> Support {
        not_yet()
    }

    fn rotate(&self, _: &mut AscendStream, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        refused("rotate", args.spec)
    }
}
