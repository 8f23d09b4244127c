//! The operators of CANN's that the backend calls: a function plans one call of each.
//!
//! An operator that this release of CANN lacks is [`RuntimeError::Function`](super::RuntimeError); `supports` asks beforehand,
//! by [`Runtime::has_operator`].

use std::ptr;

use halite_hal::Tensor;

use super::{Answer, Descriptor, Operation, Runtime, descriptor::type_of};
use crate::{abi::function, device::Ascend};

/// An operator that the backend has a use for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    AddRmsNorm,
    Cast,
    InplaceCopy,
    QuantMatmul,
    RmsNorm,
    ScatterPaKvCache,
    SwiGlu,
}

impl Operator {
    /// The name that CANN's documentation has it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operator::AddRmsNorm => "aclnnAddRmsNorm",
            Operator::Cast => "aclnnCast",
            Operator::InplaceCopy => "aclnnInplaceCopy",
            Operator::QuantMatmul => "aclnnQuantMatmulV5 or aclnnQuantMatmulV4",
            Operator::RmsNorm => "aclnnRmsNorm",
            Operator::ScatterPaKvCache => "aclnnScatterPaKvCache",
            Operator::SwiGlu => "aclnnSwiGlu",
        }
    }
}

/// Whether both phases of an operator are there.
macro_rules! both {
    ($runtime:expr, $first:ident, $second:ident) => {
        $runtime.has(|functions| functions.$first.as_ref().ok().copied())
            && $runtime.has(|functions| functions.$second.as_ref().ok().copied())
    };
}

impl Runtime {
    /// Whether this release of CANN has an operator.
    pub(crate) fn has_operator(&self, operator: Operator) -> bool {
        match operator {
            Operator::AddRmsNorm => both!(self, aclnnAddRmsNormGetWorkspaceSize, aclnnAddRmsNorm),
            Operator::Cast => both!(self, aclnnCastGetWorkspaceSize, aclnnCast),
            Operator::InplaceCopy => both!(self, aclnnInplaceCopyGetWorkspaceSize, aclnnInplaceCopy),
            Operator::QuantMatmul => self.has_quant_matmul_v5() || self.has_quant_matmul_v4(),
            Operator::RmsNorm => both!(self, aclnnRmsNormGetWorkspaceSize, aclnnRmsNorm),
            Operator::ScatterPaKvCache => {
                both!(self, aclnnScatterPaKvCacheGetWorkspaceSize, aclnnScatterPaKvCache)
            }
            Operator::SwiGlu => both!(self, aclnnSwiGluGetWorkspaceSize, aclnnSwiGlu),
        }
    }

    fn has_quant_matmul_v5(&self) -> bool {
        both!(self, aclnnQuantMatmulV5GetWorkspaceSize, aclnnQuantMatmulV5)
    }

    fn has_quant_matmul_v4(&self) -> bool {
        both!(self, aclnnQuantMatmulV4GetWorkspaceSize, aclnnQuantMatmulV4)
    }

    fn describe(&self, tensors: &[&Tensor<Ascend>]) -> Answer<Vec<Descriptor>> {
        tensors.iter().map(|tensor| Descriptor::of(self, tensor)).collect()
    }

