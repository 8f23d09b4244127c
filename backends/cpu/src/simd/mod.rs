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
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod features;
mod isa;
pub(crate) mod math;
pub(crate) mod matrix;
mod portable;
mod soft_cap;
mod stored;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
use features::Features;
pub(crate) use isa::{Isa, LANES, Mask, first_lanes};
use matrix::Matrix;
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

/// An instruction set that this machine has, chosen at run time, and the unit for whole matrices that goes with it.
///
/// Results are the same to the last bit for the same tier. The four tiers of x86-64 agree too; the portable one differs
/// from them by rounding, because they fuse multiply and add and it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier(Token, Option<Matrix>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2<false>),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(Avx2<true>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// The token of an instruction set that only x86-64 has, if this machine has it.
macro_rules! detected {
    ($token:ident, $isa:ty) => {{
        #[cfg(target_arch = "x86_64")]
        {
            <$isa>::detect().map(|token| Self(Token::$token(token), None))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            None
        }
    }};
}

impl Tier {
    /// Plain Rust, on every machine.
    pub const PORTABLE: Self = Self(Token::Portable(Portable), None);

    /// The names of all tiers, slowest first, whether or not this machine has them.
    pub const NAMES: [&str; 5] = ["portable", "avx2", "avx-vnni", "avx512", "amx"];

    /// AVX2 with FMA and F16C, if this CPU and its operating system have it.
    #[must_use]
    pub fn avx2() -> Option<Self> {
        detected!(Avx2, Avx2<false>)
    }

    /// AVX2 with AVX-VNNI, if this CPU and its operating system have it.
    #[must_use]
    pub fn avx_vnni() -> Option<Self> {
        detected!(AvxVnni, Avx2<true>)
    }

    /// AVX-512 with VNNI, if this CPU and its operating system have it.
    #[must_use]
    pub fn avx512() -> Option<Self> {
        detected!(Avx512, Avx512)
    }

    /// [`Tier::avx512`] with AMX for INT8 products of many rows, if this CPU and its operating system have both. It is asked
    /// for and tried at the first call: it must compute what plain code computes.
    #[must_use]
    pub fn amx() -> Option<Self> {
        let Self(token, _) = Self::avx512()?;
        Some(Self(token, Some(Matrix::detect()?)))
    }

    /// With the model of a matrix unit.
    #[cfg(test)]
    pub(crate) fn with_model(self) -> Self {
        Self(self.0, Some(Matrix::MODEL))
    }

    /// The unit for products of bytes that have many rows.
    pub(crate) fn matrix(self) -> Option<Matrix> {
        self.1
    }

    /// The fastest tier of this machine.
    #[must_use]
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self::PORTABLE)
    }

    /// Every tier of this machine, slowest first; tests go through all of them.
    pub fn available() -> impl Iterator<Item = Self> {
        Features::detected().tiers().chain(["amx"]).filter_map(Self::named)
    }

    /// The tier of this name, one of [`Tier::NAMES`], if this machine has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "portable" => Some(Self::PORTABLE),
            "avx2" => Self::avx2(),
            "avx-vnni" => Self::avx_vnni(),
            "avx512" => Self::avx512(),
            "amx" => Self::amx(),
            _ => None,
        }
    }

    /// The tier's name, one of [`Tier::NAMES`].
    #[must_use]
    pub fn name(self) -> &'static str {
        if self.1.is_some() {
            return "amx";
        }
        match self.0 {
            Token::Portable(_) => "portable",
            #[cfg(target_arch = "x86_64")]
            Token::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Token::AvxVnni(_) => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            Token::Avx512(_) => "avx512",
        }
    }

    /// Runs a kernel with this tier's instructions.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Token::Portable(isa) => isa.call(kernel),
            #[cfg(target_arch = "x86_64")]
            Token::Avx2(isa) => isa.call(kernel),
            #[cfg(target_arch = "x86_64")]
            Token::AvxVnni(isa) => isa.call(kernel),
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
mod function;
#[cfg(test)]
pub(crate) mod random;
#[cfg(test)]
mod tests;
