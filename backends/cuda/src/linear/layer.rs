//! Linear layers as an operator: which kernel a call takes.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::{HostWeights, Linear, LinearArgs, LinearSpec},
};

use super::{
    call::{Call, type_code},
    dot, float, group_wise, int8,
    packed::{self, CudaPacked},
    product::Product,
};
use crate::{activation::code, device::Cuda, stream::CudaStream};

impl Linear for Cuda {
    type Packed = CudaPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        if spec.gate.is_some_and(|gate| code(gate).is_none()) {
            return Support::No(format!("{:?} is not implemented", spec.gate));
        }
        if type_code(spec.output).is_none() {
            return Support::No(format!("an output of {} is not implemented", spec.output));
        }
        Support::Native
    }

    fn linear_pack(
        &self,
        stream: &mut CudaStream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<CudaPacked> {
        self.linear_supports(weights.context()).require("linear", self, *weights.context())?;
        packed::pack(self, stream, &weights)
    }

    fn linear_save(&self, stream: &mut CudaStream, packed: &CudaPacked) -> Result<Vec<u8>> {
        packed::save(stream, packed)
    }

    fn linear_restore(&self, stream: &mut CudaStream, spec: &LinearSpec, saved: &[u8]) -> Result<CudaPacked> {
        spec.check()?;
        self.linear_supports(spec).require("linear", self, spec)?;
        packed::restore(self, stream, spec, saved)
    }

    fn linear_workspace(&self, _: &CudaPacked, _max_rows: usize) -> u64 {
        0
    }

    fn linear(&self, stream: &mut CudaStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        let call = Call::of(&args)?;
        match Product::of(call.spec()) {
            Product::Float(dtype) => float::run(stream, &call, dtype),
            Product::Int8 => int8::run(stream, &call),
            Product::GroupWise => group_wise::run(stream, &call),
            Product::Dot => dot::run(stream, &call),
        }
    }
}
