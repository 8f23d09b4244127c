//! Linear layers of INT8 rows and INT8 weights, by CANN's QuantMatmul, and of floats, by its Matmul.
//!
//! `packed` has the weights; `product` is one call: sums as they are, floats that CANN gives itself, and all others by operators
//! in F32. `stack` lays the weights of groups together. `lora` is not begun.

mod lora;
mod packed;
mod product;
mod stack;

use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    linear::{ActivationFormat, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
};

use crate::{
    device::Ascend,
    runtime::Operator,
    steps::{NO_FUNCTION, has_function},
    stream::AscendStream,
    support::by,
};

pub use lora::AscendLoraPlan;
pub use packed::AscendPacked;
pub(crate) use product::gated;
pub(crate) use stack::{Stack, stack};

/// The most elements of a row that CANN multiplies without scales of rows.
const MOST_COLUMNS: usize = 65_535;

/// What results are made of, if not of one product; an epilogue is no part of a specification, so all of it has to be there.
const PARTS: [Operator; 11] = [
    Operator::Cast,
    Operator::Mul,
    Operator::Add,
    Operator::SwiGlu,
    Operator::Silu,
    Operator::GeluV2,
    Operator::NanToNum,
    Operator::Tanh,
    Operator::Muls,
    Operator::Divs,
    Operator::Clamp,
];

/// What a specification is told of them.
const COMPOSED: &str =
    "QuantMatmul or Matmul, and elementwise operators in F32; functions of an epilogue: SiLU and GELU";

impl Linear for Ascend {
    type Packed = AscendPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        let product = match (spec.weights, spec.activations) {
            (
                WeightFormat::Int8PerChannel | WeightFormat::Int8PerTensor,
                ActivationFormat::Int8PerToken | ActivationFormat::Int8PerTensor,
            ) if spec.outliers.is_none() => Operator::QuantMatmul,
            (WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16, ActivationFormat::Float(_)) => {
                Operator::Matmul
            }
            formats => {
                let only = "only floats, and INT8 without zero points and outliers";
                return Support::No(format!("{formats:?}: {only}"));
            }
        };
        if spec.in_features > MOST_COLUMNS {
            return Support::No(format!("rows of {} elements: at most {MOST_COLUMNS}", spec.in_features));
        }
        if spec.gate.is_some_and(|gate| has_function(gate).is_none()) {
            return Support::No(format!("a gate of {:?}: {NO_FUNCTION}", spec.gate));
        }
        // A product has no gaps, and rows of an output may.
        match by(self, &[product, Operator::InplaceCopy]) {
            Support::Native if spec.output != DType::I32 => match by(self, &PARTS) {
                Support::Native => Support::Composed(COMPOSED),
                no => no,
            },
            sums => sums,
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
