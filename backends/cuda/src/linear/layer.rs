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
        // Formats choose among arithmetics, rows only among tiles of one.
        let spec = call.spec();
        match float::has(spec) {
            Some(dtype) => float::run(stream, &call, dtype),
            None if int8::has(spec) => int8::run(stream, &call),
            None if group_wise::has(spec) => group_wise::run(stream, &call),
            None => dot::run(stream, &call),
        }
    }
}
