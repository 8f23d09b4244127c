//! Tiles of bytes: what a processor multiplies that has a unit for whole matrices, which is Intel's AMX today.
//!
//! Our INT8 operands lie as the unit wants them. A panel of weights, `[K / 4][32][4]` of unsigned bytes, is two tiles of
//! 16 columns side by side; activations are signed bytes, row after row, at any stride. So nothing is packed again, and
//! the sums are those of every other tier: integers, exact modulo 2^32.
//!
//! [`product`] cuts a product into tiles and knows no processor. It is generic over [`Tiles`], which has two
//! implementations: [`amx`] is one instruction an operation, and the tests' `model` is plain code that refuses what the
//! manual says the processor refuses. Few of those who change the one have the processor for the other.
//!
//! Bytes only. The unit multiplies BF16 too (TDPBF16PS), but takes subnormal numbers for zero, in operands and in sums, and
//! adds in an order of its own. Floats would have other bits than in the other tiers, and the few rows that go without the
//! unit other bits than the many that go with it.

// Elsewhere there is none, and nothing makes a `Matrix`.
#![cfg_attr(
    not(any(test, all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))),
    allow(dead_code, unused_variables)
)]

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
mod amx;
mod config;
mod detect;
#[cfg(test)]
mod model;
mod product;
mod self_test;

use config::Config;
pub(crate) use product::{DEPTH, Panel};

use super::LANES;

/// A matrix unit that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix(Unit);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
    Amx(amx::Amx),
    #[cfg(test)]
    Model,
}

impl Matrix {
    /// No unit, but what one does.
    #[cfg(test)]
    pub(crate) const MODEL: Self = Self(Unit::Model);

    /// The unit, if this processor has one, the operating system lends it and it multiplies right.
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
        {
            amx::Amx::detect().map(|amx| Self(Unit::Amx(amx)))
        }
        #[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux")))]
        {
            None
        }
    }

    /// Adds the products of as many rows as there are sums with a panel, modulo 2^32. Row `r` of the bytes begins at
    /// `r * stride`.
    ///
    /// # Panics
    /// Where the rows or the panel are too short.
    pub(crate) fn add(self, rows: &[i8], stride: usize, panel: Panel<'_>, sums: &mut [[[i32; LANES]; 2]]) {
        match self.0 {
            #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
            Unit::Amx(amx) => product::add::<amx::AmxTiles>(amx, rows, stride, panel, sums),
            #[cfg(test)]
            Unit::Model => product::add::<model::ModelTiles<{ model::RIGHT }>>((), rows, stride, panel, sums),
        }
    }
}

/// The tile registers of this thread: eight, of up to 16 rows of 64 bytes, in the shapes of a [`Config`].
trait Tiles: Sized {
    /// The proof that there are such registers.
    type Unit: Copy;

    /// Gives the registers their shapes and zeros in them. They go back when this is dropped.
    ///
    /// # Safety
    /// No other tiles of this thread are alive: there is one set of registers.
    unsafe fn configure(unit: Self::Unit, config: Config) -> Self;

    /// Reads a tile's rows, which begin `stride` bytes apart.
    ///
    /// # Panics
    /// Where `from` is too short.
    fn load<const TILE: usize>(&mut self, from: &[u8], stride: usize);

    /// Writes a tile's rows, which begin `stride` bytes apart.
    ///
    /// # Panics
    /// Where `to` is too short.
    fn store<const TILE: usize>(&mut self, to: &mut [u8], stride: usize);

    /// `C += A * B` in `i32` modulo 2^32, four bytes a sum at a time: those of `A` count as signed, those of `B` as
    /// unsigned. Row `k` of `B` has the bytes `4 k` to `4 k + 3` of its columns side by side.
    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self);
}

#[cfg(test)]
mod tests;
