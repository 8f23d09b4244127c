//! Grouped products: a linear layer for each group of rows.

use crate::{device::Cpu, stream::CpuStream, view::read};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::{Activations, Epilogue, Linear, LinearArgs, LinearSpec, Quantized},
};
use std::ops::Range;

impl Grouped for Cpu {
    fn grouped_supports(&self, spec: &LinearSpec) -> Support {
        match spec.output {
            // Their scale would be in an epilogue.
            DType::I8 | DType::U8 => {
                Support::No(format!("output {} needs a scale, and groups have no epilogue", spec.output))
            }
            _ => self.linear_supports(spec),
        }
    }

    fn grouped_workspace(&self, packed: &Self::Packed, max_rows: usize) -> u64 {
        self.linear_workspace(packed, max_rows)
    }

    fn grouped(&self, stream: &mut CpuStream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        let offsets = read::<i32>(args.offsets)?;
        let GroupedArgs { x, weights, bias, out, .. } = &*args;
        self.groups(stream, Groups { x, weights, offsets: offsets.data(), bias: *bias, out })
    }
}

/// Groups of rows, whose offsets are on the host.
pub(crate) struct Groups<'a> {
    pub(crate) x: &'a Activations<'a, Cpu>,
    pub(crate) weights: &'a [<Cpu as Linear>::Packed],
    /// `[groups + 1]`
    pub(crate) offsets: &'a [i32],
    /// `[groups, weight_rows]`
    pub(crate) bias: Option<&'a Tensor<Cpu>>,
    pub(crate) out: &'a Tensor<Cpu>,
}

impl Groups<'_> {
    /// The groups that have rows.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let ranges = ranges(self.offsets, self.out.dims()[0]).take(self.weights.len());
        ranges.enumerate().filter(|(_, range)| !range.is_empty())
    }
}

impl Cpu {
    /// One group after the other: each is shared by all threads across its columns, however few rows it has.
    pub(crate) fn groups(&self, stream: &mut CpuStream, groups: Groups<'_>) -> Result<()> {
        for (group, rows) in groups.ranges() {
            let x = RowMemory::part(groups.x, rows.clone())?;
            self.group(stream, &groups, group, rows, &x)?;
        }
        Ok(())
    }

    /// One group, whose rows are `x`.
    pub(crate) fn group(
        &self,
        stream: &mut CpuStream,
        groups: &Groups<'_>,
        group: usize,
        rows: Range<usize>,
        x: &RowMemory,
    ) -> Result<()> {
        let Some(weights) = groups.weights.get(group) else { return Ok(()) };
        let bias = match groups.bias {
            Some(bias) => Some(bias.narrow(0, group..group + 1)?.reshape(&bias.dims()[1..])?),
            None => None,
        };
        let epilogue = Epilogue { bias: bias.as_ref(), ..Epilogue::default() };
        let out = &groups.out.narrow(0, rows)?;
        let args = LinearArgs { x: x.activations(), weights, epilogue, out };
        self.linear(stream, args.check()?)
    }
}

/// The rows of each group, of `rows` in all, whatever the offsets are.
fn ranges(offsets: &[i32], rows: usize) -> impl Iterator<Item = Range<usize>> {
    let clamped = move |offset: i32, least: usize| usize::try_from(offset).unwrap_or(0).min(rows).max(least);
    let mut start = offsets.first().map_or(0, |&first| clamped(first, 0));
    offsets.iter().skip(1).map(move |&end| {
        let range = start..clamped(end, start);
        start = range.end;
        range
    })
}

/// Rows of a linear layer's input, as tensors of their own.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a call has a few of them, and a box would be memory at every call"
)]
pub(crate) enum RowMemory {
    Float(Tensor<Cpu>),
    Quantized {
        q: Tensor<Cpu>,
        scales: Tensor<Cpu>,
        zero_points: Option<Tensor<Cpu>>,
        outliers: Option<Tensor<Cpu>>,
    },
}

impl RowMemory {
    /// Some of the rows of `x`.
    pub(crate) fn part(x: &Activations<'_, Cpu>, rows: Range<usize>) -> Result<Self> {
        match x {
            Activations::Float(x) => Ok(RowMemory::Float(x.narrow(0, rows)?)),
            Activations::Quantized(Quantized { q, scales, zero_points, outliers, .. }) => {
                // One scale for all rows is every part's.
                let of_rows = |tensor: &Tensor<Cpu>| match tensor.dims() {
                    [1] if q.dims()[0] != 1 => Ok(tensor.clone()),
                    _ => tensor.narrow(0, rows.clone()),
                };
                Ok(RowMemory::Quantized {
                    q: q.narrow(0, rows.clone())?,
                    scales: of_rows(scales)?,
                    zero_points: zero_points.map(of_rows).transpose()?,
                    outliers: outliers.map(|outliers| outliers.narrow(0, rows.clone())).transpose()?,
                })
            }
            other => Err(crate::unsupported("grouped", "this form of activations", other)),
        }
    }

    pub(crate) fn activations(&self) -> Activations<'_, Cpu> {
        match self {
            RowMemory::Float(x) => Activations::Float(x),
            RowMemory::Quantized { q, scales, zero_points, outliers } => {
                let mut quantized = Quantized::new(q, scales);
                (quantized.zero_points, quantized.outliers) = (zero_points.as_ref(), outliers.as_ref());
                Activations::Quantized(quantized)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_choose_the_rows_of_each_group() {
        for (offsets, rows, expected) in [
            (&[][..], 3, &[][..]),
            (&[0], 3, &[]),
            (&[0, 0, 1, 3], 3, &[(0, 0), (0, 1), (1, 3)]),
            // Rows before the first offset and after the last belong to no group.
            (&[1, 2], 3, &[(1, 2)]),
            // Each counts as at least the one before it and at most the number of rows.
            (&[-5, 2, 1, 9, i32::MIN, i32::MAX], 3, &[(0, 2), (2, 2), (2, 3), (3, 3), (3, 3)]),
            (&[7, 9], 3, &[(3, 3)]),
            (&[0, 1], 0, &[(0, 0)]),
        ] {
            let chosen: Vec<_> = ranges(offsets, rows).map(|range| (range.start, range.end)).collect();
            assert_eq!(chosen, expected, "{offsets:?} of {rows} rows");
        }
    }
}
