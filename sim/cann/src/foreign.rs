//! What callers point at: arrays, texts and host memory. Everything else of C's comes as a number or a reference.

use std::ffi::{CStr, c_char};

use crate::runtime::error::{Failure, PARAMETER_NULL};

/// A copy of `count` values at `first`; null is an error unless `count` is 0.
pub(crate) fn array<T: Copy>(name: &str, first: *const T, count: u64) -> Result<Vec<T>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if first.is_null() {
        return Err(Failure::new(PARAMETER_NULL, format!("{name} is null, with {count} values promised")));
    }
    // SAFETY: as CANN's documents have it, the caller passes an array of `count` values.
    Ok(unsafe { std::slice::from_raw_parts(first, count as usize) }.to_vec())
}

/// A copy of a C text; null is none.
pub(crate) fn text(first: *const c_char) -> Option<String> {
    if first.is_null() {
        return None;
    }
    // SAFETY: as CANN's documents have it, the caller passes a text that ends in 0.
    Some(unsafe { CStr::from_ptr(first) }.to_string_lossy().into_owned())
}

/// A copy of host memory. Memory of this library's own is looked up before.
pub(crate) fn read_host(address: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // SAFETY: the caller of a copy owns the host memory that it names until the copy is done.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), length) };
    bytes
}

/// Writes host memory. Memory of this library's own is looked up before.
pub(crate) fn write_host(address: usize, bytes: &[u8]) {
    // SAFETY: the caller of a copy owns the host memory that it names until the copy is done.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
}
