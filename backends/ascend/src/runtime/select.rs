//! Rows by their numbers, and which of them are kept: plans of one call each.

use halite_hal::Tensor;

use super::{Answer, Descriptor, Operation, Runtime, descriptor::Scalar};
use crate::{abi::function, device::Ascend};

impl Runtime {
    /// I32 between two numbers.
    pub(crate) fn clamp_ints(
        &self,
        x: &Tensor<Ascend>,
        [least, most]: [i32; 2],
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnClampGetWorkspaceSize)?, function!(cann, aclnnClamp)?);
        let tensors = self.describe(&[x, out])?;
        let (least, most) = (Scalar::i32(self, least)?, Scalar::i32(self, most)?);
        let planned = Operation::plan(self, "aclnnClamp", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors and scalars live; the results' places are the caller's.
            unsafe { first(t[0].raw(), least.raw(), most.raw(), t[1].raw(), bytes, executor) }
        });
        planned.map(|operation| operation.with_scalars(vec![least, most]))
    }

    /// `out`, U8, is 1 where x and y are equal and 0 elsewhere; all of one shape.
    pub(crate) fn equal(
        &self,
        x: &Tensor<Ascend>,
        y: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) =
            (function!(cann, aclnnEqTensorGetWorkspaceSize)?, function!(cann, aclnnEqTensor)?);
        let mut tensors = self.describe(&[x, y])?;
        tensors.push(Descriptor::bools(self, out)?);
        Operation::plan(self, "aclnnEqTensor", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), t[2].raw(), bytes, executor) }
        })
    }

    /// `out = mask ? x : y`, where a mask is of U8, 0 and 1; dimensions of 1 are repeated.
    pub(crate) fn select(
        &self,
        mask: &Tensor<Ascend>,
        [x, y]: [&Tensor<Ascend>; 2],
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnSWhereGetWorkspaceSize)?, function!(cann, aclnnSWhere)?);
        let mut tensors = self.describe(&[x, y, out])?;
        tensors.insert(0, Descriptor::bools(self, mask)?);
        Operation::plan(self, "aclnnSWhere", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), t[2].raw(), t[3].raw(), bytes, executor) }
        })
    }

    /// `out[i] = table[ids[i]]`; every id has to be a row's.
    pub(crate) fn embedding(
        &self,
        table: &Tensor<Ascend>,
        ids: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) =
            (function!(cann, aclnnEmbeddingGetWorkspaceSize)?, function!(cann, aclnnEmbedding)?);
        let tensors = self.describe(&[table, ids, out])?;
        Operation::plan(self, "aclnnEmbedding", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), t[2].raw(), bytes, executor) }
        })
    }
}
