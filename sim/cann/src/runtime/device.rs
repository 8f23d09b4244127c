//! Begin and end, versions, and what the device says of itself.

use std::ffi::c_char;
use std::sync::Mutex;

use super::error::{Failure, LEAK, REPEATED_INITIALIZATION, UNINITIALIZED, answer, lock, out};
use super::{capture, context, event, memory, stream};
use crate::{descriptor, settings};

static INITIALIZED: Mutex<bool> = Mutex::new(false);

/// `aclInit` came before.
pub(crate) fn require_initialized() -> Result<(), Failure> {
    if *lock(&INITIALIZED) {
        return Ok(());
    }
    Err(Failure::new(UNINITIALIZED, "aclInit comes first"))
}

/// True between `aclInit` and `aclFinalize`.
pub(crate) fn is_initialized() -> bool {
    *lock(&INITIALIZED)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclInit(_config: *const c_char) -> i32 {
    let init = || {
        let mut initialized = lock(&INITIALIZED);
        if *initialized {
            return Err(Failure::new(REPEATED_INITIALIZATION, "called twice"));
        }
        settings::read_environment()?;
        *initialized = true;
        Ok(())
    };
    answer("aclInit", init())
}

/// Ends, and tells what is left: memory, streams, events, descriptors, executors.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclFinalize() -> i32 {
    let finalize = || {
        require_initialized()?;
        let mut left = Vec::new();
        left.extend(stream::clear());
        left.extend(capture::clear());
        left.extend(event::clear());
        left.extend(descriptor::clear());
        left.extend(memory::clear());
        left.extend(context::clear());
        settings::reset();
        *lock(&INITIALIZED) = false;
        if left.is_empty() {
            return Ok(());
        }
        Err(Failure::new(LEAK, format!("leaked: {}", left.join("; "))))
    };
    answer("aclFinalize", finalize())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnInit(_config: *const c_char) -> i32 {
    answer("aclnnInit", require_initialized())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnFinalize() -> i32 {
    answer("aclnnFinalize", require_initialized())
}

/// The interface's version, which is not CANN's.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetVersion(
    major: Option<&mut i32>,
    minor: Option<&mut i32>,
    patch: Option<&mut i32>,
) -> i32 {
    let get = || {
        *out("majorVersion", major)? = 1;
        *out("minorVersion", minor)? = 0;
        *out("patchVersion", patch)? = 0;
        Ok(())
    };
    answer("aclrtGetVersion", get())
}

/// No chip of Huawei's: reports and benchmarks can tell.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetSocName() -> *const c_char {
    c"cann-standin".as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::error::{CONTEXT_NULL, DEVICE_ID};
    use crate::testing::{Session, alone, message};

    #[test]
    fn the_order_of_a_life_is_kept() {
        let _alone = alone();
        assert_eq!(context::aclrtSetDevice(0), UNINITIALIZED);
        assert_eq!(aclFinalize(), UNINITIALIZED);
        assert_eq!(aclInit(std::ptr::null()), 0);
        assert_eq!(aclInit(std::ptr::null()), REPEATED_INITIALIZATION);
        assert_eq!(message(), "aclInit: called twice");
        assert_eq!(context::aclrtSetDevice(7), DEVICE_ID);
        assert_eq!(message(), "aclrtSetDevice: deviceId 7, limit 1 devices");
        assert_eq!(stream::aclrtCreateStream(Some(&mut 0)), CONTEXT_NULL);
        assert_eq!(aclFinalize(), 0);
    }

    #[test]
    fn leaks_are_told_at_the_end() {
        let _alone = alone();
        assert_eq!(aclInit(std::ptr::null()), 0);
        assert_eq!(context::aclrtSetDevice(0), 0);
        let mut address = 0;
        assert_eq!(memory::aclrtMalloc(Some(&mut address), 100, 0), 0);
        let mut event = 0;
        assert_eq!(event::aclrtCreateEvent(Some(&mut event)), 0);
        assert_eq!(aclFinalize(), LEAK);
        assert_eq!(message(), "aclFinalize: leaked: 1 of event; 1 device allocation of 100 bytes");
    }

    #[test]
    fn it_says_what_it_is() {
        let _session = Session::new();
        // SAFETY: a text of this library.
        let name = unsafe { std::ffi::CStr::from_ptr(aclrtGetSocName()) };
        assert_eq!(name, c"cann-standin");
    }
}