    /// The elements of `x` in the type of `out`.
    pub(crate) fn cast(&self, x: &Tensor<Ascend>, out: &Tensor<Ascend>) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnCastGetWorkspaceSize)?, function!(cann, aclnnCast)?);
        let to = type_of(out)?;
        Operation::plan(self, "aclnnCast", second, self.describe(&[x, out])?, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), to, t[1].raw(), bytes, executor) }
        })
    }

    /// The elements of `from` to the places of `to`.
    pub(crate) fn inplace_copy(&self, to: &Tensor<Ascend>, from: &Tensor<Ascend>) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnInplaceCopyGetWorkspaceSize)?;
        let second = function!(cann, aclnnInplaceCopy)?;
        Operation::plan(
            self,
            "aclnnInplaceCopy",
            second,
            self.describe(&[to, from])?,
            |t, bytes, executor| {
                // SAFETY: descriptors live; the results' places are the caller's.
                unsafe { first(t[0].raw(), t[1].raw(), bytes, executor) }
            },
        )
    }

    /// `out = silu(x's first half) · x's second half`, of every row.
    pub(crate) fn swi_glu(&self, x: &Tensor<Ascend>, out: &Tensor<Ascend>) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnSwiGluGetWorkspaceSize)?, function!(cann, aclnnSwiGlu)?);
        Operation::plan(self, "aclnnSwiGlu", second, self.describe(&[x, out])?, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), -1, t[1].raw(), bytes, executor) }
        })
    }

    /// `out = x / √(mean(x²) + eps) · gamma`, of every row; `rstd` receives what rows are multiplied by.
    pub(crate) fn rms_norm(
        &self,
        x: &Tensor<Ascend>,
        gamma: &Tensor<Ascend>,
        eps: f64,
        out: &Tensor<Ascend>,
        rstd: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) =
            (function!(cann, aclnnRmsNormGetWorkspaceSize)?, function!(cann, aclnnRmsNorm)?);
        let tensors = self.describe(&[x, gamma, out, rstd])?;
        Operation::plan(self, "aclnnRmsNorm", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), eps, t[2].raw(), t[3].raw(), bytes, executor) }
        })
    }

    /// `sum = x + y`, and `out` is the norm of that, as above.
    pub(crate) fn add_rms_norm(
        &self,
        [x, y]: [&Tensor<Ascend>; 2],
        gamma: &Tensor<Ascend>,
        eps: f64,
        [out, rstd, sum]: [&Tensor<Ascend>; 3],
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnAddRmsNormGetWorkspaceSize)?;
        let second = function!(cann, aclnnAddRmsNorm)?;
        let tensors = self.describe(&[x, y, gamma, out, rstd, sum])?;
        Operation::plan(self, "aclnnAddRmsNorm", second, tensors, |t, bytes, executor| {
            let [x, y, gamma, out, rstd, sum] = [0, 1, 2, 3, 4, 5].map(|place| t[place].raw());
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(x, y, gamma, eps, out, rstd, sum, bytes, executor) }
        })
    }

    /// Rows `[tokens, heads, dim]` of keys and values to their slots of `[blocks, block_size, heads, dim]`.
    pub(crate) fn scatter_pa_kv_cache(
        &self,
        [key, value]: [&Tensor<Ascend>; 2],
        [key_cache, value_cache]: [&Tensor<Ascend>; 2],
        slots: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnScatterPaKvCacheGetWorkspaceSize)?;
        let second = function!(cann, aclnnScatterPaKvCache)?;
        let tensors = self.describe(&[key, key_cache, slots, value, value_cache])?;
        let mode = c"Norm".as_ptr().cast_mut();
        let none = ptr::null();
        Operation::plan(self, "aclnnScatterPaKvCache", second, tensors, |t, bytes, executor| {
            let [key, key_cache, slots, value, value_cache] = [0, 1, 2, 3, 4].map(|place| t[place].raw());
            // SAFETY: descriptors live, the mode is a constant that nobody writes; the results' places are the caller's.
            unsafe {
                first(
                    key,
                    key_cache,
                    slots,
                    value,
                    value_cache,
                    none,
                    none,
                    none,
                    mode,
                    ptr::null_mut(),
                    ptr::null(),
                    ptr::null(),
                    bytes,
                    executor,
                )
            }
        })
    }

    /// The sums of `x · wᵀ`, I8 `[rows, k]` and `[n, k]`, as I32: `scale`, F32 `[1]`, is 1. By the newest of the operator's
    /// forms that this release has.
    pub(crate) fn quant_matmul_sums(
        &self,
        x: &Tensor<Ascend>,
        w: &Tensor<Ascend>,
        scale: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let none = ptr::null();
        let newer = function!(cann, aclnnQuantMatmulV5GetWorkspaceSize).and_then(|first| {
            let (second, tensors) =
                (function!(cann, aclnnQuantMatmulV5)?, self.describe(&[x, w, scale, out])?);
            Operation::plan(self, "aclnnQuantMatmulV5", second, tensors, |t, bytes, executor| {
                let [x, w, scale, out] = [0, 1, 2, 3].map(|place| t[place].raw());
                // SAFETY: descriptors live; the results' places are the caller's.
                unsafe {
                    first(
                        x, w, none, scale, none, none, none, none, none, false, true, 0, out, bytes, executor,
                    )
                }
            })
        });
        if !matches!(&newer, Err(error) if error.is_absence()) {
            return newer;
        }
        let first = function!(cann, aclnnQuantMatmulV4GetWorkspaceSize)?;
        let (second, tensors) = (function!(cann, aclnnQuantMatmulV4)?, self.describe(&[x, w, scale, out])?);
        Operation::plan(self, "aclnnQuantMatmulV4", second, tensors, |t, bytes, executor| {
            let [x, w, scale, out] = [0, 1, 2, 3].map(|place| t[place].raw());
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(x, w, scale, none, none, none, false, true, out, bytes, executor) }
        })
    }
}
