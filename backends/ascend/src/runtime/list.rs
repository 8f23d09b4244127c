//! Lists of tensors and of numbers, as some of CANN's operators take them.

use super::{Answer, Descriptor, Runtime, bindings};
use crate::{abi::function, memory::AscendBuffer};

/// Tensors in order. CANN's list owns their descriptors.
pub(super) struct TensorList {
    runtime: Runtime,
    raw: *mut bindings::aclTensorList,
    members: Vec<Descriptor>,
}

impl TensorList {
    pub(super) fn of(runtime: &Runtime, mut members: Vec<Descriptor>) -> Answer<Self> {
        let cann = runtime.enter()?;
        let create = function!(cann, aclCreateTensorList)?;
        let tensors: Vec<_> = members.iter().map(|member| member.raw().cast_const()).collect();
        // SAFETY: there are as many descriptors as is said, and all of them live; the array is copied.
        let raw = unsafe { create(tensors.as_ptr(), tensors.len() as u64) };
        if raw.is_null() {
            return Err(cann.error("aclCreateTensorList", 0));
        }
        members.iter_mut().for_each(Descriptor::release);
        Ok(TensorList { runtime: runtime.clone(), raw, members })
    }

    pub(super) fn raw(&self) -> *const bindings::aclTensorList {
        self.raw
    }

    /// The memory that its tensors describe.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &AscendBuffer> {
        self.members.iter().map(Descriptor::buffer)
    }
}

impl Drop for TensorList {
    fn drop(&mut self) {
        if let Ok(destroy) = function!(self.runtime.0.cann, aclDestroyTensorList) {
            // SAFETY: it was made above with the descriptors that it owns, and nobody has it any more.
            unsafe { destroy(self.raw) };
        }
    }
}

/// Numbers on the host: CANN reads them when it plans a call.
pub(super) struct IntArray {
    runtime: Runtime,
    raw: *mut bindings::aclIntArray,
}

impl IntArray {
    pub(super) fn of(runtime: &Runtime, values: &[i64]) -> Answer<Self> {
        let cann = runtime.enter()?;
        let create = function!(cann, aclCreateIntArray)?;
        // SAFETY: there are as many values as is said; they are copied.
        let raw = unsafe { create(values.as_ptr(), values.len() as u64) };
        if raw.is_null() {
            return Err(cann.error("aclCreateIntArray", 0));
        }
        Ok(IntArray { runtime: runtime.clone(), raw })
    }

    pub(super) fn raw(&self) -> *const bindings::aclIntArray {
        self.raw
    }
}

impl Drop for IntArray {
    fn drop(&mut self) {
        if let Ok(destroy) = function!(self.runtime.0.cann, aclDestroyIntArray) {
            // SAFETY: it was made above, and nobody has it any more.
            unsafe { destroy(self.raw) };
        }
    }
}
