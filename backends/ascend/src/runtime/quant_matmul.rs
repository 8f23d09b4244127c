//! Products of INT8 rows and INT8 weights, by the newest of the operator's forms that this release of CANN has.

use std::ptr;

use halite_hal::Tensor;

use super::{Answer, Descriptor, Operation, Runtime, bindings};
use crate::{abi::function, device::Ascend};

/// One product, `out = (x · wᵀ) · rows · columns + bias`.
#[derive(Clone, Copy)]
pub(crate) struct QuantMatmul<'a> {
    /// I8 `[rows, k]`.
    pub(crate) x: &'a Tensor<Ascend>,
    /// I8 `[n, k]`.
    pub(crate) w: &'a Tensor<Ascend>,
    /// F32 `[rows]`; with an output of floats only.
    pub(crate) rows: Option<&'a Tensor<Ascend>>,
    /// F32 `[n]` or `[1]`; 1 for sums, of which the documents do not say whether they are multiplied.
    pub(crate) columns: &'a Tensor<Ascend>,
    /// F32 `[n]`; with an output of floats only.
    pub(crate) bias: Option<&'a Tensor<Ascend>>,
    /// I32, F16 or BF16 `[rows, n]`, without gaps.
    pub(crate) out: &'a Tensor<Ascend>,
}

impl QuantMatmul<'_> {
    /// What there is, in the order x, w, columns, out, and then rows and bias.
    fn describe(&self, runtime: &Runtime) -> Answer<Vec<Descriptor>> {
        let tensors = [Some(self.x), Some(self.w), Some(self.columns), Some(self.out), self.rows, self.bias];
        runtime.describe(&tensors.into_iter().flatten().collect::<Vec<_>>())
    }

    /// Rows and bias, null where there are none.
    fn optional(&self, tensors: &[Descriptor]) -> [*const bindings::aclTensor; 2] {
        let mut rest = tensors.iter().skip(4).map(|tensor| tensor.raw().cast_const());
        [self.rows, self.bias].map(|there| there.and_then(|_| rest.next()).unwrap_or(ptr::null()))
    }
}

impl Runtime {
    /// One product.
    pub(crate) fn quant_matmul(&self, product: QuantMatmul<'_>) -> Answer<Operation> {
        match self.quant_matmul_v5(&product) {
            Err(error) if error.is_absence() => self.quant_matmul_v4(&product),
            planned => planned,
        }
    }

    fn quant_matmul_v5(&self, product: &QuantMatmul<'_>) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnQuantMatmulV5GetWorkspaceSize)?;
        let (second, tensors) = (function!(cann, aclnnQuantMatmulV5)?, product.describe(self)?);
        Operation::plan(self, "aclnnQuantMatmulV5", second, tensors, |t, bytes, executor| {
            let [x, w, columns, out] = [0, 1, 2, 3].map(|place| t[place].raw());
            let ([rows, bias], none) = (product.optional(t), ptr::null());
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe {
                first(x, w, rows, columns, none, none, none, none, bias, false, true, 0, out, bytes, executor)
            }
        })
    }

    fn quant_matmul_v4(&self, product: &QuantMatmul<'_>) -> Answer<Operation> {
        let cann = self.enter()?;
        let first = function!(cann, aclnnQuantMatmulV4GetWorkspaceSize)?;
        let (second, tensors) = (function!(cann, aclnnQuantMatmulV4)?, product.describe(self)?);
        Operation::plan(self, "aclnnQuantMatmulV4", second, tensors, |t, bytes, executor| {
            let [x, w, columns, out] = [0, 1, 2, 3].map(|place| t[place].raw());
            let [rows, bias] = product.optional(t);
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(x, w, columns, ptr::null(), rows, bias, false, true, out, bytes, executor) }
        })
    }
}
