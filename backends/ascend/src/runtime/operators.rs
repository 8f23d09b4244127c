//! The operators of CANN's that the backend calls: a function plans one call of each.
//!
//! An operator that this release of CANN lacks is [`RuntimeError::Function`](super::RuntimeError); `supports` asks beforehand,
//! by [`Runtime::has_operator`].

use std::ptr;

use halite_hal::Tensor;

use super::{
    Answer, Descriptor, Operation, Runtime,
    descriptor::{Scalar, type_of},
};
use crate::{abi::function, device::Ascend};

/// An operator that the backend has a use for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    Abs,
    Amax,
    Clamp,
    Div,
    Divs,
    Embedding,
    EqTensor,
    GeluV2,
    GroupedMatmul,
    Matmul,
    Muls,
    NanToNum,
    Silu,
    Tanh,
    Add,
    ApplyRotaryPosEmb,
    Cast,
    FusedInferAttention,
    InplaceCopy,
    Mul,
    QuantMatmul,
    RmsNorm,
    SWhere,
    ScatterPaKvCache,
    SwiGlu,
}

impl Operator {
    /// The name that CANN's documentation has it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operator::Abs => "aclnnAbs",
            Operator::Amax => "aclnnAmax",
            Operator::Clamp => "aclnnClamp",
            Operator::Div => "aclnnDiv",
            Operator::Divs => "aclnnDivs",
            Operator::GeluV2 => "aclnnGeluV2",
            Operator::Matmul => "aclnnMatmul",
            Operator::Muls => "aclnnMuls",
            Operator::NanToNum => "aclnnNanToNum",
            Operator::Silu => "aclnnSilu",
            Operator::Tanh => "aclnnTanh",
            Operator::Embedding => "aclnnEmbedding",
            Operator::EqTensor => "aclnnEqTensor",
            Operator::SWhere => "aclnnSWhere",
            Operator::GroupedMatmul => "aclnnGroupedMatmulV5",
            Operator::Add => "aclnnAdd",
            Operator::ApplyRotaryPosEmb => "aclnnApplyRotaryPosEmbV2",
            Operator::FusedInferAttention => {
                "aclnnFusedInferAttentionScoreV4 or aclnnFusedInferAttentionScoreV3"
            }
            Operator::Mul => "aclnnMul",
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
            Operator::Abs => both!(self, aclnnAbsGetWorkspaceSize, aclnnAbs),
            Operator::Amax => both!(self, aclnnAmaxGetWorkspaceSize, aclnnAmax),
            Operator::Clamp => both!(self, aclnnClampGetWorkspaceSize, aclnnClamp),
            Operator::Div => both!(self, aclnnDivGetWorkspaceSize, aclnnDiv),
            Operator::Divs => both!(self, aclnnDivsGetWorkspaceSize, aclnnDivs),
            Operator::GeluV2 => both!(self, aclnnGeluV2GetWorkspaceSize, aclnnGeluV2),
            Operator::Matmul => both!(self, aclnnMatmulGetWorkspaceSize, aclnnMatmul),
            Operator::Muls => both!(self, aclnnMulsGetWorkspaceSize, aclnnMuls),
            Operator::NanToNum => both!(self, aclnnNanToNumGetWorkspaceSize, aclnnNanToNum),
            Operator::Silu => both!(self, aclnnSiluGetWorkspaceSize, aclnnSilu),
            Operator::Tanh => both!(self, aclnnTanhGetWorkspaceSize, aclnnTanh),
            Operator::Embedding => both!(self, aclnnEmbeddingGetWorkspaceSize, aclnnEmbedding),
            Operator::EqTensor => both!(self, aclnnEqTensorGetWorkspaceSize, aclnnEqTensor),
            Operator::SWhere => both!(self, aclnnSWhereGetWorkspaceSize, aclnnSWhere),
            Operator::GroupedMatmul => {
                both!(self, aclnnGroupedMatmulV5GetWorkspaceSize, aclnnGroupedMatmulV5)
            }
            Operator::Add => both!(self, aclnnAddGetWorkspaceSize, aclnnAdd),
            Operator::ApplyRotaryPosEmb => {
                both!(self, aclnnApplyRotaryPosEmbV2GetWorkspaceSize, aclnnApplyRotaryPosEmbV2)
            }
            Operator::FusedInferAttention => self.has_attention_v4() || self.has_attention_v3(),
            Operator::Mul => both!(self, aclnnMulGetWorkspaceSize, aclnnMul),
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

