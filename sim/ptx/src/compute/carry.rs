//! Arithmetic with the carry flag: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.

use super::context::Context;
use crate::ir::{CarryOp, Register, Source, Type};
use crate::registers::{LANES, ones, sign_extended};

/// Which carry an instruction reads, and whether it sets it.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// The flag is a carry after sums, a borrow after differences.
pub(super) fn execute(
    context: &mut Context<'_>,
    op: CarryOp,
    ty: Type,
    flags: Flags,
    dst: Register,
    sources: [Source; 3],
) {
    let bits = ty.bits();
    let all = u128::from(ones(bits));
    let [a, b, c] = sources.map(|source| context.read(source));
    let carry_in = if flags.reads { context.registers.carry } else { 0 };
    let mut carry_out = 0;
    let mut result = [0; LANES];
    for lane in 0..LANES {
        let carry = u128::from(carry_in >> lane & 1);
        let (x, y) = (u128::from(a[lane]) & all, u128::from(b[lane]) & all);
        let sum = match op {
            CarryOp::Add => x + y + carry,
            // Below zero every bit above the value is one: the borrow.
            CarryOp::Subtract => x.wrapping_sub(y + carry),
            CarryOp::MultiplyAddLow => (x.wrapping_mul(y) & all) + (u128::from(c[lane]) & all) + carry,
            CarryOp::MultiplyAddHigh => {
                let product = if ty.is_signed() {
                    let wide = |x: u64| i128::from(sign_extended(x, bits));
                    wide(a[lane]).wrapping_mul(wide(b[lane])) as u128
                } else {
                    x.wrapping_mul(y)
                };
                (product >> bits & all) + (u128::from(c[lane]) & all) + carry
            }
        };
        carry_out |= u32::from(sum >> bits & 1 != 0) << lane;
        result[lane] = (sum & all) as u64;
    }
    if flags.writes {
        context.registers.carry = context.registers.carry & !context.lanes | carry_out & context.lanes;
    }
    context.write(dst, &result);
}
