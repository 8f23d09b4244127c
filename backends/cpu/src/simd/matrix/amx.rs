//! Intel's AMX: the tile registers by their instructions.
//!
//! Stable Rust has no intrinsics for them and no way to enable them, so they stand here as assembly, one instruction a block,
//! so that a model can take the place of each. The language promises nothing about registers from one block to the next.
//! These hold because nobody else touches them: the compiler uses tile registers for its own AMX type only, which nothing
//! here has, and between two blocks no code but ours runs on the thread. The system keeps them over switches and signals.

use super::{Config, Tiles, detect, self_test};
use std::{arch::asm, marker::PhantomData, sync::OnceLock};

/// The proof that this process may use AMX. Only [`Amx::detect`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amx(());

impl Amx {
    /// The token, if the processor has AMX, the system lends it to this process and it multiplies right: found out once.
    pub(super) fn detect() -> Option<Self> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        let found = || detect::found() && self_test::passes::<AmxTiles>(Amx(()));
        FOUND.get_or_init(found).then_some(Amx(()))
    }
}

/// The tile registers of this thread, configured.
pub(super) struct AmxTiles {
    config: Config,
    /// Of this thread, and no other.
    here: PhantomData<*mut u8>,
}

/// Each instruction's text with its registers, so that the tests read the bytes of those that run.
macro_rules! text {
    (configure $from:literal) => {
        concat!("ldtilecfg [", $from, "]")
    };
    (load $from:literal $stride:literal) => {
        concat!("tileloadd tmm{tile}, [", $from, " + ", $stride, " * 1]")
    };
    (store $to:literal $stride:literal) => {
        concat!("tilestored [", $to, " + ", $stride, " * 1], tmm{tile}")
    };
    // The sums, the signed bytes, the unsigned bytes.
    (multiply) => {
        "tdpbsud tmm{c}, tmm{a}, tmm{b}"
    };
    (release) => {
        "tilerelease"
    };
}

impl Tiles for AmxTiles {
    type Unit = Amx;

    #[inline(always)]
    unsafe fn configure(_: Amx, config: Config) -> Self {
        // SAFETY: the token proves the instruction; it reads the 64 bytes of `config`, which is a valid one: palette 1 and
        // shapes within it. The caller promises that nobody's tiles are lost.
        unsafe {
            asm!(
                text!(configure "{from}"),
                from = in(reg) &raw const config,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, readonly),
            );
        }
        Self { config, here: PhantomData }
    }

    #[inline(always)]
    fn load<const TILE: usize>(&mut self, from: &[u8], stride: usize) {
        const { assert!(TILE < 8) };
        assert!(self.config.fits(TILE, from.len(), stride), "a tile beyond its operand");
        // SAFETY: the token proves the instruction, and `configure` gave the tile the shape that was checked above.
        unsafe {
            asm!(
                text!(load "{from}" "{stride}"),
                tile = const TILE, from = in(reg) from.as_ptr(), stride = in(reg) stride,
                options(nostack, preserves_flags, readonly),
            );
        }
    }

    #[inline(always)]
    fn store<const TILE: usize>(&mut self, to: &mut [u8], stride: usize) {
        const { assert!(TILE < 8) };
        assert!(self.config.fits(TILE, to.len(), stride), "a tile beyond its result");
        // SAFETY: as for `load`; the bytes written are those of `to`.
        unsafe {
            asm!(
                text!(store "{to}" "{stride}"),
                tile = const TILE, to = in(reg) to.as_mut_ptr(), stride = in(reg) stride,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        const { assert!(C < 8 && A < 8 && B < 8 && C != A && C != B && A != B) };
        // SAFETY: the token proves the instruction; no memory is touched. Shapes that do not go together end the process
        // and do nothing else; the model's tests refuse them.
        unsafe {
            asm!(
                text!(multiply),
                c = const C, a = const A, b = const B,
                options(nostack, preserves_flags, nomem),
            );
        }
    }
}

impl Drop for AmxTiles {
    #[inline(always)]
    fn drop(&mut self) {
        // So that the system has no registers of this thread to keep.
        // SAFETY: the token that `configure` took proves the instruction; the registers are ours until here.
        unsafe { asm!(text!(release), options(nostack, preserves_flags, nomem)) }
    }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
