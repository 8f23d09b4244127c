//! CANN's C interface: libraries that are opened at run time, and the functions of [`bindings`] in them.
//!
//! Which library has a function differs between releases of CANN, so each is looked for in all of them, and a function that
//! none has is an error where it is called, not where the libraries are opened: an operator that a release lacks is refused,
//! and the rest works.

#[allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unreachable_pub,
    clippy::all,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks,
    reason = "made by bindgen"
)]
pub(crate) mod bindings;
mod locate;

use std::{
    ffi::CStr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bindings::Functions;

use crate::runtime::RuntimeError;

/// What `aclInit` answers where the process has called it before.
const REPEATED: i32 = 100_002;

/// The opened libraries.
pub(crate) struct Cann(Vec<Functions>);

/// A function by its name, from the first library that has it.
macro_rules! function {
    ($cann:expr, $name:ident) => {
        $cann
            .find(|functions| functions.$name.as_ref().ok().copied())
            .ok_or($crate::runtime::RuntimeError::Function { name: stringify!($name) })
    };
}
pub(crate) use function;

impl Cann {
    /// Opens the libraries, those of a path where one is given, and initialises them, once a process.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Arc<Self>, RuntimeError> {
        static OPENED: Mutex<Vec<(Option<PathBuf>, Arc<Cann>)>> = Mutex::new(Vec::new());
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cann)) = opened.iter().find(|(known, _)| *known == path) {
            return Ok(cann.clone());
        }
        let cann = Arc::new(Cann(locate::open(path.as_deref())?));
        let init = function!(cann, aclInit)?;
        // SAFETY: no configuration is a null pointer.
        match unsafe { init(std::ptr::null()) } {
            // It is never finalised: whoever else uses CANN in this process may go on.
            0 | REPEATED => {}
            code => return Err(cann.error("aclInit", code)),
        }
        opened.push((path, cann.clone()));
        Ok(cann)
    }

    /// What the first library gives that has it.
    pub(crate) fn find<T>(&self, get: impl Fn(&Functions) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(get)
    }

    /// The error of a function's code, with the message that CANN keeps for the thread.
    pub(crate) fn error(&self, call: &'static str, code: i32) -> RuntimeError {
        let message = function!(self, aclGetRecentErrMsg).ok().and_then(|recent| {
            // SAFETY: it takes nothing; what it gives is null or a C string that lives until the thread's next call.
            let text = unsafe { recent() };
            // SAFETY: as above, and it is copied at once.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned())
        });
        RuntimeError::of_code(call, code, message.unwrap_or_default())
    }
}
