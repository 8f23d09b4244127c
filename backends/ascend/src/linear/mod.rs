//! Linear layers: the sums of INT8 products, by CANN's QuantMatmul. What scales sums and what comes after that is not begun.

mod lora;
mod packed;

use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    linear::{ActivationFormat, Activations, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
};

use crate::{
    copy,
    device::Ascend,
    room::{Room, bytes},
    runtime::Operator,
    stream::AscendStream,
    support::{by, unsupported},
};

pub use lora::AscendLoraPlan;
pub use packed::AscendPacked;

/// The most elements of a row that CANN multiplies without scales of rows.
const MOST_COLUMNS: usize = 65_535;

impl Linear for Ascend {
    type Packed = AscendPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        if spec.output != DType::I32 {
            return Support::No(format!("an output of {}: only the sums of INT8 products, I32", spec.output));
        }
        let weights = matches!(spec.weights, WeightFormat::Int8PerChannel | WeightFormat::Int8PerTensor);
        let activations =
            matches!(spec.activations, ActivationFormat::Int8PerToken | ActivationFormat::Int8PerTensor);
        if !weights || !activations {
            let formats = (spec.weights, spec.activations);
            return Support::No(format!("{formats:?}: only INT8 without zero points on both sides"));
        }
        if spec.in_features > MOST_COLUMNS {
            return Support::No(format!("rows of {} elements: at most {MOST_COLUMNS}", spec.in_features));
        }
        // Its results have no gaps, and rows of an output may.
        by(self, &[Operator::QuantMatmul, Operator::InplaceCopy])
    }

    fn linear_pack(
        &self,
        stream: &mut AscendStream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<AscendPacked> {
        self.linear_supports(weights.context()).require("linear", self, *weights.context())?;
        packed::pack(self, stream, &weights)
    }

    fn linear_save(&self, stream: &mut AscendStream, packed: &AscendPacked) -> Result<Vec<u8>> {
        packed::save(stream, packed)
    }

    fn linear_restore(
        &self,
        stream: &mut AscendStream,
        spec: &LinearSpec,
        saved: &[u8],
    ) -> Result<AscendPacked> {
        spec.check()?;
        self.linear_supports(spec).require("linear", self, spec)?;
        packed::restore(self, stream, spec, saved)
    }

    fn linear_workspace(&self, packed: &AscendPacked, max_rows: usize) -> u64 {
        bytes(DType::I32, &[max_rows, packed.as_ref().out_features])
    }

    fn linear(&self, stream: &mut AscendStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        let LinearArgs { x, weights, out, .. } = &*args;
        let Activations::Quantized(x) = x else {
            return Err(unsupported("linear", "floats", weights.as_ref()));
        };
        // CANN refuses empty tensors.
        if out.shape().elements() == 0 {
            return Ok(());
        }
        let (w, one) = (weights.elements()?, weights.one()?);
        // Its results have no gaps.
        let sums = if out.is_dense() {
            (*out).clone()
        } else {
            let bytes = self.linear_workspace(weights, out.dims()[0]);
            Room::new(stream.scratch("linear", bytes)?).tensor("linear", DType::I32, out.dims())?
        };
        stream.run("linear", &[("x", x.q), ("weights", &w), ("out", out)], |cann| {
            cann.quant_matmul_sums(x.q, &w, &one, &sums)
        })?;
        if out.is_dense() { Ok(()) } else { copy::elements(stream, &sums, out) }
    }
}
