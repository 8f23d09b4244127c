//! Linear layers of INT8 rows and INT8 weights, by CANN's QuantMatmul.
//!
//! `packed` has the weights; `product` is one call: sums as they are, floats that CANN scales itself, and all others from sums,
//! by operators in F32. `lora` is not begun.

mod lora;
mod packed;
mod product;

use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    activation::Activation,
    linear::{ActivationFormat, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
};

use crate::{
    device::Ascend,
    runtime::Operator,
    stream::AscendStream,
    support::{by, is_float},
};

pub use lora::AscendLoraPlan;
pub use packed::AscendPacked;

/// The most elements of a row that CANN multiplies without scales of rows.
const MOST_COLUMNS: usize = 65_535;

/// What float results are made of, and what is missing there: functions and soft-caps are no part of a specification.
const FLOATS: &str =
    "QuantMatmul, Cast, Mul, Add and SwiGlu; without a function and a soft-cap in the epilogue";

impl Linear for Ascend {
    type Packed = AscendPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        let weights = matches!(spec.weights, WeightFormat::Int8PerChannel | WeightFormat::Int8PerTensor);
        let activations =
            matches!(spec.activations, ActivationFormat::Int8PerToken | ActivationFormat::Int8PerTensor);
        if !weights || !activations || spec.outliers.is_some() {
            let formats = (spec.weights, spec.activations);
            return Support::No(format!("{formats:?}: only INT8 without zero points and outliers"));
        }
        if spec.in_features > MOST_COLUMNS {
            return Support::No(format!("rows of {} elements: at most {MOST_COLUMNS}", spec.in_features));
        }
        if spec.gate.is_some_and(|gate| gate != Activation::Silu) {
            return Support::No(format!("a gate of {:?}: only SiLU", spec.gate));
        }
        // Its results have no gaps, and rows of an output may.
        let sums = by(self, &[Operator::QuantMatmul, Operator::InplaceCopy]);
        match spec.output {
            DType::I32 => sums,
            output if is_float(output) => {
                match by(self, &[Operator::Cast, Operator::Mul, Operator::Add, Operator::SwiGlu]) {
                    Support::Native if sums == Support::Native => Support::Composed(FLOATS),
                    Support::Native => sums,
                    no => no,
                }
            }
            output => Support::No(format!("an output of {output}: only I32 and floats")),
        }
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
        product::workspace(packed.as_ref(), max_rows)
    }

    fn linear(&self, stream: &mut AscendStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        product::run(stream, &args)
    }
}
