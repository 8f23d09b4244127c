//! The `k` best of each row.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::float_only,
};
use halite_hal::{DType, Error, Result};
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKOrder, TopKSpec},
};

static TOP_K: Shader = Shader { name: "top_k", source: &[include_str!("top_k.wgsl")] };

/// Results of a workgroup: the shader's `CAPACITY`.
const CAPACITY: usize = 1024;
/// The most columns: a workgroup goes through a row up to 17 times, and adapters end loops after 65,535 turns in all.
pub(crate) const MAX_COLUMNS: usize = 1 << 19;

impl TopK for Wgpu {
    fn top_k_supports(&self, spec: &TopKSpec) -> Support {
        float_only(spec.dtype)
    }

    fn top_k(&self, stream: &mut WgpuStream, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        let spec = args.spec;
        self.top_k_supports(spec).require("top_k", self, spec)?;
        let (x, values, ids) = (Rows::of(args.x), Rows::of(args.values), Rows::of(args.ids));
        if x.columns > MAX_COLUMNS {
            let (got, limit) = (x.columns as u64, MAX_COLUMNS as u64);
            return Err(Error::Limit { operator: "top_k", argument: "columns", got, limit });
        }
        // Values are copied as bits, those of two bytes byte by byte.
        let (whole, parts) = if spec.dtype == DType::F32 { (DType::I32, 1) } else { (DType::U8, 2) };
        let pieces = spec.k.div_ceil(CAPACITY);
        let launch = Launch::new(&TOP_K)
            .input("x", args.x)
            .operand("source", Access::In, Operand::tensor(args.x).with_type(whole))
            .operand("values", Access::Out, Operand::tensor(args.values).with_type(whole))
            .output("ids", args.ids)
            .constant("PARTS", parts)
            .flag("SMALLEST", spec.order == TopKOrder::Smallest)
            .size("rows", x.outer)
            .size("columns", x.columns)
            .size("k", spec.k)
            .size("pieces", pieces)
            .size("x_stride", x.outer_stride)
            .size("values_stride", values.outer_stride)
            .size("ids_stride", ids.outer_stride);
        stream.launch(launch, spread(x.outer * pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::{Device, Tensor};

    /// More results than a workgroup has, in rows with few values: ties go to the lower column across pieces too.
    #[test]
    fn rows_of_several_pieces_are_in_order() -> Result<()> {
        let Some(gpu) = testing::gpu("top_k of several pieces") else { return Ok(()) };
        let stream = &mut gpu.stream()?;
        let (rows, columns, k) = (2, 5000, 2600);
        let x: Vec<f32> = (0..rows * columns).map(|i| ((i * 7919) % 911 / 3) as f32 - 100.0).collect();
        for (spec, sign) in [(TopKSpec::largest(k), -1.0), (TopKSpec::smallest(k), 1.0)] {
            let input = Tensor::from_slice(stream, &x, &[rows, columns])?;
            let values = Tensor::new(&gpu, DType::F32, &[rows, k])?;
            let ids = Tensor::new(&gpu, DType::I32, &[rows, k])?;
            let args = TopKArgs { spec: &spec, x: &input, values: &values, ids: &ids };
            gpu.top_k(stream, args.check()?)?;
            let (values, ids) = (values.to_vec::<f32>(stream)?, ids.to_vec::<i32>(stream)?);
            for (row, x) in x.chunks(columns).enumerate() {
                let mut order: Vec<usize> = (0..columns).collect();
                order.sort_by(|&a, &b| (sign * x[a]).total_cmp(&(sign * x[b])));
                for (place, &column) in order[..k].iter().enumerate() {
                    assert_eq!(ids[row * k + place], column as i32, "place {place} of row {row}");
                    assert_eq!(values[row * k + place], x[column]);
                }
            }
        }
        Ok(())
    }
}
