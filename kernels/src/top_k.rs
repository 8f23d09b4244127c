//! The `k` greatest or least elements of each row, with their columns.
//!
//! For a row `x` of `[rows, columns]`: `values[r, i]` and `ids[r, i]` are the `i`-th element of the row's order and its
//! column. The order is by value, best first; of equal values (0 and -0 are equal) the lower column comes first; NaN
//! comes last in both directions. Values are copied, not computed: they are the row's own, bit for bit, NaN included.
//! Ids in a row are distinct. `k = 0` and rows of nothing are valid, and nothing happens.

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("top_k");

/// Which end of the order comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopKOrder {
    /// The greatest first; NaN below -inf.
    Largest,
    /// The least first; NaN above +inf.
    Smallest,
}

/// How many, from which end, of which type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TopKSpec {
    /// Elements kept of each row.
    pub k: usize,
    /// Which end is kept.
    pub order: TopKOrder,
    /// Type of `x` and `values`: a float.
    pub dtype: DType,
}

impl TopKSpec {
    /// The `k` greatest of F32 rows.
    pub fn largest(k: usize) -> Self {
        TopKSpec { k, order: TopKOrder::Largest, dtype: DType::F32 }
    }

    /// The `k` least of F32 rows.
    pub fn smallest(k: usize) -> Self {
        TopKSpec { order: TopKOrder::Smallest, ..TopKSpec::largest(k) }
    }

    /// Rows of another float type.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct TopKArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a TopKSpec,
    /// `[rows, columns]`.
    pub x: &'a Tensor<D>,
    /// `[rows, k]`, of `x`'s type.
    pub values: &'a Tensor<D>,
    /// I32 `[rows, k]`.
    pub ids: &'a Tensor<D>,
}

impl<D: Device> TopKArgs<'_, D> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// More elements kept than there are, columns beyond I32 ids, or the argument that does not fit.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = CHECK.rows("x", self.x, 2)?;
        let columns = self.x.dims().get(1).copied().unwrap_or(0);
        CHECK.tensor("x", self.x, self.spec.dtype, &[rows, columns])?;
        CHECK.limit("columns", columns, i32::MAX as usize)?;
        CHECK.limit("k", self.spec.k, columns)?;
        CHECK.tensor("values", self.values, self.spec.dtype, &[rows, self.spec.k])?;
        CHECK.tensor("ids", self.ids, DType::I32, &[rows, self.spec.k])?;
        CHECK.disjoint("values", self.values, &[("x", Some(self.x)), ("ids", Some(self.ids))])?;
        CHECK.disjoint("ids", self.ids, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait TopK: Device {
    /// Whether and how the backend runs `spec`.
    fn top_k_supports(&self, spec: &TopKSpec) -> Support;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn top_k(&self, stream: &mut Self::Stream, args: Checked<TopKArgs<'_, Self>>) -> Result<()>;
}
