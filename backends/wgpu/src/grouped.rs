//! Grouped products: a product for each group, over rows that only the device knows; one dispatch for all groups whose
//! weights lie evenly in one buffer.

use crate::{
    device::Wgpu,
    linear::{
        Successive, WgpuPacked,
        product::{After, Input, Matrix, Product, RowRange},
    },
    operand::Operand,
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::{Activations, Linear, LinearSpec},
};

impl Grouped for Wgpu {
    fn grouped_supports(&self, spec: &LinearSpec) -> Support {
        match spec.output {
            // Their scale would be in an epilogue.
            DType::I8 | DType::U8 => {
                Support::No(format!("output {} needs a scale, and groups have no epilogue", spec.output))
            }
            _ => self.linear_supports(spec),
        }
    }

    fn grouped_workspace(&self, _: &WgpuPacked, _: usize) -> u64 {
        0
    }

    fn grouped(&self, stream: &mut WgpuStream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        let GroupedArgs { x, weights, offsets, bias, out } = &*args;
        Groups { x, weights, offsets: Some(offsets), bias: *bias, out, own_scales: false, ascending: false }
            .queue(stream)
    }
}

/// Groups of rows, each with weights of its own.
#[derive(Clone)]
pub(crate) struct Groups<'a> {
    pub(crate) x: &'a Activations<'a, Wgpu>,
    pub(crate) weights: &'a [WgpuPacked],
    /// I32 `[groups + 1]`, on the device; without them all rows are the first group's.
    pub(crate) offsets: Option<&'a Tensor<Wgpu>>,
    /// `[groups, weight_rows]`
    pub(crate) bias: Option<&'a Tensor<Wgpu>>,
    pub(crate) out: &'a Tensor<Wgpu>,
    /// Whether one scale for all rows is one for all rows of a group: there are as many as groups.
    pub(crate) own_scales: bool,
    /// Whether the offsets are known to ascend, whatever made them.
    pub(crate) ascending: bool,
}

impl Groups<'_> {
    /// Queues a dispatch for as many groups as one reaches.
    pub(crate) fn queue(&self, stream: &mut WgpuStream) -> Result<()> {
        let mut first = 0;
        while let [weights, others @ ..] = &self.weights[first..] {
            let own_scale = self.own_scales && weights.as_ref().activations.is_per_tensor();
            let groups = match self.offsets {
                Some(_) if !own_scale => Successive::of(&self.weights[first..]),
                _ => Successive::ONE,
            };
            self.product(first, weights, own_scale, groups)?.queue(stream)?;
            others[..groups.count - 1].iter().for_each(|other| other.hold(stream));
            first += groups.count;
        }
        Ok(())
    }

    /// The product of groups from `first` on.
    fn product<'w>(
        &self,
        first: usize,
        weights: &'w WgpuPacked,
        own_scale: bool,
        groups: Successive,
    ) -> Result<Product<'w>> {
        let mut input = Input::of(self.x)?;
        if own_scale {
            input.scales = input.scales.map(|scales| Matrix::new(element(&scales.operand, first), 1));
            input.zero_points = input.zero_points.map(|zero_points| element(&zero_points, first));
        }
        let bias = self.bias.map(|bias| bias.narrow(0, first..first + groups.count)).transpose()?;
        let rows = self.out.dims()[0];
        let range = self.offsets.map(|offsets| RowRange {
            table: Operand::tensor(offsets),
            at: first,
            ascending: self.ascending,
            groups,
            likely: rows.div_ceil(self.weights.len()),
        });
        Ok(Product {
            weights,
            input,
            after: After { bias: bias.as_ref().map(Operand::tensor), ..After::default() },
            out: Matrix::of(self.out),
            rows,
            range,
        })
    }
}

/// One of the elements of a list, all of four bytes.
fn element(list: &Operand, place: usize) -> Operand {
    let start = 4 * place as u64;
    list.part(start..start + 4)
}

#[cfg(test)]
#[path = "grouped_tests.rs"]
mod tests;
