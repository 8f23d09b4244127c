//! Tensors as CANN's operators take them: an allocation, and how the elements lie in it.

use std::ptr;

use halite_hal::{DType, Storage, Tensor};

use super::{Answer, Runtime, RuntimeError, bindings};
use crate::{abi::function, device::Ascend, memory::AscendBuffer};

/// A descriptor of a tensor's memory.
pub(crate) struct Descriptor {
    runtime: Runtime,
    raw: *mut bindings::aclTensor,
    /// Whether a list owns it.
    listed: bool,
    /// What it describes is held for whoever uses it.
    buffer: AscendBuffer,
}

/// The number that CANN knows a tensor's type by.
pub(super) fn type_of(tensor: &Tensor<Ascend>) -> Answer<bindings::aclDataType> {
    match tensor.dtype() {
        DType::F32 => Ok(bindings::ACL_FLOAT),
        DType::F16 => Ok(bindings::ACL_FLOAT16),
        DType::Bf16 => Ok(bindings::ACL_BF16),
        DType::I8 => Ok(bindings::ACL_INT8),
        DType::U8 => Ok(bindings::ACL_UINT8),
        DType::I32 => Ok(bindings::ACL_INT32),
        _ => Err(failed("a type that no operator takes", tensor)),
    }
}

fn failed(what: &str, tensor: &Tensor<Ascend>) -> RuntimeError {
    RuntimeError::of_code("aclCreateTensor", 0, format!("{what}: {tensor:?}"))
}

impl Descriptor {
    /// Of a tensor as it lies: the allocation is one row of elements, the tensor a view of it.
    pub(crate) fn of(runtime: &Runtime, tensor: &Tensor<Ascend>) -> Answer<Self> {
        Descriptor::view(runtime, tensor, type_of(tensor)?, |_| {})
    }

    /// Of bytes that say yes or no.
    pub(super) fn bools(runtime: &Runtime, tensor: &Tensor<Ascend>) -> Answer<Self> {
        Descriptor::view(runtime, tensor, bindings::ACL_BOOL, |_| {})
    }

    /// Of dense I32 `[n, 2]` as 64-bit integers `[n]`.
    pub(super) fn int64(runtime: &Runtime, tensor: &Tensor<Ascend>) -> Answer<Self> {
        let numbers =
            tensor.reshape(&[tensor.shape().elements()]).and_then(|flat| flat.narrow(0, 0..tensor.dims()[0]));
        let numbers = numbers.map_err(|error| failed(&error.to_string(), tensor))?;
        Descriptor::view_of(runtime, &numbers, bindings::ACL_INT64, 8, |_| {})
    }

    /// With dimensions and strides in another order: `turn` does the same with both.
    fn view(
        runtime: &Runtime,
        tensor: &Tensor<Ascend>,
        dtype: bindings::aclDataType,
        turn: impl Fn(&mut [i64]),
    ) -> Answer<Self> {
        Descriptor::view_of(runtime, tensor, dtype, tensor.dtype().size() as u64, turn)
    }

    /// The same of elements of another size.
    fn view_of(
        runtime: &Runtime,
        tensor: &Tensor<Ascend>,
        dtype: bindings::aclDataType,
        size: u64,
        turn: impl Fn(&mut [i64]),
    ) -> Answer<Self> {
        // Dimensions, strides and elements of an allocation are at most `i64::MAX`.
        let wide = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
        let (mut dims, mut strides) = (wide(tensor.dims()), wide(tensor.strides()));
        turn(&mut dims);
        turn(&mut strides);
        let (offset, storage) = ((tensor.offset() / size) as i64, (tensor.buffer().len() / size) as i64);
        let cann = runtime.enter()?;
        let create = function!(cann, aclCreateTensor)?;
        let (rank, data) = (dims.len() as u64, tensor.buffer().memory().raw());
        let nd = bindings::ACL_FORMAT_ND;
        // SAFETY: lists are as long as they are said to be and are copied; the view lies in the allocation, as every tensor.
        let raw = unsafe {
            create(dims.as_ptr(), rank, dtype, strides.as_ptr(), offset, nd, ptr::from_ref(&storage), 1, data)
        };
        if raw.is_null() {
            return Err(cann.error("aclCreateTensor", 0));
        }
        Ok(Descriptor { runtime: runtime.clone(), raw, listed: false, buffer: tensor.buffer().clone() })
    }

    /// Of a tensor `[.., a, b]` as `[.., b, a]`.
    pub(super) fn turned(runtime: &Runtime, tensor: &Tensor<Ascend>) -> Answer<Self> {
        Descriptor::view(runtime, tensor, type_of(tensor)?, |values| {
            if let [.., a, b] = values {
                std::mem::swap(a, b);
            }
        })
    }

    /// From now on a list owns the descriptor.
    pub(super) fn release(&mut self) {
        self.listed = true;
    }

    pub(super) fn raw(&self) -> *mut bindings::aclTensor {
        self.raw
    }

    pub(super) fn buffer(&self) -> &AscendBuffer {
        &self.buffer
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if !self.listed
            && let Ok(destroy) = function!(self.runtime.0.cann, aclDestroyTensor)
        {
            // SAFETY: it was made above, and nobody has it any more.
            unsafe { destroy(self.raw) };
        }
    }
}

/// A number of the host's as an operator takes it.
pub(super) struct Scalar {
    runtime: Runtime,
    raw: *mut bindings::aclScalar,
}

impl Scalar {
    pub(super) fn f32(runtime: &Runtime, mut value: f32) -> Answer<Self> {
        // SAFETY: the value is of the type that is named.
        unsafe { Scalar::of(runtime, ptr::from_mut(&mut value).cast(), bindings::ACL_FLOAT) }
    }

    pub(super) fn i32(runtime: &Runtime, mut value: i32) -> Answer<Self> {
        // SAFETY: the value is of the type that is named.
        unsafe { Scalar::of(runtime, ptr::from_mut(&mut value).cast(), bindings::ACL_INT32) }
    }

    /// # Safety
    ///
    /// A value of the type lies at `value`.
    unsafe fn of(
        runtime: &Runtime,
        value: *mut core::ffi::c_void,
        dtype: bindings::aclDataType,
    ) -> Answer<Self> {
        let cann = runtime.enter()?;
        let create = function!(cann, aclCreateScalar)?;
        // SAFETY: the caller's promise; the value is copied.
        let raw = unsafe { create(value, dtype) };
        if raw.is_null() {
            return Err(cann.error("aclCreateScalar", 0));
        }
        Ok(Scalar { runtime: runtime.clone(), raw })
    }

    pub(super) fn raw(&self) -> *mut bindings::aclScalar {
        self.raw
    }
}

impl Drop for Scalar {
    fn drop(&mut self) {
        if let Ok(destroy) = function!(self.runtime.0.cann, aclDestroyScalar) {
            // SAFETY: it was made with this handle, and no call that was not queued uses it.
            unsafe { destroy(self.raw) };
        }
    }
}
