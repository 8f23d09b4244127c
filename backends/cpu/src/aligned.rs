//! Zeroed memory aligned to cache lines.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

/// The alignment of all memory that this backend allocates: a cache line, and a whole AVX-512 vector.
pub(crate) const ALIGNMENT: usize = 64;

/// An allocation. Its bytes start out as zeros; large ones take no physical memory until they are touched.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    start: NonNull<u8>,
    layout: Layout,
}

impl AlignedBytes {
    /// Allocates `bytes`, or `None` where there is no room.
    pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
        // One byte at least, since an allocation of none has no address to free.
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(AlignedBytes { start, layout })
    }

    /// The first byte. Valid for [`AlignedBytes::len`] bytes for as long as `self` lives.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes allocated.
    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    /// All bytes.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is valid, initialised and, through `&mut self`, borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this very layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

// SAFETY: the allocation is owned; nothing about it belongs to a thread.
unsafe impl Send for AlignedBytes {}
// SAFETY: `&AlignedBytes` gives a pointer and a length, and no access to the bytes.
unsafe impl Sync for AlignedBytes {}
