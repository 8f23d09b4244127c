//! Rows to integers, in every format that linear layers read: rows in memory, and those that norms and activations
//! compute.
//!
//! `rows` is the one dispatch that writes integers. Its WGSL stands behind that of a row's source, `memory_row` or another
//! operator's; `prepare` is what happens to a row before, `steps` are a scale and a zero point. `memory` is what rows in
//! memory need besides, `hadamard` the rotation, and `fused` the way of other operators.

mod fused;
mod hadamard;
mod memory;
mod rows;

pub(crate) use fused::{by_floats, fused_supports, fused_workspace, in_one};
pub(crate) use rows::{
    Call, PREPARE, ROWS, STEPS, TEAM, grid, integers, lanes, prepare, row_rounds, rows_walked, teams,
};

use crate::{device::Wgpu, operand::Operand, rows::Rows, stream::WgpuStream, support::float_only};
use hadamard::Lines;
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec},
};

impl Quantize for Wgpu {
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support {
        float_only(spec.input)
    }

    fn quantize_workspace(&self, spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
        memory::workspace(spec, max_rows, columns)
    }

    fn quantize(&self, stream: &mut WgpuStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        self.quantize_supports(args.spec).require("quantize", self, args.spec)?;
        let rows = Rows::of(args.x);
        let shape = [rows.outer, rows.inner, rows.columns];
        let call = Call { operator: "quantize", spec: args.spec, out: &args.out, shape };
        let mut room =
            stream.scratch("quantize", self.quantize_workspace(args.spec, rows.count(), rows.columns))?;
        memory::quantize(stream, &call, Operand::tensor(args.x), rows, &mut room)
    }

    fn rotate_supports(&self, spec: &RotateSpec) -> Support {
        float_only(spec.dtype)
    }

    fn rotate(&self, stream: &mut WgpuStream, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        self.rotate_supports(args.spec).require("rotate", self, args.spec)?;
        let [x, out] = [args.x, args.out]
            .map(|tensor| Lines { memory: Operand::tensor(tensor), stride: Rows::of(tensor).outer_stride });
        let rows = Rows::of(args.x);
        hadamard::rotate(stream, x, out, [rows.outer, rows.columns], args.spec.block, None)
    }
}
