//! Failures: CANN's codes with a text that names function, argument, what came and what is allowed.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `ACL_SUCCESS`.
pub(crate) const SUCCESS: i32 = 0;
/// `ACL_ERROR_INVALID_PARAM`.
pub(crate) const INVALID_PARAM: i32 = 100_000;
/// `ACL_ERROR_UNINITIALIZE`.
pub(crate) const UNINITIALIZED: i32 = 100_001;
/// `ACL_ERROR_REPEAT_INITIALIZE`.
pub(crate) const REPEATED_INITIALIZATION: i32 = 100_002;
/// `ACL_ERROR_RT_PARAM_INVALID`.
pub(crate) const RUNTIME_PARAMETER: i32 = 107_000;
/// `ACL_ERROR_RT_INVALID_DEVICEID`.
pub(crate) const DEVICE_ID: i32 = 107_001;
/// `ACL_ERROR_RT_CONTEXT_NULL`.
pub(crate) const CONTEXT_NULL: i32 = 107_002;
/// `ACL_ERROR_RT_STREAM_CONTEXT`.
pub(crate) const STREAM_CONTEXT: i32 = 107_003;
/// `ACL_ERROR_RT_STREAM_CAPTURED`.
pub(crate) const STREAM_CAPTURED: i32 = 107_027;
/// `ACL_ERROR_RT_STREAM_NOT_CAPTURED`.
pub(crate) const STREAM_NOT_CAPTURED: i32 = 107_029;
/// `ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT`.
pub(crate) const FORBIDDEN_IN_CAPTURE: i32 = 107_030;
/// `ACL_ERROR_STREAM_TASK_GROUP_STATUS`.
pub(crate) const TASK_GROUP_STATUS: i32 = 107_033;
/// `ACL_ERROR_RT_MODEL_RUNNING`.
pub(crate) const MODEL_RUNNING: i32 = 107_037;
/// `ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD`.
pub(crate) const CAPTURE_WRONG_THREAD: i32 = 107_038;
/// `ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED`.
pub(crate) const LEAK: i32 = 148_051;
/// `ACLNN_ERR_PARAM_NULLPTR`.
pub(crate) const PARAMETER_NULL: i32 = 161_001;
/// `ACLNN_ERR_PARAM_INVALID`.
pub(crate) const PARAMETER_INVALID: i32 = 161_002;
/// `ACL_ERROR_RT_MEMORY_ALLOCATION`.
pub(crate) const OUT_OF_MEMORY: i32 = 207_001;
/// `ACL_ERROR_RT_NO_EVENT_RESOURCE`.
pub(crate) const NO_EVENT: i32 = 207_007;
/// `ACLNN_ERR_RUNTIME_ERROR`.
pub(crate) const RUNTIME_ERROR: i32 = 361_001;
/// `ACL_ERROR_RT_AICORE_EXCEPTION`.
pub(crate) const AICORE_EXCEPTION: i32 = 507_015;
/// `ACL_ERROR_RT_STREAM_SYNC_TIMEOUT`.
pub(crate) const STREAM_TIMEOUT: i32 = 507_046;
/// `ACL_ERROR_RT_EVENT_SYNC_TIMEOUT`.
pub(crate) const EVENT_TIMEOUT: i32 = 507_047;
/// `ACLNN_ERR_INNER_TILING_ERROR`: a shape or an attribute that the kernel does not do.
pub(crate) const TILING: i32 = 561_002;
/// `ACLNN_ERR_INNER_NULLPTR`, which some documents have for shapes and attributes.
pub(crate) const INNER_NULL: i32 = 561_103;
/// `ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND`: the operator's package is not installed.
pub(crate) const PACKAGE_MISSING: i32 = 561_112;

/// A code and its text.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The same, told by the function that met it.
    pub(crate) fn within(self, function: &str) -> Self {
        Self { code: self.code, text: format!("{function}: {}", self.text) }
    }
}

thread_local! {
    static RECENT: RefCell<Option<CString>> = const { RefCell::new(None) };
    /// What `aclGetRecentErrMsg` handed out last; callers may read it until the next call.
    static TOLD: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// The code that a C function returns; a failure leaves its text with the calling thread.
pub(crate) fn answer(function: &str, result: Result<(), Failure>) -> i32 {
    match result {
        Ok(()) => SUCCESS,
        Err(failure) => {
            let Failure { code, text } = failure.within(function);
            let text = CString::new(text.replace('\0', " ")).ok();
            RECENT.with(|recent| *recent.borrow_mut() = text);
            code
        }
    }
}

/// The text of this thread's last failure, once; null if there was none since.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    let text = RECENT.with(|recent| recent.borrow_mut().take());
    TOLD.with(|told| {
        *told.borrow_mut() = text;
        told.borrow().as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
    })
}

/// Locks; a panic elsewhere leaves nothing half done that matters here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place that a result goes to.
pub(crate) fn out<'a, T>(name: &str, place: Option<&'a mut T>) -> Result<&'a mut T, Failure> {
    place.ok_or_else(|| Failure::new(RUNTIME_PARAMETER, format!("{name} is null")))
}
