//! Devices and contexts: each thread has a current context, and objects belong to the one they were made in.

use std::cell::Cell;
use std::sync::Mutex;

use super::device::require_initialized;
use super::error::{CONTEXT_NULL, DEVICE_ID, Failure, RUNTIME_PARAMETER, answer, lock, out};
use crate::handle::{Handle, Table};

/// How many devices there are.
const DEVICES: i32 = 1;

#[derive(Clone, Copy)]
pub(crate) struct Context {
    device: i32,
}

static CONTEXTS: Mutex<Table<Context>> = Mutex::new(Table::new("context", 1));
/// The context that `aclrtSetDevice` makes, and how often the device was set.
static PRIMARY: Mutex<(Handle, usize)> = Mutex::new((0, 0));

thread_local! {
    static CURRENT: Cell<Handle> = const { Cell::new(0) };
}

/// This thread's context, alive.
pub(crate) fn current() -> Result<Handle, Failure> {
    require_initialized()?;
    let handle = CURRENT.get();
    if handle == 0 {
        let text = "this thread has no context: aclrtSetDevice or aclrtSetCurrentContext comes first";
        return Err(Failure::new(CONTEXT_NULL, text));
    }
    lock(&CONTEXTS).get(handle, CONTEXT_NULL).map(|_| handle)
}

/// Forgets all contexts; names those that nobody destroyed.
pub(crate) fn clear() -> Option<String> {
    let (primary, _) = std::mem::take(&mut *lock(&PRIMARY));
    CURRENT.set(0);
    let mut contexts = lock(&CONTEXTS);
    if primary != 0 {
        // Gone with the process on a device as well.
        contexts.take(primary, CONTEXT_NULL).ok();
    }
    contexts.clear()
}

fn check_device(device: i32) -> Result<(), Failure> {
    require_initialized()?;
    if (0..DEVICES).contains(&device) {
        return Ok(());
    }
    Err(Failure::new(DEVICE_ID, format!("deviceId {device}, limit {DEVICES} devices")))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetDeviceCount(count: Option<&mut u32>) -> i32 {
    answer("aclrtGetDeviceCount", out("count", count).map(|count| *count = DEVICES as u32))
}

/// The number of AI cores (`attr` 101), which is 1; nothing else is known.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetDeviceInfo(device: u32, attr: i32, value: Option<&mut i64>) -> i32 {
    let get = || {
        check_device(i32::try_from(device).unwrap_or(-1))?;
        if attr != 101 {
            return Err(Failure::new(RUNTIME_PARAMETER, format!("attr {attr} is not modelled")));
        }
        *out("value", value)? = 1;
        Ok(())
    };
    answer("aclrtGetDeviceInfo", get())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSetDevice(device: i32) -> i32 {
    let set = || {
        check_device(device)?;
        let mut primary = lock(&PRIMARY);
        if primary.0 == 0 {
            primary.0 = lock(&CONTEXTS).add(Context { device });
        }
        primary.1 += 1;
        CURRENT.set(primary.0);
        Ok(())
    };
    answer("aclrtSetDevice", set())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtResetDevice(device: i32) -> i32 {
    let reset = || {
        check_device(device)?;
        let mut primary = lock(&PRIMARY);
        if primary.1 == 0 {
            return Err(Failure::new(RUNTIME_PARAMETER, format!("deviceId {device} was not set")));
        }
        primary.1 -= 1;
        if primary.1 == 0 {
            lock(&CONTEXTS).take(primary.0, CONTEXT_NULL)?;
            primary.0 = 0;
        }
        Ok(())
    };
    answer("aclrtResetDevice", reset())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetDevice(device: Option<&mut i32>) -> i32 {
    let get = || {
        let context = lock(&CONTEXTS).get(current()?, CONTEXT_NULL)?;
        *out("deviceId", device)? = context.device;
        Ok(())
    };
    answer("aclrtGetDevice", get())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtCreateContext(context: Option<&mut Handle>, device: i32) -> i32 {
    let create = || {
        check_device(device)?;
        let handle = lock(&CONTEXTS).add(Context { device });
        CURRENT.set(handle);
        *out("context", context)? = handle;
        Ok(())
    };
    answer("aclrtCreateContext", create())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtDestroyContext(context: Handle) -> i32 {
    let destroy = || {
        if context == lock(&PRIMARY).0 {
            let text = "the context that aclrtSetDevice made goes with aclrtResetDevice";
            return Err(Failure::new(RUNTIME_PARAMETER, text));
        }
        lock(&CONTEXTS).take(context, RUNTIME_PARAMETER)?;
        if CURRENT.get() == context {
            CURRENT.set(0);
        }
        Ok(())
    };
    answer("aclrtDestroyContext", destroy())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSetCurrentContext(context: Handle) -> i32 {
    let set = lock(&CONTEXTS).get(context, RUNTIME_PARAMETER).map(|_| CURRENT.set(context));
    answer("aclrtSetCurrentContext", set)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetCurrentContext(context: Option<&mut Handle>) -> i32 {
    let get = || {
        let handle = current()?;
        *out("context", context)? = handle;
        Ok(())
    };
    answer("aclrtGetCurrentContext", get())
}
