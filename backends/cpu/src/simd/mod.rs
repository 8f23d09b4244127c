//! One source of each kernel, for every instruction set.
//!
//! A kernel is written once, generic over a token that implements [`Isa`]. The token is the proof that the
//! instructions exist: nobody can make an [`Avx512`] except by asking the CPU. [`Tier`] is the run-time choice
//! between the tokens and [`Tier::run`] is the only door from ordinary code into a kernel.
//!
//! ```text
//! struct Scale<'a> { x: &'a mut [f32], by: f32 }
//! impl Kernel for Scale<'_> {
//!     type Output = ();
//!     #[inline(always)]                                    // into the function that enables the instructions
//!     fn run<I: Isa>(self, isa: I) { ... isa.mul(...) ... }
//! }
//! tier.run(Scale { x, by: 2.0 });
//! ```
//!
//! Two rules keep the instructions in:
//! - `run`, and every generic function it calls in a hot loop, is `#[inline(always)]` or entered by [`Isa::call`].
//! - A kernel does not spawn and hands no closure to code that may not be inlined (the team, sorting): what runs there
//!   would be compiled without the instructions. Parallel loops stand outside and call [`Tier::run`] in each task.

pub(crate) mod activation;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod isa;
pub(crate) mod math;
mod portable;
mod soft_cap;
mod stored;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use isa::{Isa, LANES, Mask, first_lanes};
pub(crate) use portable::Portable;
pub(crate) use soft_cap::SoftCap;
pub(crate) use stored::StoredFloat;

/// A computation that is compiled once for every instruction set.
pub(crate) trait Kernel {
    /// What the kernel returns.
    type Output;

    /// The computation. Implementations are `#[inline(always)]`.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// An instruction set that this machine has, chosen at run time.
///
/// Results are the same to the last bit for the same tier; between tiers they differ by rounding, because AVX-512
/// fuses multiply and add and the portable tier does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier(Token);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Tier {
    /// Plain Rust, on every machine.
    pub const PORTABLE: Self = Self(Token::Portable(Portable));

    /// AVX-512 with VNNI, if this CPU and its operating system have it.
    #[must_use]
    pub fn avx512() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            Avx512::detect().map(|token| Self(Token::Avx512(token)))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            None
        }
    }

    /// The fastest tier of this machine.
    #[must_use]
    pub fn best() -> Self {
        Self::avx512().unwrap_or(Self::PORTABLE)
    }

    /// Every tier of this machine, slowest first; tests go through all of them.
    pub fn available() -> impl Iterator<Item = Self> {
        [Some(Self::PORTABLE), Self::avx512()].into_iter().flatten()
    }

    /// The tier's name: `portable` or `avx512`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Token::Portable(_) => "portable",
            #[cfg(target_arch = "x86_64")]
            Token::Avx512(_) => "avx512",
        }
    }

    /// Runs a kernel with this tier's instructions.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Token::Portable(isa) => isa.call(kernel),
            #[cfg(target_arch = "x86_64")]
            Token::Avx512(isa) => isa.call(kernel),
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
pub(crate) mod random;
#[cfg(test)]
mod tests;
