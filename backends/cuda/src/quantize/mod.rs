//! Rows to integers, in every format that linear layers read: rows in memory, and those that norms and activations
//! compute.
//!
//! `rows` is the one launch that writes integers, for every source of rows; `steps.cuh` are a scale and a zero point.
//! `memory` is what rows in memory need besides, `rotate` the rotation, and `fused` the way of other operators.

mod fused;
mod memory;
mod rotate;
mod rows;

pub(crate) use fused::{by_floats, fused_supports, fused_workspace, in_one};
pub(crate) use rows::{Call, grid, integers, lanes};

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec},
};

use crate::{compile::Program, device::Cuda, rows::Rows, stream::CudaStream, support::float_only};

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    [memory::programs(), rotate::programs()].concat()
}

impl Quantize for Cuda {
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support {
        float_only(spec.input)
    }

    fn quantize_workspace(&self, spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
        memory::workspace(spec, max_rows, columns)
    }

    fn quantize(&self, stream: &mut CudaStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        self.quantize_supports(args.spec).require("quantize", self, args.spec)?;
        let rows = Rows::of(args.x);
        let shape = [rows.outer, rows.inner, rows.columns];
        let call = Call { operator: "quantize", spec: args.spec, out: &args.out, shape };
        let bytes = self.quantize_workspace(args.spec, rows.count(), rows.columns);
        let mut room = stream.scratch("quantize", bytes)?;
        memory::quantize(stream, &call, args.x, rows, &mut room)
    }

    fn rotate_supports(&self, spec: &RotateSpec) -> Support {
        float_only(spec.dtype)
    }

    fn rotate(&self, stream: &mut CudaStream, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        self.rotate_supports(args.spec).require("rotate", self, args.spec)?;
        let (x, out) = (Rows::of(args.x), Rows::of(args.out));
        let strides = [x.outer_stride, out.outer_stride];
        rotate::rows(stream, [args.x, args.out], strides, [x.outer, x.columns], args.spec.block, None)
    }
}
