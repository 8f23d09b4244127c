//! What the driver answers, as our errors.

use std::ffi::{CStr, c_char};

use cudarc::driver::sys::{self, CUresult};

use super::DriverError;

/// What a call answered.
pub(super) fn answer(call: &'static str, result: CUresult) -> Result<(), DriverError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let meaning = text(sys::cuGetErrorString, result).unwrap_or_default();
    let code = text(sys::cuGetErrorName, result).unwrap_or_else(|| format!("{result:?}"));
    Err(DriverError::Call { call, code, meaning, sticky: is_sticky(result) })
}

/// Codes after which the context answers nothing else any more.
fn is_sticky(result: CUresult) -> bool {
    matches!(
        result,
        CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
            | CUresult::CUDA_ERROR_UNKNOWN
    )
}

fn text(of: unsafe fn(CUresult, *mut *const c_char) -> CUresult, result: CUresult) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the text has a place; a code came from the driver, so the driver is there.
    let known = unsafe { of(result, &raw mut text) } == CUresult::CUDA_SUCCESS && !text.is_null();
    // SAFETY: the driver's texts end with a NUL and live as long as the driver.
    known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Functions that not every driver has, or not by this name: asked for instead of assumed.
pub(super) mod describe {
    use super::{CUresult, DriverError, answer, sys};

    type ParameterInfo = unsafe extern "C" fn(sys::CUfunction, usize, *mut usize, *mut usize) -> CUresult;
    type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;

    /// Offset and size of each parameter of a kernel; `None` where the driver (before 12.4) does not tell them.
    pub(crate) fn parameters(function: sys::CUfunction) -> Option<Vec<(usize, usize)>> {
        // SAFETY: the driver is there, since the function came from it, and this is its function's type.
        let info = unsafe { sys::culib().get::<ParameterInfo>(b"cuFuncGetParamInfo\0") }.ok()?;
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is of a loaded module, and both numbers have a place.
            match unsafe { info(function, parameters.len(), &raw mut offset, &raw mut size) } {
                CUresult::CUDA_SUCCESS => parameters.push((offset, size)),
                // There is no parameter of this number.
                CUresult::CUDA_ERROR_INVALID_VALUE => return Some(parameters),
                _ => return None,
            }
        }
    }

    /// The time between two events. (The name that all drivers have: the newer one came with 12.8.)
    pub(crate) fn milliseconds(from: sys::CUevent, to: sys::CUevent) -> Result<f32, DriverError> {
        let mut milliseconds = 0.0;
        // SAFETY: the driver is there, since the events came from it, and this is its function's type.
        let result = match unsafe { sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime\0") } {
            // SAFETY: both events live, and the time has a place.
            Ok(elapsed) => unsafe { elapsed(&raw mut milliseconds, from, to) },
            Err(_) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        };
        answer("cuEventElapsedTime", result).map(|()| milliseconds)
    }
}
