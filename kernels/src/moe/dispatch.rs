//! The permutation to experts and back: what expert parallelism sends and receives.
//!
//! Dispatch copies each token's row once for each of its experts that is local, sorted by expert, then by token, then by
//! slot. `places[t, s]` says where the row of slot `s` of token `t` went, -1 where its expert is elsewhere; expert
//! `first + e` has the rows `offsets[e]..offsets[e + 1]`, which is what a [`grouped`](crate::grouped) product takes.
//! Rows from `offsets[count]` on are not written.
//!
//! Combine is the way back: `out[t] = Σ_s weights[t, s] · rows[places[t, s]]`, in ascending slot, each product and
//! each sum rounded to F32, then the tensors of `added` in their order, then one rounding to the type of `out`. A place
//! outside the rows contributes nothing; a token without any gets zeros and what is added.
//!
//! The router's weights may multiply rows on their way to the experts instead (Llama 4): dispatch takes them too. A
//! quantised row is multiplied through its scale.

use super::Moe;
use crate::{
    Checked,
    check::Check,
    linear::{Activations, Quantized},
};
use halite_hal::{DType, Result, Tensor};

const DISPATCH: Check = Check("dispatch");
const COMBINE: Check = Check("combine");

/// The experts that a call serves: `first..first + count` of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LocalExperts {
    /// The id of the first.
    pub first: usize,
    /// How many.
    pub count: usize,
}

impl LocalExperts {
    /// The experts `0..count`.
    pub fn all(count: usize) -> Self {
        LocalExperts { first: 0, count }
    }

    /// The experts `first..first + count`.
    pub fn range(first: usize, count: usize) -> Self {
        LocalExperts { first, count }
    }

    /// The place of an expert among these, where it is one of them.
    pub fn place(&self, id: i32) -> Option<usize> {
        let place = usize::try_from(id).ok()?.checked_sub(self.first)?;
        (place < self.count).then_some(place)
    }

    pub(super) fn check(self, check: Check) -> Result<()> {
        check.positive("count", self.count)?;
        let end = self.first.saturating_add(self.count);
        check.limit("first + count", end, i32::MAX as usize)
    }
}

/// One call: rows to experts.
#[derive(Clone, Debug)]
pub struct DispatchArgs<'a, B: Moe> {
    /// The experts served.
    pub local: LocalExperts,
    /// `[tokens, hidden]`: floats, or INT8 per token.
    pub x: Activations<'a, B>,
    /// I32 `[tokens, top_k]`.
    pub ids: &'a Tensor<B>,
    /// F32 `[tokens, top_k]`, where the rows are to be multiplied by them.
    pub weights: Option<&'a Tensor<B>>,
    /// `[tokens · top_k, hidden]`, of the form of `x`.
    pub rows: Activations<'a, B>,
    /// I32 `[count + 1]`.
    pub offsets: &'a Tensor<B>,
    /// I32 `[tokens, top_k]`.
    pub places: &'a Tensor<B>,
}

impl<B: Moe> DispatchArgs<'_, B> {
    /// Checks shapes, types and that results are apart.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument; more than 2^31 - 1 rows.
    pub fn check(self) -> Result<Checked<Self>> {
        let check = DISPATCH;
        self.local.check(check)?;
        let tokens = check.rows("ids", self.ids, 2)?;
        let top_k = self.ids.dims()[1];
        check.tensor("ids", self.ids, DType::I32, &[tokens, top_k])?;
        check.positive("top_k", top_k)?;
        let count = tokens.saturating_mul(top_k);
        check.limit("tokens * top_k", count, i32::MAX as usize)?;
        let (x, x_scales, dtype) = parts(check, &self.x, ["x", "x scales"], tokens)?;
        check.rows("x", x, 2)?;
        check.tensor("x", x, dtype, &[tokens, x.dims()[1]])?;
        let (rows, row_scales, _) = parts(check, &self.rows, ["rows", "row scales"], count)?;
        check.tensor("rows", rows, dtype, &[count, x.dims()[1]])?;
        let alike = x_scales.is_some() == row_scales.is_some();
        check.that(alike, "rows", "the form of `x`", "another form")?;
        if let Some(weights) = self.weights {
            check.tensor("weights", weights, DType::F32, &[tokens, top_k])?;
        }
        check.tensor("offsets", self.offsets, DType::I32, &[self.local.count + 1])?;
        check.tensor("places", self.places, DType::I32, &[tokens, top_k])?;
        let inputs =
            [("x", Some(x)), ("x scales", x_scales), ("ids", Some(self.ids)), ("weights", self.weights)];
        let outs = [
            ("rows", Some(rows)),
            ("row scales", row_scales),
            ("offsets", Some(self.offsets)),
            ("places", Some(self.places)),
        ];
        for (place, (name, out)) in outs.iter().enumerate() {
            if let Some(out) = out {
                check.disjoint(name, out, &inputs)?;
                check.disjoint(name, out, &outs[place + 1..])?;
            }
        }
        Ok(Checked::new(self))
    }
}

