//! Attention over blocks of keys and values, by the newest of the operator's forms that this release of CANN has.

use std::{ffi::CStr, ptr};

use halite_hal::Tensor;

use super::{
    Answer, Descriptor, Operation, Runtime, bindings,
    list::{IntArray, TensorList},
};
use crate::{abi::function, device::Ascend};

/// How queries lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryLayout {
    /// `[tokens, heads, head_dim]`: sequences of any lengths one after the other.
    Tnd,
    /// `[sequences, rows, heads, head_dim]`: of the same length each.
    Bsnd,
}

impl QueryLayout {
    fn name(self) -> &'static CStr {
        match self {
            QueryLayout::Tnd => c"TND",
            QueryLayout::Bsnd => c"BSND",
        }
    }
}

/// One call.
#[derive(Clone, Copy)]
pub(crate) struct FusedInferAttention<'a> {
    pub(crate) layout: QueryLayout,
    /// In that layout, without gaps.
    pub(crate) q: &'a Tensor<Ascend>,
    /// `[blocks, block_size, kv_heads · head_dim]`.
    pub(crate) keys: &'a Tensor<Ascend>,
    pub(crate) values: &'a Tensor<Ascend>,
    /// I8 `[2048, 2048]` with ones above the diagonal, where rows see what comes up to them and not all.
    pub(crate) mask: Option<&'a Tensor<Ascend>>,
    /// Of [`QueryLayout::Tnd`]: where each sequence's rows end.
    pub(crate) row_ends: Option<&'a [i64]>,
    /// Cached positions of each sequence.
    pub(crate) kv_lens: &'a [i64],
    /// I32 `[sequences, blocks of a sequence]`.
    pub(crate) table: &'a Tensor<Ascend>,
    pub(crate) query_heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) block_size: i64,
    pub(crate) scale: f64,
    /// Like the queries.
    pub(crate) out: &'a Tensor<Ascend>,
    /// F32: `[tokens, heads, 1]`, or `[sequences, heads, rows, 1]`.
    pub(crate) log_sum_exp: Option<&'a Tensor<Ascend>>,
}

/// Rows up to the last one, which sees the last position.
const CAUSAL: i64 = 3;
/// No limit to the positions beside a row's own.
const ALL: i64 = i32::MAX as i64;

/// What the first phase takes, as handles that live until the call is queued.
struct Parts {
    /// Queries, table and output, and then mask and log-sum-exp, where they are.
    tensors: Vec<Descriptor>,
    lists: [TensorList; 2],
    arrays: [Option<IntArray>; 2],
}

impl FusedInferAttention<'_> {
    fn parts(&self, runtime: &Runtime) -> Answer<Parts> {
        let tensors = [Some(self.q), Some(self.table), Some(self.out), self.mask, self.log_sum_exp];
        let tensors = runtime.describe(&tensors.into_iter().flatten().collect::<Vec<_>>())?;
        let list = |tensor| TensorList::of(runtime, vec![Descriptor::of(runtime, tensor)?]);
        let lists = [list(self.keys)?, list(self.values)?];
        let ends = self.row_ends.map(|ends| IntArray::of(runtime, ends)).transpose()?;
        Ok(Parts { tensors, lists, arrays: [ends, Some(IntArray::of(runtime, self.kv_lens)?)] })
    }

    /// Mask and log-sum-exp, null where there are none.
    fn optional(&self, tensors: &[Descriptor]) -> [*const bindings::aclTensor; 2] {
        let mut rest = tensors.iter().skip(3).map(|tensor| tensor.raw().cast_const());
        [self.mask, self.log_sum_exp].map(|there| there.and_then(|_| rest.next()).unwrap_or(ptr::null()))
    }
}

/// Both forms: they differ in two tensors and a number, all of which stay away.
macro_rules! planned {
    ($runtime:expr, $of:expr, $first:ident, $second:ident, [$($tensor:expr)*], [$($number:expr)*]) => {{
        let (runtime, of): (&Runtime, &FusedInferAttention<'_>) = ($runtime, $of);
        let cann = runtime.enter()?;
        let (first, second) = (function!(cann, $first)?, function!(cann, $second)?);
        let Parts { tensors, lists, arrays } = of.parts(runtime)?;
        let [ends, kv_lens] =
            arrays.each_ref().map(|array| array.as_ref().map_or(ptr::null(), IntArray::raw));
        let [keys, values] = lists.each_ref().map(TensorList::raw);
        let operation = Operation::plan(runtime, stringify!($second), second, tensors, |t, bytes, executor| {
            let [q, table, out] = [0, 1, 2].map(|place| t[place].raw().cast_const());
            let ([mask, log_sum_exp], none) = (of.optional(t), ptr::null());
            let (mode, layout) = (if of.mask.is_some() { CAUSAL } else { 0 }, of.layout.name());
            let (ask, layout) = (of.log_sum_exp.is_some(), layout.as_ptr().cast_mut());
            // SAFETY: descriptors, lists and arrays live, the layout is a constant that nobody writes; the results' places
            // are the caller's.
            unsafe {
                first(
                    q, keys, values, none, mask, ends, kv_lens, none, none, none, none, none, none, none, table, none,
                    none, none, none, none, none, none, none, ptr::null(), none, none, none, $($tensor,)*
                    of.query_heads, of.scale, ALL, ALL, layout, of.kv_heads, mode, 0, of.block_size, 0, ask, 0, 0,
                    $($number,)* out, log_sum_exp, bytes, executor,
                )
            }
        })?;
        let arrays = arrays.into_iter().flatten();
        Ok(operation.with(lists.into_iter().collect(), arrays.collect()))
    }};
}

impl Runtime {
    /// One call. Which layouts, types and sizes a release takes it says itself, by refusing the others.
    pub(crate) fn fused_infer_attention(&self, of: FusedInferAttention<'_>) -> Answer<Operation> {
        match self.attention_v4(&of) {
            Err(error) if error.is_absence() => self.attention_v3(&of),
            planned => planned,
        }
    }

    fn attention_v4(&self, of: &FusedInferAttention<'_>) -> Answer<Operation> {
        planned!(
            self,
            of,
            aclnnFusedInferAttentionScoreV4GetWorkspaceSize,
            aclnnFusedInferAttentionScoreV4,
            [ptr::null() ptr::null()],
            [0]
        )
    }

    fn attention_v3(&self, of: &FusedInferAttention<'_>) -> Answer<Operation> {
        planned!(
            self,
            of,
            aclnnFusedInferAttentionScoreV3GetWorkspaceSize,
            aclnnFusedInferAttentionScoreV3,
            [],
            []
        )
    }
}