    fn has_attention_v4(&self) -> bool {
        both!(self, aclnnFusedInferAttentionScoreV4GetWorkspaceSize, aclnnFusedInferAttentionScoreV4)
    }

    fn has_attention_v3(&self) -> bool {
        both!(self, aclnnFusedInferAttentionScoreV3GetWorkspaceSize, aclnnFusedInferAttentionScoreV3)
    }

    fn has_quant_matmul_v5(&self) -> bool {
        both!(self, aclnnQuantMatmulV5GetWorkspaceSize, aclnnQuantMatmulV5)
    }

    fn has_quant_matmul_v4(&self) -> bool {
        both!(self, aclnnQuantMatmulV4GetWorkspaceSize, aclnnQuantMatmulV4)
    }

    pub(super) fn describe(&self, tensors: &[&Tensor<Ascend>]) -> Answer<Vec<Descriptor>> {
        tensors.iter().map(|tensor| Descriptor::of(self, tensor)).collect()
    }

    /// `out = x + factor · y`; dimensions of 1 are repeated.
    pub(crate) fn add(
        &self,
        x: &Tensor<Ascend>,
        factor: f32,
        y: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnAddGetWorkspaceSize)?, function!(cann, aclnnAdd)?);
        let (alpha, tensors) = (Scalar::f32(self, factor)?, self.describe(&[x, y, out])?);
        let planned = Operation::plan(self, "aclnnAdd", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors and scalar live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), alpha.raw(), t[2].raw(), bytes, executor) }
        });
        planned.map(|operation| operation.with_scalars(vec![alpha]))
    }

    /// `out = x · y`; dimensions of 1 are repeated.
    pub(crate) fn mul(
        &self,
        x: &Tensor<Ascend>,
        y: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnMulGetWorkspaceSize)?, function!(cann, aclnnMul)?);
        Operation::plan(self, "aclnnMul", second, self.describe(&[x, y, out])?, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), t[2].raw(), bytes, executor) }
        })
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
        self.copy_views(self.describe(&[to, from])?)
    }

    /// The elements of `from`, `[.., a, b]`, to the places of `to`, `[.., b, a]`.
    pub(crate) fn inplace_copy_turned(
        &self,
        to: &Tensor<Ascend>,
        from: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        self.copy_views(vec![Descriptor::of(self, to)?, Descriptor::turned(self, from)?])
    }

    fn copy_views(&self, views: Vec<Descriptor>) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnInplaceCopyGetWorkspaceSize)?;
        let second = function!(cann, aclnnInplaceCopy)?;
        Operation::plan(self, "aclnnInplaceCopy", second, views, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), bytes, executor) }
        })
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

    /// Turns the heads of `x` and `y`, `[tokens, heads, dim]`, where they lie, by cosines and sines `[tokens, 1, dim]`: the first
    /// half of a head with the second.
    pub(crate) fn apply_rotary_pos_emb(
        &self,
        [x, y]: [&Tensor<Ascend>; 2],
        [cos, sin]: [&Tensor<Ascend>; 2],
    ) -> Answer<Operation> {
        /// The number of this order of dimensions.
        const TND: i64 = 4;
        let cann = self.enter()?;
        let first = function!(cann, aclnnApplyRotaryPosEmbV2GetWorkspaceSize)?;
        let second = function!(cann, aclnnApplyRotaryPosEmbV2)?;
        let (tensors, mode) = (self.describe(&[x, y, cos, sin])?, c"half".as_ptr().cast_mut());
        Operation::plan(self, "aclnnApplyRotaryPosEmbV2", second, tensors, |t, bytes, executor| {
            let [x, y, cos, sin] = [0, 1, 2, 3].map(|place| t[place].raw());
            // SAFETY: descriptors live, the mode is a constant that nobody writes; the results' places are the caller's.
            unsafe { first(x, y, cos, sin, TND, mode, bytes, executor) }
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
}
