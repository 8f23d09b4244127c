//! Grouped products: the exact device's layer over one row at a time.

use crate::{
    device::{Exact, Queue, read},
    fault::Fault,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::{Activations, Epilogue, Linear, LinearArgs, LinearSpec, Quantized},
};

impl Grouped for Exact {
    fn grouped_supports(&self, spec: &LinearSpec) -> Support {
        match spec.output {
            DType::I8 | DType::U8 => Support::No("groups have no epilogue for a scale".to_owned()),
            _ => self.linear_supports(spec),
        }
    }

    fn grouped_workspace(&self, _: &Self::Packed, _: usize) -> u64 {
        0
    }

    fn grouped(&self, stream: &mut Queue, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        let rows = args.out.dims()[0];
        let offsets: Vec<i64> = read(args.offsets).into_iter().map(|offset| offset as i64).collect();
        // The group of a row is the last that begins before it, among offsets which never descend.
        let mut ends = Vec::new();
        let mut least = 0;
        for &offset in &offsets {
            least = offset.clamp(if self.has(Fault::GroupedDescends) { 0 } else { least }, rows as i64);
            ends.push(least as usize);
        }
        for row in 0..rows {
            let mut group = ends.windows(2).rposition(|pair| pair[0] <= row && row < pair[1]);
            if self.has(Fault::GroupedWritesTheRest) {
                group = group.or(Some(0));
            }
            if self.has(Fault::GroupedNextGroup) {
                group = group.map(|group| (group + 1) % args.weights.len());
            }
            let Some(group) = group else { continue };
            let of_bias = if self.has(Fault::GroupedFirstBias) { 0 } else { group };
            let bias = match args.bias {
                Some(bias) => Some(bias.narrow(0, of_bias..of_bias + 1)?.reshape(&bias.dims()[1..])?),
                None => None,
            };
            let part = |tensor: &Tensor<Self>| tensor.narrow(0, row..row + 1);
            let of_rows = |tensor: &Tensor<Self>| {
                if tensor.dims()[0] == rows { part(tensor) } else { Ok(tensor.clone()) }
            };
            let (x, scales, zero_points, outliers);
            let activations = match (&args.x, args.x.quantized()) {
                (_, Some(quantized)) => {
                    (x, scales) = (part(quantized.q)?, of_rows(quantized.scales)?);
                    zero_points = quantized.zero_points.map(of_rows).transpose()?;
                    outliers = quantized.outliers.map(part).transpose()?;
                    let mut row = Quantized::new(&x, &scales);
                    (row.zero_points, row.outliers) = (zero_points.as_ref(), outliers.as_ref());
                    Activations::Quantized(row)
                }
                (Activations::Float(floats), _) => {
                    x = part(floats)?;
                    Activations::Float(&x)
                }
                _ => continue,
            };
            let layer = LinearArgs::<Self> {
                x: activations,
                weights: &args.weights[group],
                epilogue: Epilogue { bias: bias.as_ref(), ..Epilogue::default() },
                out: &args.out.narrow(0, row..row + 1)?,
            };
            self.linear(stream, layer.check()?)?;
        }
        Ok(())
    }
}
