//! The `k` best of each row.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKOrder, TopKSpec},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::{Launch, float_type},
    rows::Rows,
    stream::CudaStream,
    support::float_only,
};

static SOURCE: Source = Source::new("top_k.cu", include_str!("top_k.cu"));

/// Results of a block: the kernel's `CAPACITY`.
const CAPACITY: usize = 1024;

fn base() -> Launch {
    Launch::new("top_k", &SOURCE, "top_k")
}

/// Every program of the family: one, which reads any type.
pub(crate) fn programs() -> Vec<Program> {
    vec![base().program()]
}

impl TopK for Cuda {
    fn top_k_supports(&self, spec: &TopKSpec) -> Support {
        float_only(spec.dtype)
    }

    fn top_k(&self, stream: &mut CudaStream, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        let spec = args.spec;
        self.top_k_supports(spec).require("top_k", self, spec)?;
        let (x, values, ids) = (Rows::of(args.x), Rows::of(args.values), Rows::of(args.ids));
        let pieces = spec.k.div_ceil(CAPACITY);
        let launch = base()
            .tensor("x", args.x)
            .tensor("values", args.values)
            .tensor("ids", args.ids)
            .size("columns", x.columns)
            .size("k", spec.k)
            .size("pieces", pieces)
            .size("x's stride", x.outer_stride)
            .size("values' stride", values.outer_stride)
            .size("ids' stride", ids.outer_stride)
            .int(float_type(spec.dtype))
            .int((spec.order == TopKOrder::Smallest).into());
        stream.launch(launch.grid([x.outer.saturating_mul(pieces), 1, 1]))
    }
}
