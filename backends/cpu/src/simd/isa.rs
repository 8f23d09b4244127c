//! The operations every instruction set offers to kernels.

use half::{bf16, f16};

use super::Kernel;

/// Lanes of a vector, in every tier, so that tiles and packed layouts do not depend on the tier.
pub(crate) const LANES: usize = 16;

/// One bit a lane, lane 0 lowest.
pub(crate) type Mask = u16;

/// The mask of the first `n` lanes; all of them from 16 up.
#[inline(always)]
pub(crate) fn first_lanes(n: usize) -> Mask {
    if n >= LANES { Mask::MAX } else { (1 << n) - 1 }
}

/// A token for an instruction set, with vectors of 16 lanes.
///
/// Loads and stores called `_partial` take up to 16 elements: missing lanes read as zero and are not written; what a
/// longer slice holds beyond its first 16 elements is left alone.
///
/// Each operation is exact or rounded once, to nearest even, and so agrees between the tiers to the last bit, with one
/// exception: [`Isa::mul_add`] rounds twice in the portable tier and once in the others.
pub(crate) trait Isa: Copy + Send + Sync + 'static {
    /// 16 lanes of `f32`.
    type F32: Copy;
    /// 16 lanes of `i32`, which also stand for bits and for 4 bytes each.
    type I32: Copy;
    /// The most rows that a tile of 32 columns should have in this tier: what its registers hold.
    const TILE_ROWS: usize;

    /// Runs a kernel in a function of its own, with this instruction set enabled. A kernel that chooses between
    /// several big bodies calls them through here, so that each gets its own register allocation.
    fn call<K: Kernel>(self, kernel: K) -> K::Output;

    /// Asks for the cache line at `address`, which may be any address at all.
    fn prefetch(self, address: *const u8);

    // -- f32 ------------------------------------------------------------------------------------------------------

    /// The same value in all lanes.
    fn splat(self, x: f32) -> Self::F32;
    /// Reads 16 values.
    fn load(self, from: &[f32; LANES]) -> Self::F32;
    /// Reads up to 16 values; zero in the other lanes.
    fn load_partial(self, from: &[f32]) -> Self::F32;
    /// Reads 16 values and widens them exactly.
    fn load_bf16(self, from: &[bf16; LANES]) -> Self::F32;
    /// Reads up to 16 values and widens them exactly.
    fn load_bf16_partial(self, from: &[bf16]) -> Self::F32;
    /// Reads 16 values and widens them exactly.
    fn load_f16(self, from: &[f16; LANES]) -> Self::F32;
    /// Reads up to 16 values and widens them exactly.
    fn load_f16_partial(self, from: &[f16]) -> Self::F32;
    /// Writes 16 values.
    fn store(self, x: Self::F32, to: &mut [f32; LANES]);
    /// Writes the first `to.len()` values.
    fn store_partial(self, x: Self::F32, to: &mut [f32]);
    /// Narrows to nearest even and writes the first `to.len()` values. NaN stays NaN.
    fn store_bf16_partial(self, x: Self::F32, to: &mut [bf16]);
    /// Narrows to nearest even and writes the first `to.len()` values; beyond 65,504 infinity. NaN stays NaN.
    fn store_f16_partial(self, x: Self::F32, to: &mut [f16]);

    /// `a + b`
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b`
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`: multiplied and then added in the portable tier, fused in the others.
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// `if a > b { a } else { b }`: where either is NaN, `b`.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `if a < b { a } else { b }`: where either is NaN, `b`.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The value without its sign.
    fn abs(self, x: Self::F32) -> Self::F32;
    /// To the nearest integer, ties to even.
    fn round(self, x: Self::F32) -> Self::F32;
    /// `x * 2^n` with one rounding. `n` is an integer from -252 to 252 and `x` has no exponent beyond +-1.
    fn scale_by_power(self, x: Self::F32, n: Self::F32) -> Self::F32;

    /// Lanes where `a < b`; never where either is NaN.
    fn less(self, a: Self::F32, b: Self::F32) -> Mask;
    /// Lanes where `a == b`; never where either is NaN.
    fn equal(self, a: Self::F32, b: Self::F32) -> Mask;
    /// `yes` in the lanes of `mask`, `no` in the others.
    fn select(self, mask: Mask, yes: Self::F32, no: Self::F32) -> Self::F32;

    /// The sum of all lanes as a fixed tree: lane `i` with `i + 8`, then `i + 4`, `i + 2`, `i + 1`.
    fn sum(self, x: Self::F32) -> f32;
    /// The greatest lane, folded by [`Isa::max`] over the same tree as [`Isa::sum`].
    fn max_lane(self, x: Self::F32) -> f32;

    // -- i32 ------------------------------------------------------------------------------------------------------

    /// The same value in all lanes.
    fn splat_i32(self, x: i32) -> Self::I32;
    /// The same four bytes in all lanes, first byte lowest.
    #[inline(always)]
    fn splat_quad(self, x: [i8; 4]) -> Self::I32 {
        let [a, b, c, d] = x;
        self.splat_i32(i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]))
    }
    /// Reads 16 values.
    fn load_i32(self, from: &[i32; LANES]) -> Self::I32;
    /// Reads 16 times four bytes, each lane's first byte lowest.
    fn load_bytes(self, from: &[u8; 4 * LANES]) -> Self::I32;
    /// Reads up to 16 bytes and extends their signs.
    fn load_i8_partial(self, from: &[i8]) -> Self::I32;
    /// Writes 16 values.
    fn store_i32(self, x: Self::I32, to: &mut [i32; LANES]);
    /// Writes the first `to.len()` values.
    fn store_i32_partial(self, x: Self::I32, to: &mut [i32]);
    /// Narrows with saturation and writes the first `to.len()` values.
    fn store_i8_partial(self, x: Self::I32, to: &mut [i8]);

    /// `a + b` modulo 2^32.
    fn add_i32(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// `a - b` modulo 2^32.
    fn sub_i32(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise and.
    fn and(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Shifts left by `N` below 32, zeros coming in.
    fn shift_left<const N: u32>(self, a: Self::I32) -> Self::I32;
    /// Shifts right by `N` below 32, zeros coming in.
    fn shift_right<const N: u32>(self, a: Self::I32) -> Self::I32;
    /// The sum of all lanes modulo 2^32.
    fn sum_i32(self, x: Self::I32) -> i32;
    /// `acc + u0 * s0 + u1 * s1 + u2 * s2 + u3 * s3` a lane, exact modulo 2^32: the bytes of `u` count as unsigned,
    /// those of `s` as signed, and nothing saturates.
    fn dot_u8_i8(self, acc: Self::I32, u: Self::I32, s: Self::I32) -> Self::I32;

    // -- between them ---------------------------------------------------------------------------------------------

    /// To nearest even; a lane that `i32` cannot hold, NaN included, becomes `i32::MIN`.
    fn to_i32(self, x: Self::F32) -> Self::I32;
    /// To nearest even.
    fn to_f32(self, x: Self::I32) -> Self::F32;
    /// The bits of each lane.
    fn to_bits(self, x: Self::F32) -> Self::I32;
    /// The value with these bits.
    fn of_bits(self, x: Self::I32) -> Self::F32;
}
