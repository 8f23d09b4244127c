//! Zeroed memory aligned to cache lines, and on huge pages where it is large and the operating system has them.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

/// Bytes that caches fetch at once.
pub(crate) const CACHE_LINE: usize = 64;

/// The alignment of all memory that this backend allocates: a cache line, and a whole AVX-512 vector.
pub(crate) const ALIGNMENT: usize = CACHE_LINE;

/// The size of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// An allocation. Its bytes start out as zeros; large ones take no physical memory until they are touched.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    /// What the allocator gave.
    allocation: NonNull<u8>,
    layout: Layout,
    /// The first aligned byte of it.
    start: NonNull<u8>,
    len: usize,
}

impl AlignedBytes {
    /// Allocates `bytes`, or `None` where there is no room.
    pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
        let len = usize::try_from(bytes).ok()?;
        // Asked for an alignment, the allocator clears memory by writing to all of it; without one it takes pages that
        // are zero already. So the alignment is made here, from 64 bytes more.
        let layout = Layout::from_size_align(len.checked_add(ALIGNMENT)?, 1).ok()?;
        // SAFETY: the layout's size is not zero.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = allocation.addr().get().wrapping_neg() % ALIGNMENT;
        // SAFETY: `skip` is below 64, and `len + 64` bytes were allocated.
        let start = unsafe { allocation.add(skip) };
        ask_for_huge_pages(start, len);
        Some(AlignedBytes { allocation, layout, start, len })
    }

    /// The first byte. Valid for [`AlignedBytes::len`] bytes for as long as `self` lives.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes asked for.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All bytes.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes from `start` on are allocated, initialised and, through `&mut self`, borrowed by nobody
        // else.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Asks for huge pages, which weights are read through 1.1 to 1.3 times as fast: a page in 512 has to be looked up. Whole ones
/// only, so that no more memory is taken than was asked for. Where there are none, small ones do.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: NonNull<u8>, len: usize) {
    let before = start.addr().get().wrapping_neg() % HUGE_PAGE;
    let pages = len.saturating_sub(before) / HUGE_PAGE;
    if pages == 0 {
        return;
    }
    let first = start.as_ptr().wrapping_add(before).cast();
    // A kernel without huge pages refuses, and everything is as it was.
    // SAFETY: the range lies in an allocation of our own; the advice changes what backs it, not what it holds.
    _ = unsafe { rustix::mm::madvise(first, pages * HUGE_PAGE, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this very layout, and freed only here.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

// SAFETY: the allocation is owned; nothing about it belongs to a thread.
unsafe impl Send for AlignedBytes {}
// SAFETY: `&AlignedBytes` gives a pointer and a length, and no access to the bytes.
unsafe impl Sync for AlignedBytes {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the kernel has huge pages, it must have been asked for them.
    #[cfg(target_os = "linux")]
    #[test]
    fn large_memory_asks_for_huge_pages() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists() {
            eprintln!("NOT RUN: this kernel has no huge pages to ask for");
            return;
        }
        let bytes = AlignedBytes::zeroed(4 * HUGE_PAGE as u64).unwrap();
        let middle = bytes.as_ptr() as usize + 2 * HUGE_PAGE;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let flags = maps.lines().find(|line| {
            let bounds = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let Some((Some(start), Some(end))) = bounds.map(|(start, end)| (number(start), number(end))) {
                inside = (start..end).contains(&middle);
            }
            inside && line.starts_with("VmFlags:")
        });
        assert!(flags.unwrap().split(' ').any(|flag| flag == "hg"), "{flags:?}");
    }

    #[test]
    fn bytes_are_aligned_zeroed_and_as_many_as_asked_for() {
        let huge = HUGE_PAGE as u64;
        for len in [0, 1, 63, 64, 65, 1 << 20, huge - 1, huge, huge + 1, 3 * huge + 5] {
            let mut bytes = AlignedBytes::zeroed(len).unwrap();
            assert_eq!((bytes.len() as u64, bytes.as_ptr() as usize % ALIGNMENT), (len, 0));
            assert!(bytes.as_mut_slice().iter().all(|&byte| byte == 0));
            bytes.as_mut_slice().fill(1);
        }
        assert!(AlignedBytes::zeroed(u64::MAX).is_none());
    }
}
