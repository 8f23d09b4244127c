//! Whether this processor has AMX and this system lends it.

/// What the instruction CPUID answers, in its registers.
#[derive(Clone, Copy, Default)]
pub(super) struct Leaf {
    pub(super) eax: u32,
    pub(super) ebx: u32,
    pub(super) ecx: u32,
    pub(super) edx: u32,
}

/// Whether the processor multiplies bytes in tiles as large as ours, and the system keeps the registers. `leaf` answers
/// for a leaf and a subleaf, `xcr0` tells what the system keeps, and is asked only where there is such a register.
pub(super) fn processor_has(leaf: impl Fn(u32, u32) -> Leaf, xcr0: impl FnOnce() -> u64) -> bool {
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    if leaf(0, 0).eax < 0x1E || leaf(7, 0).edx & (TILE | INT8) != TILE | INT8 {
        return false;
    }
    let osxsave = leaf(1, 0).ecx & 1 << 27 != 0;
    // The state of tiles' shapes and of what is in them.
    if !osxsave || xcr0() & 0b11 << 17 != 0b11 << 17 {
        return false;
    }
    // Palette 1: bytes of a tile, bytes of a row, tiles, rows. And what may be multiplied: rows of the second operand,
    // bytes of its rows.
    let (palette, product) = (leaf(0x1D, 1), leaf(0x1E, 0));
    palette.eax >> 16 == 1024
        && palette.ebx == 8 << 16 | 64
        && palette.ecx & 0xFFFF == 16
        && product.ebx & 0xFF >= 16
        && product.ebx >> 8 & 0xFFFF >= 64
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
pub(super) fn found() -> bool {
    processor_has(system::leaf, system::xcr0) && system::lends()
}

/// What has to be asked for on Linux, x86-64.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
mod system {
    use super::Leaf;
    use std::arch::{asm, x86_64::__cpuid_count};

    pub(super) fn leaf(leaf: u32, subleaf: u32) -> Leaf {
        let got = __cpuid_count(leaf, subleaf);
        Leaf { eax: got.eax, ebx: got.ebx, ecx: got.ecx, edx: got.edx }
    }

    /// What the system keeps of each thread.
    pub(super) fn xcr0() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: called only where CPUID says that the system has enabled the instruction; it reads register 0.
        unsafe {
            asm!(
                "xgetbv",
                in("ecx") 0, out("eax") low, out("edx") high,
                options(nostack, nomem, preserves_flags),
            );
        }
        u64::from(high) << 32 | u64::from(low)
    }

    /// Asks Linux for the permission to use the tiles, without which the first instruction would end the process. It is the
    /// process's, for threads that are there and for those to come. Kernels before 5.16 do not know it, and one whose
    /// threads have too small a stack for signals refuses: both are answered by an error, and AMX is not there.
    pub(super) fn lends() -> bool {
        const ARCH_PRCTL: isize = 158;
        const REQUEST_PERMISSION: usize = 0x1023;
        const TILE_DATA: usize = 18;
        let answer: isize;
        // SAFETY: the system call reads no memory of ours and writes none; Linux changes rax, rcx and r11 alone.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") ARCH_PRCTL => answer,
                in("rdi") REQUEST_PERMISSION, in("rsi") TILE_DATA,
                lateout("rcx") _, lateout("r11") _,
                options(nostack),
            );
        }
        answer == 0
    }
}
