//! In which arithmetic attention computes.

use super::CHECK;
use crate::cache::{KvFormat, KvSpec};
use halite_hal::Result;

/// The arithmetic of scores, and of the sum of weighted values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttentionCompute {
    /// F32. Keys and values of INT8 are widened first.
    #[default]
    Float,
    /// Scores from INT8 queries and the cache's INT8 keys: needs a cache of [`KvFormat::Int8PerTokenHead`].
    ///
    /// The query of a token in a head is one row of [`quantize`](crate::quantize): `(q, sq)`. With `sk_j` the scale of
    /// key `j`, `s_j = f32(Σ_d q_d k_jd) · (sk_j · (sq · scale))`: the sum exact in i32, the rest F32 in this order.
    /// Soft-cap and everything after it are those of [`AttentionCompute::Float`]. (8-bit attention: SageAttention,
    /// arXiv:2410.02367, section 4; there with scales a block of tokens.)
    Int8 {
        /// How values are weighted.
        values: ValueProducts,
    },
}

/// How the values of a part are weighted, where scores are from INT8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueProducts {
    /// F32 weights times widened values.
    Float,
    /// Weights of 8 bits, unsigned, times INT8 values.
    ///
    /// Within a part, over the positions `j` that a row sees, with `p_j = exp(s_j - m)`, `m` the part's greatest score
    /// and `sv_j` the scale of value `j`: `w_j = p_j · sv_j`, `sw = max(max_j w_j / 255, 2^-126)`,
    /// `u_j = clamp(round_ties_even(w_j · (1 / sw)), 0, 255)`, and the part's sum is `f32(Σ_j u_j v_j) · sw`: the sum
    /// exact in i32, the rest F32 in this order. The sum of weights that it is divided by in the end is of the `p_j`
    /// as they are. A part with a `w_j` that is not finite gives NaN.
    Int8,
}

/// 255 · 128, the largest product of a weight and a value.
const WEIGHTED: usize = 255 * 128;
/// 127 · 128, the largest product of a query's and a key's element.
const SCORED: usize = 127 * 128;

impl AttentionCompute {
    /// INT8 needs an INT8 cache, and sums that i32 holds.
    pub(super) fn check(self, kv: &KvSpec, kv_split: usize) -> Result<()> {
        let AttentionCompute::Int8 { values } = self else { return Ok(()) };
        let format = kv.format;
        CHECK.that(
            format == KvFormat::Int8PerTokenHead,
            "compute",
            "INT8 keys and values for Int8",
            format,
        )?;
        CHECK.limit("head_dim", kv.head_dim, i32::MAX as usize / SCORED)?;
        match values {
            ValueProducts::Float => Ok(()),
            ValueProducts::Int8 => CHECK.limit("kv_split", kv_split, i32::MAX as usize / WEIGHTED),
        }
    }
}
