//! Products of groups of INT8 rows, each with weights of its own.

use std::ptr;

use halite_hal::Tensor;

use super::{Answer, Descriptor, Operation, Runtime, bindings, list::TensorList};
use crate::{abi::function, device::Ascend};

/// Rows lie one after the other, and so do results: CANN's number for one tensor on both sides.
const ONE_TENSOR: i64 = 3;
/// Groups are of rows.
const BY_ROWS: i64 = 0;
/// The list says where each group ends.
const ENDS: i64 = 0;

impl Runtime {
    /// `out[r] = x[r] · w[g]ᵀ` for the rows of group `g`, which end before row `ends[g]`: I8 `[rows, k]`, I8 `[groups, n, k]`, I32
    /// `[rows, n]`. `ends` holds 64-bit integers in I32 `[groups, 2]`. Rows behind the last end are not written.
    pub(crate) fn grouped_matmul(
        &self,
        x: &Tensor<Ascend>,
        w: &Tensor<Ascend>,
        ends: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnGroupedMatmulV5GetWorkspaceSize)?;
        let second = function!(cann, aclnnGroupedMatmulV5)?;
        let list = |member| TensorList::of(self, vec![member]);
        let lists = [
            list(Descriptor::of(self, x)?)?,
            list(Descriptor::turned(self, w)?)?,
            list(Descriptor::of(self, out)?)?,
        ];
        let tensors = vec![Descriptor::int64(self, ends)?];
        let operation =
            Operation::plan(self, "aclnnGroupedMatmulV5", second, tensors, |t, bytes, executor| {
                let [x, w, out] = lists.each_ref().map(TensorList::raw);
                let (ends, none, null) = (t[0].raw(), ptr::null(), ptr::null_mut());
                // SAFETY: descriptors and lists live; the results' places are the caller's.
                unsafe {
                    first(
                        x,
                        w,
                        none,
                        none,
                        none,
                        none,
                        none,
                        none,
                        ends,
                        none,
                        none,
                        none,
                        ONE_TENSOR,
                        BY_ROWS,
                        ENDS,
                        0,
                        ptr::null_mut(),
                        out.cast_mut(),
                        null,
                        null,
                        bytes,
                        executor,
                    )
                }
            })?;
        Ok(operation.with(lists.into_iter().collect(), Vec::new()))
    }

    /// Whole numbers `[n]` as 64-bit integers in I32 `[n, 2]`.
    pub(crate) fn cast_int64(&self, x: &Tensor<Ascend>, out: &Tensor<Ascend>) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnCastGetWorkspaceSize)?, function!(cann, aclnnCast)?);
        let tensors = vec![Descriptor::of(self, x)?, Descriptor::int64(self, out)?];
        Operation::plan(self, "aclnnCast", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), bindings::ACL_INT64, t[1].raw(), bytes, executor) }
        })
    }

    /// Numbers that are not 0 as bytes that say yes.
    pub(crate) fn cast_bools(&self, x: &Tensor<Ascend>, out: &Tensor<Ascend>) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnCastGetWorkspaceSize)?, function!(cann, aclnnCast)?);
        let tensors = vec![Descriptor::of(self, x)?, Descriptor::bools(self, out)?];
        Operation::plan(self, "aclnnCast", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), bindings::ACL_BOOL, t[1].raw(), bytes, executor) }
        })
    }
}
