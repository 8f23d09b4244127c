//! The calls: turning heads, and turning them on their way to the cache.

use super::{CHECK, Rope, RopePlan};
use crate::{
    Checked,
    cache::{CacheWriteArgs, KvCacheInfo, SlotPlan},
};
use halite_hal::{DType, Result, Tensor};

/// Which way heads turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Direction {
    /// `(a, b) → (a cos - b sin, a sin + b cos)`.
    #[default]
    Forward,
    /// `(a, b) → (a cos + b sin, b cos - a sin)`: back again, where the attention factor is 1.
    Inverse,
}

/// One call, in place.
#[derive(Clone, Debug)]
pub struct RopeArgs<'a, B: Rope> {
    /// The plan, as last updated.
    pub plan: &'a B::RopePlan,
    /// Which way.
    pub direction: Direction,
    /// `[tokens, heads, head_dim]` of the spec's type; outer dimensions may be strided. Query and key heads may lie side
    /// by side.
    pub x: &'a Tensor<B>,
}

impl<B: Rope> RopeArgs<'_, B> {
    /// Checks shape and type.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        check_heads("x", self.plan, self.x)?;
        Ok(Checked::new(self))
    }
}

fn check_heads<B: Rope>(argument: &'static str, plan: &B::RopePlan, x: &Tensor<B>) -> Result<()> {
    CHECK.rows(argument, x, 3)?;
    let dims = [plan.tokens(), x.dims()[1], plan.spec().head_dim];
    CHECK.tensor(argument, x, plan.spec().dtype, &dims)
}

/// Rotation and cache write in one call: queries turn in place; keys turn on their way to the cache and stay as they are;
/// values are written as they are. The bits are those of [`Rope::rope`] on both, followed by
/// [`cache_write`](crate::cache::KvCacheOps::cache_write).
#[derive(Clone, Debug)]
pub struct RopeWriteArgs<'a, B: Rope> {
    /// The plan, as last updated; of F32 heads.
    pub plan: &'a B::RopePlan,
    /// F32 `[tokens, heads, head_dim]`; outer dimensions may be strided. It has no element in common with `k` and `v`; all
    /// three may be columns of one matrix.
    pub q: &'a Tensor<B>,
    /// The slots, as last updated.
    pub slots: &'a B::Slots,
    /// The cache.
    pub cache: &'a B::KvCache,
    /// Which layer.
    pub layer: usize,
    /// F32 `[tokens, kv_heads, head_dim]`; outer dimensions may be strided.
    pub k: &'a Tensor<B>,
    /// F32 `[tokens, kv_heads, value_head_dim]`; outer dimensions may be strided.
    pub v: &'a Tensor<B>,
}

impl<B: Rope> RopeWriteArgs<'_, B> {
    /// Checks shapes, types and the layer.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument, of the operator `rope`; of `cache` for what
    /// concerns keys, values and the layer.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.plan.spec();
        CHECK.that(spec.dtype == DType::F32, "plan", "F32 heads, as a cache is written from", spec.dtype)?;
        let (tokens, slots) = (self.plan.tokens(), self.slots.tokens());
        CHECK.that(slots == tokens, "slots", format!("the {tokens} tokens of the plan"), slots)?;
        let head_dim = self.cache.spec().head_dim;
        CHECK.that(head_dim == spec.head_dim, "cache", format!("keys of {}", spec.head_dim), head_dim)?;
        check_heads("q", self.plan, self.q)?;
        CacheWriteArgs { slots: self.slots, cache: self.cache, layer: self.layer, k: self.k, v: self.v }
            .check()?;
        for (name, other) in [("k", self.k), ("v", self.v)] {
            let empty = self.q.shape().elements() == 0;
            let apart = empty || !self.q.overlaps(other) || are_other_columns(self.q, other);
            CHECK.that(apart, "q", format!("elements apart from `{name}`"), self.q.byte_range())?;
        }
        Ok(Checked::new(self))
    }
}

/// Whether two `[tokens, heads, dim]` views, of which none is empty, are different columns of one matrix.
fn are_other_columns<B: Rope>(left: &Tensor<B>, right: &Tensor<B>) -> bool {
    let (row, size) = (left.strides()[0], left.dtype().size() as u64);
    let width = |x: &Tensor<B>| (x.dims()[1] - 1) * x.strides()[1] + x.dims()[2];
    let (first, second) = if left.offset() <= right.offset() { (left, right) } else { (right, left) };
    // Wherever the matrix begins: the second's columns come after the first's and end before those of its next row.
    let apart = ((second.offset() - first.offset()) / size) as usize % row.max(1);
    row == right.strides()[0] && apart >= width(first) && apart + width(second) <= row
}
