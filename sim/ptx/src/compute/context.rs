//! An instruction's operands, lane by lane.

use crate::ir::{Predicate, Register, Source};
use crate::registers::{LANES, Lanes, Registers, Specials, operand};

/// A warp's registers, and the lanes that execute.
pub(super) struct Context<'a> {
    /// A bit a lane.
    pub(super) lanes: u32,
    pub(super) registers: &'a mut Registers,
    pub(super) specials: &'a Specials,
}

impl Context<'_> {
    /// A source's lanes.
    #[inline]
    pub(super) fn read(&self, source: Source) -> Lanes {
        self.registers.read(source, self.specials)
    }

    /// Writes the lanes that execute.
    #[inline]
    pub(super) fn write(&mut self, dst: Register, values: &Lanes) {
        self.registers.write(dst, self.lanes, values);
    }

    /// Writes the lanes that execute, of a predicate.
    #[inline]
    pub(super) fn write_predicate(&mut self, dst: Predicate, bits: u32) {
        self.registers.write_predicate(dst, self.lanes, bits);
    }

    /// `dst = f(a)`.
    // All lanes are computed, and the mask's are written: loops without branches become vector instructions.
    #[inline(always)]
    pub(super) fn unary(&mut self, dst: Register, a: Source, f: impl Fn(u64) -> u64) {
        let Registers { values, scratch: [scratch, ..], .. } = &mut *self.registers;
        let a = operand(values, a, self.specials, scratch);
        let mut result = [0; LANES];
        for (result, &a) in result.iter_mut().zip(a) {
            *result = f(a);
        }
        self.registers.write(dst, self.lanes, &result);
    }

    /// `dst = f(a, b)`.
    #[inline(always)]
    pub(super) fn binary(&mut self, dst: Register, a: Source, b: Source, f: impl Fn(u64, u64) -> u64) {
        let Registers { values, scratch: [scratch_a, scratch_b, _], .. } = &mut *self.registers;
        let a = operand(values, a, self.specials, scratch_a);
        let b = operand(values, b, self.specials, scratch_b);
        let mut result = [0; LANES];
        for (result, (&a, &b)) in result.iter_mut().zip(a.iter().zip(b)) {
            *result = f(a, b);
        }
        self.registers.write(dst, self.lanes, &result);
    }

    /// `dst = f(a, b, c)`.
    #[inline(always)]
    pub(super) fn ternary(
        &mut self,
        dst: Register,
        [a, b, c]: [Source; 3],
        f: impl Fn(u64, u64, u64) -> u64,
    ) {
        let Registers { values, scratch: [scratch_a, scratch_b, scratch_c], .. } = &mut *self.registers;
        let a = operand(values, a, self.specials, scratch_a);
        let b = operand(values, b, self.specials, scratch_b);
        let c = operand(values, c, self.specials, scratch_c);
        let mut result = [0; LANES];
        for (result, ((&a, &b), &c)) in result.iter_mut().zip(a.iter().zip(b).zip(c)) {
            *result = f(a, b, c);
        }
        self.registers.write(dst, self.lanes, &result);
    }

    /// A bit a lane: whether `f(a, b)` holds.
    #[inline(always)]
    pub(super) fn test(&mut self, a: Source, b: Source, f: impl Fn(u64, u64) -> bool) -> u32 {
        let Registers { values, scratch: [scratch_a, scratch_b, _], .. } = &mut *self.registers;
        let a = operand(values, a, self.specials, scratch_a);
        let b = operand(values, b, self.specials, scratch_b);
        a.iter().zip(b).rev().fold(0, |bits, (&a, &b)| bits << 1 | u32::from(f(a, b)))
    }
}

/// Applies a function of 16-bit values to both halves of a 32-bit one.
#[inline(always)]
pub(super) fn halves1(f: impl Fn(u64) -> u64) -> impl Fn(u64) -> u64 {
    move |a| f(a & 0xffff) | f(a >> 16 & 0xffff) << 16
}

/// The same with two operands.
#[inline(always)]
pub(super) fn halves2(f: impl Fn(u64, u64) -> u64) -> impl Fn(u64, u64) -> u64 {
    move |a, b| f(a & 0xffff, b & 0xffff) | f(a >> 16 & 0xffff, b >> 16 & 0xffff) << 16
}

/// The same with three.
#[inline(always)]
pub(super) fn halves3(f: impl Fn(u64, u64, u64) -> u64) -> impl Fn(u64, u64, u64) -> u64 {
    move |a, b, c| {
        let upper = f(a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff);
        f(a & 0xffff, b & 0xffff, c & 0xffff) | upper << 16
    }
}
