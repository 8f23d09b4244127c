//! Which positions a query row sees.

use super::CHECK;
use halite_hal::Result;

/// Which positions a query row sees. Keys and values at others, NaN included, do not reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mask {
    /// Positions up to its own.
    Causal,
    /// The last `window` positions up to its own, its own included: a row at position `p` sees the positions `q` with
    /// `p - window < q <= p` (Beltagy et al. 2020, arXiv:2004.05150; `sliding_window` of Hugging Face transformers).
    Sliding {
        /// Positions that a row sees at most; 1 or more.
        window: usize,
    },
}

impl Mask {
    pub(super) fn check(self) -> Result<()> {
        match self {
            Mask::Causal => Ok(()),
            Mask::Sliding { window } => CHECK.positive("window", window),
        }
    }
}
