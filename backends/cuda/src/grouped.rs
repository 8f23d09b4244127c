//! Grouped products: a product for each group, over rows that only the device knows.

use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::{Linear, LinearSpec},
};

use crate::{
    device::Cuda,
    linear::{CudaPacked, Groups, RowGroups},
    stream::CudaStream,
};

impl Grouped for Cuda {
    fn grouped_supports(&self, spec: &LinearSpec) -> Support {
        match spec.output {
            // Their scale would be in an epilogue.
            DType::I8 | DType::U8 => {
                Support::No(format!("output {} needs a scale, and groups have no epilogue", spec.output))
            }
            _ => self.linear_supports(spec),
        }
    }

    fn grouped_workspace(&self, _: &CudaPacked, _max_rows: usize) -> u64 {
        0
    }

    fn grouped(&self, stream: &mut CudaStream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        let GroupedArgs { x, weights, offsets, bias, out } = &*args;
        let rows = RowGroups::Sorted { offsets, slots: None, top_k: 1 };
        let groups = Groups {
            operator: "grouped",
            x,
            weights,
            rows,
            bias: *bias,
            out,
            gathered: false,
            factors: None,
            own_scales: false,
        };
        groups.queue(stream)
    }
}

#[cfg(all(test, feature = "interpreter"))]
#[path = "grouped_tests.rs"]
mod tests;
