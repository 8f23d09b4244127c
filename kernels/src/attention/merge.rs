//! Merging partial results: attention over parts of the keys, made one.
//!
//! With parts `(out_i, lse_i)` over disjoint sets of positions, `w_i = exp(lse_i - max lse)`:
//! `out = Σ w_i out_i / Σ w_i` and `log_sum_exp = max lse + ln Σ w_i`, natural (the merge of Milakov and Gimelshein 2018,
//! arXiv:1805.02867, of normalised results; cascade inference over shared prefixes: Ye et al. 2025, arXiv:2501.01005). A
//! part whose log-sum-exp is -inf is empty, and its output, NaN included, is not used; merging empty parts is empty:
//! 0 with log-sum-exp -inf.
//!
//! Parts are added in the order given, so that a row's bits depend on nothing but its parts. They were rounded once
//! more than attention over all positions at once rounds: equal within a tolerance, not to the bit. Parts that follow one
//! another and are cut at multiples of `kv_split` need no merge: [`AttentionState`](super::AttentionState) is to the bit.

use super::Attention;
use crate::{Checked, check::Check};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("attention_merge");

/// Which results are merged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AttentionMergeSpec {
    /// Type of the outputs, partial and merged; log-sum-exps are F32.
    pub dtype: DType,
}

impl Default for AttentionMergeSpec {
    fn default() -> Self {
        Self::new()
    }
}

impl AttentionMergeSpec {
    /// Of F32 outputs.
    pub fn new() -> Self {
        AttentionMergeSpec { dtype: DType::F32 }
    }

    /// Another type of the outputs.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// Attention over some of the positions.
#[derive(Debug)]
pub struct AttentionPart<'a, B: Attention> {
    /// `[tokens, query_heads, value_head_dim]`; outer dimensions may be strided.
    pub out: &'a Tensor<B>,
    /// F32 `[tokens, query_heads]`.
    pub log_sum_exp: &'a Tensor<B>,
}

impl<B: Attention> Clone for AttentionPart<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Attention> Copy for AttentionPart<'_, B> {}

/// One merge.
#[derive(Clone, Debug)]
pub struct AttentionMergeArgs<'a, B: Attention> {
    /// Which.
    pub spec: &'a AttentionMergeSpec,
    /// One or more, of one shape.
    pub parts: &'a [AttentionPart<'a, B>],
    /// `[tokens, query_heads, value_head_dim]`; outer dimensions may be strided.
    pub out: &'a Tensor<B>,
    /// F32 `[tokens, query_heads]`, where it is wanted.
    pub log_sum_exp: Option<&'a Tensor<B>>,
}

impl<B: Attention> AttentionMergeArgs<'_, B> {
    /// Checks that there are parts, and shapes and types; a value has at least one element.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        CHECK.positive("parts", self.parts.len())?;
        CHECK.rows("out", self.out, 3)?;
        let (dtype, dims) = (self.spec.dtype, self.out.dims());
        let rows = dims.get(..2).unwrap_or_default();
        CHECK.that(!dims.ends_with(&[0]), "out", "values of 1 element or more", dims)?;
        CHECK.tensor("out", self.out, dtype, dims)?;
        if let Some(log_sum_exp) = self.log_sum_exp {
            CHECK.tensor("log_sum_exp", log_sum_exp, DType::F32, rows)?;
            CHECK.disjoint("out", self.out, &[("log_sum_exp", Some(log_sum_exp))])?;
        }
        for part in self.parts {
            CHECK.tensor("parts.out", part.out, dtype, dims)?;
            CHECK.tensor("parts.log_sum_exp", part.log_sum_exp, DType::F32, rows)?;
            let inputs = [("parts.out", Some(part.out)), ("parts.log_sum_exp", Some(part.log_sum_exp))];
            CHECK.disjoint("out", self.out, &inputs)?;
            if let Some(log_sum_exp) = self.log_sum_exp {
                CHECK.disjoint("log_sum_exp", log_sum_exp, &inputs)?;
            }
        }
        Ok(Checked::new(self))
    }
}