/// Elements of rows, their scales, the elements' type.
type Parts<'a, B> = (&'a Tensor<B>, Option<&'a Tensor<B>>, DType);

/// What rows are made of; the scales are checked.
fn parts<'a, B: Moe>(
    check: Check,
    rows: &Activations<'a, B>,
    [name, scale_name]: [&'static str; 2],
    count: usize,
) -> Result<Parts<'a, B>> {
    match *rows {
        Activations::Float(x) => {
            check.that(x.dtype().is_float(), name, "a floating-point type", x.dtype())?;
            Ok((x, None, x.dtype()))
        }
        Activations::Quantized(Quantized { q, scales, zero_points: None, outliers: None }) => {
            check.tensor(scale_name, scales, DType::F32, &[count])?;
            Ok((q, Some(scales), DType::I8))
        }
        _ => Err(check.wrong(name, "floats or INT8 per token", "another form")),
    }
}

/// One call: rows of experts to tokens.
#[derive(Clone, Debug)]
pub struct CombineArgs<'a, B: Moe> {
    /// `[rows, hidden]`: floats, or INT8 per token.
    pub rows: Activations<'a, B>,
    /// I32 `[tokens, top_k]`, as dispatch made them.
    pub places: &'a Tensor<B>,
    /// F32 `[tokens, top_k]`; 1 where there are none.
    pub weights: Option<&'a Tensor<B>>,
    /// `[tokens, hidden]` of the type of `out`, apart from it: added in this order.
    pub added: &'a [&'a Tensor<B>],
    /// `[tokens, hidden]`, floats.
    pub out: &'a Tensor<B>,
}

impl<B: Moe> CombineArgs<'_, B> {
    /// Checks shapes, types and that the result is apart.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let check = COMBINE;
        let tokens = check.rows("places", self.places, 2)?;
        let top_k = self.places.dims()[1];
        check.tensor("places", self.places, DType::I32, &[tokens, top_k])?;
        if let Some(weights) = self.weights {
            check.tensor("weights", weights, DType::F32, &[tokens, top_k])?;
        }
        check.rows("out", self.out, 2)?;
        let (dtype, hidden) = (self.out.dtype(), self.out.dims()[1]);
        check.that(dtype.is_float(), "out", "a floating-point type", dtype)?;
        check.tensor("out", self.out, dtype, &[tokens, hidden])?;
        let count = match &self.rows {
            Activations::Float(rows) => check.rows("rows", rows, 2)?,
            Activations::Quantized(Quantized { q, .. }) => check.rows("rows", q, 2)?,
        };
        let (rows, scales, row_type) = parts(check, &self.rows, ["rows", "row scales"], count)?;
        check.tensor("rows", rows, row_type, &[count, hidden])?;
        let inputs = [
            ("rows", Some(rows)),
            ("row scales", scales),
            ("places", Some(self.places)),
            ("weights", self.weights),
        ];
        check.disjoint("out", self.out, &inputs)?;
        for added in self.added {
            check.tensor("added", added, dtype, &[tokens, hidden])?;
            check.disjoint("out", self.out, &[("added", Some(added))])?;
        }
        Ok(Checked::new(self))
    }
}
