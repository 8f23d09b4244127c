//! Rows that another operator computes, to integers: in its own dispatch, or by way of floats in scratch memory.

use super::{
    memory,
    rows::{self, Call},
};
use crate::{bindings::MAX_OPERANDS, operand::Operand, rows::Rows, stream::WgpuStream};
use halite_hal::{DType, Result};
use halite_kernels::{
    Support,
    quantize::{QuantizeSpec, Rotation},
};

/// Whether one dispatch does it, of an operator whose rows are made of so many operands.
pub(crate) fn in_one(spec: &QuantizeSpec, operands: usize) -> bool {
    spec.rotation == Rotation::None && operands + rows::operands(spec) <= MAX_OPERANDS
}

/// Whether an operator can quantise its result by `spec`, whose check has passed.
pub(crate) fn fused_supports(own: Support, spec: &QuantizeSpec, operands: usize) -> Support {
    match own {
        Support::Native if spec.input != DType::F32 => {
            Support::No(format!("{}: F32 results are quantised", spec.input))
        }
        Support::Native if !in_one(spec, operands) => {
            Support::Composed("the float result, what it is rotated to, and its quantisation")
        }
        own => own,
    }
}

/// Scratch bytes of an operator that quantises.
pub(crate) fn fused_workspace(spec: &QuantizeSpec, operands: usize, max_rows: usize, columns: usize) -> u64 {
    if in_one(spec, operands) {
        return 0;
    }
    memory::floats(max_rows, columns).saturating_add(memory::workspace(spec, max_rows, columns))
}

/// Quantises what `write` writes in F32, to memory with these elements from an outer and from an inner row to the next.
pub(crate) fn by_floats(
    stream: &mut WgpuStream,
    call: &Call<'_>,
    write: impl FnOnce(&mut WgpuStream, Operand, [usize; 2]) -> Result<()>,
) -> Result<()> {
    let [outer, inner, columns] = call.shape;
    let count = outer * inner;
    let bytes = memory::floats(count, columns).saturating_add(memory::workspace(call.spec, count, columns));
    let mut room = stream.scratch(call.operator, bytes)?;
    let floats = room.take(call.operator, DType::F32, count * columns)?;
    let rows = Rows::dense(call.shape);
    write(stream, floats.clone(), [rows.outer_stride, rows.inner_stride])?;
    memory::quantize(stream, call, floats, rows, &mut room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::linear::ActivationFormat;

    #[test]
    fn one_dispatch_as_long_as_its_operands_can_be_bound() {
        let plain = QuantizeSpec::INT8_PER_TOKEN;
        let asymmetric =
            plain.clone().with_output(ActivationFormat::AsymmetricPerToken(DType::U8)).with_smoothing();
        for (spec, operands) in [
            (plain.clone(), 6),
            (plain.clone().with_smoothing(), 5),
            (asymmetric.clone(), 4),
            (plain.clone().with_outlier_columns(1), 4),
            (plain.clone().with_smoothing().with_outlier_columns(1), 3),
            (asymmetric.with_outlier_columns(1), 2),
        ] {
            assert!(in_one(&spec, operands) && !in_one(&spec, operands + 1), "{spec:?}");
            assert_eq!(fused_supports(Support::Native, &spec, operands), Support::Native, "{spec:?}");
            assert_eq!(fused_workspace(&spec, operands, 3, 1000), 0, "{spec:?}");
            let rows = memory::floats(3, 1000);
            assert_eq!(fused_workspace(&spec, operands + 1, 3, 1000), rows, "{spec:?}");
        }
        let rotated = plain.with_hadamard(8);
        assert!(!in_one(&rotated, 1));
        assert!(matches!(fused_supports(Support::Native, &rotated, 1), Support::Composed(_)));
        assert_eq!(fused_workspace(&rotated, 1, 3, 1000), 2 * memory::floats(3, 1000));
        let halves = QuantizeSpec::new(DType::F16);
        assert!(matches!(fused_supports(Support::Native, &halves, 1), Support::No(_)));
    }
}
