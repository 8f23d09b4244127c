//! The best of each row: refused. CANN's Topk puts them in order, but its document does not say which of equal elements comes
//! first, nor where NaN comes; the contract says both.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKSpec},
};

use crate::{device::Ascend, stream::AscendStream, support::unsupported};

/// Why.
const OPEN: &str = "CANN's Topk does not say which of equal elements comes first, and where NaN does";

impl TopK for Ascend {
    fn top_k_supports(&self, _: &TopKSpec) -> Support {
        Support::No(OPEN.to_owned())
    }

    fn top_k(&self, _: &mut AscendStream, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("top_k", OPEN, args.spec))
    }
}
