//! `atom` and `red`.

use super::access::find;
use crate::compute::half;
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, AtomicOp, Order, Register, Source, Space, Type};
use crate::registers::{LANES, Lanes, ones, sign_extended};
use crate::step::{Step, each};

/// An atomic operation and its operands.
pub(crate) struct Atomic {
    pub(crate) space: Space,
    pub(crate) op: AtomicOp,
    pub(crate) ty: Type,
    pub(crate) order: Order,
    pub(crate) dst: Option<Register>,
    pub(crate) address: Address,
    pub(crate) b: Source,
    pub(crate) c: Option<Source>,
}

impl Step<'_> {
    /// The lanes in order, each by itself: what the hardware does in some order.
    pub(crate) fn atomic(&mut self, atomic: &Atomic) -> Result<(), Box<Problem>> {
        let (op, ty) = (atomic.op, atomic.ty);
        // Asked once, so that `apply` cannot fail afterwards.
        if apply(op, ty, true, 0, 0, 0).is_none() {
            let what = format!("an atomic {op:?} of {ty:?}");
            return Err(Problem::at(0, FaultKind::Unsupported(what)));
        }
        let mut addresses = self.addresses(atomic.address);
        let b = self.registers.read(atomic.b, self.specials);
        let c = atomic.c.map_or([0; LANES], |c| self.registers.read(c, self.specials));
        if matches!(atomic.order, Order::Release | Order::AcquireRelease) {
            self.order(atomic.order);
        }
        if atomic.space == Space::Generic {
            for (space, lanes) in self.split(&mut addresses) {
                if lanes != 0 {
                    self.atomic_in(space, lanes, &addresses, atomic, &b, &c)?;
                }
            }
        } else {
            self.atomic_in(atomic.space, self.lanes, &addresses, atomic, &b, &c)?;
        }
        if matches!(atomic.order, Order::Acquire | Order::AcquireRelease) {
            self.order(atomic.order);
        }
        Ok(())
    }

    fn atomic_in(
        &mut self,
        space: Space,
        lanes: u32,
        addresses: &Lanes,
        atomic: &Atomic,
        b: &Lanes,
        c: &Lanes,
    ) -> Result<(), Box<Problem>> {
        let (op, ty) = (atomic.op, atomic.ty);
        let width = ty.bytes();
        if self.state.tally.on {
            match space {
                Space::Shared => self.state.tally.shared(self.pc, lanes, addresses, width),
                Space::Global => self.state.tally.global(self.pc, lanes, addresses, width),
                _ => {}
            }
        }
        let mut known = None;
        for lane in each(lanes) {
            let address = addresses[lane];
            let global = matches!(space, Space::Global | Space::Generic);
            let new = |old| apply(op, ty, global, old, b[lane], c[lane]).unwrap_or(old) & ones(8 * width);
            let old = match space {
                Space::Global | Space::Generic => {
                    let memory = self.launch.memory;
                    let allocation = find(memory, &mut known, lane, address, width, Access::Atomic)?;
                    if let Some(address) = allocation.unwritten(address, u64::from(width)) {
                        self.state.finding(lane, FaultKind::Uninitialised { space: Space::Global, address });
                    }
                    if width == 8 {
                        let _guard = memory.lock(address);
                        let old = allocation.load(address, 8);
                        allocation.store(address, 8, new(old));
                        old
                    } else {
                        let shift = 8 * (address % 4) as u32;
                        let keep = !((ones(8 * width) as u32) << shift);
                        let word = allocation.change(address, |word| {
                            let old = u64::from(word & !keep) >> shift;
                            word & keep | (new(old) as u32) << shift
                        });
                        allocation.mark(address - allocation.start, u64::from(width));
                        u64::from(word & !keep) >> shift
                    }
                }
                Space::Shared => {
                    let check = self.state.shared.check(address, width, width, Access::Atomic);
                    check.map_err(|kind| Problem::at(lane, kind))?;
                    if self.state.shared.is_checked() {
                        if let Some(kind) = self.state.shared.uninitialised(address, width) {
                            self.state.finding(lane, kind);
                        }
                        self.note_write(lane, address, width, Access::Atomic, true, false);
                    }
                    let old = self.state.shared.load(address, width);
                    self.state.shared.store(address, width, new(old));
                    old
                }
                _ => {
                    let what = "an atomic operation outside global and shared memory".to_owned();
                    return Err(Problem::at(lane, FaultKind::Unsupported(what)));
                }
            };
            if let Some(dst) = atomic.dst {
                self.registers.values[dst.0 as usize][lane] = old;
            }
        }
        Ok(())
    }
}

/// The new value; `None` where PTX has no such operation. `global`: `add.f32` in global memory flushes subnormal numbers
/// to zeros of their sign, as the PTX manual says.
fn apply(op: AtomicOp, ty: Type, global: bool, old: u64, b: u64, c: u64) -> Option<u64> {
    if ty.is_float() {
        return match op {
            AtomicOp::Add => add(ty, global, old, b),
            AtomicOp::Exchange => Some(b),
            AtomicOp::CompareAndSwap => Some(if old == b { c } else { old }),
            _ => None,
        };
    }
    let signed = |value: u64| sign_extended(value, ty.bits());
    let b = b & ones(ty.bits());
    Some(match op {
        AtomicOp::Add => old.wrapping_add(b),
        AtomicOp::Minimum if ty.is_signed() => signed(old).min(signed(b)) as u64,
        AtomicOp::Maximum if ty.is_signed() => signed(old).max(signed(b)) as u64,
        AtomicOp::Minimum => old.min(b),
        AtomicOp::Maximum => old.max(b),
        AtomicOp::And => old & b,
        AtomicOp::Or => old | b,
        AtomicOp::Xor => old ^ b,
        AtomicOp::Exchange => b,
        AtomicOp::CompareAndSwap => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomicOp::Increment => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Decrement => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
    })
}

fn add(ty: Type, global: bool, old: u64, b: u64) -> Option<u64> {
    let pair = |of: fn(u64, u64) -> u64| of(old & 0xffff, b & 0xffff) | of(old >> 16, b >> 16) << 16;
    Some(match ty {
        Type::F32 => {
            let flushed = |x: f32| if global && x.is_subnormal() { 0f32.copysign(x) } else { x };
            let sum = flushed(f32::from_bits(old as u32)) + flushed(f32::from_bits(b as u32));
            u64::from(flushed(sum).to_bits())
        }
        Type::F64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        Type::F16 => half::sum::<false>(old, b),
        Type::BF16 => half::sum::<true>(old, b),
        Type::F16x2 => pair(half::sum::<false>),
        Type::BF16x2 => pair(half::sum::<true>),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::half::{bf16, f16};

    #[test]
    fn integers_by_their_types() {
        let apply = |op, ty, old, b| apply(op, ty, true, old, b, 0).unwrap() & ones(ty.bits());
        assert_eq!(apply(AtomicOp::Add, Type::U32, 0xffff_ffff, 2), 1);
        assert_eq!(apply(AtomicOp::Minimum, Type::S32, 0xffff_fffe, 3), 0xffff_fffe);
        assert_eq!(apply(AtomicOp::Minimum, Type::U32, 0xffff_fffe, 3), 3);
        assert_eq!(apply(AtomicOp::Maximum, Type::S64, u64::MAX, 3), 3);
        assert_eq!(apply(AtomicOp::Increment, Type::U32, 4, 5), 5);
        assert_eq!(apply(AtomicOp::Increment, Type::U32, 5, 5), 0);
        assert_eq!(apply(AtomicOp::Decrement, Type::U32, 0, 5), 5);
        assert_eq!(apply(AtomicOp::Decrement, Type::U32, 7, 5), 5);
        assert_eq!(apply(AtomicOp::Decrement, Type::U32, 3, 5), 2);
    }

    #[test]
    fn floats_round_to_nearest_even() {
        let tiny = u64::from(1e-40f32.to_bits());
        assert_eq!(add(Type::F32, true, tiny, tiny), Some(0));
        assert_ne!(add(Type::F32, false, tiny, tiny), Some(0));
        // 2048 + 1 is half-way between f16 numbers: to the even one; 2048 + 3 too.
        let f = |x: f32| u64::from(f16::from_f32(x).to_bits());
        assert_eq!(add(Type::F16, true, f(2048.0), f(1.0)), Some(f(2048.0)));
        assert_eq!(add(Type::F16, true, f(2048.0), f(3.0)), Some(f(2052.0)));
        let b = |x: f32| u64::from(bf16::from_f32(x).to_bits());
        assert_eq!(add(Type::BF16, true, b(256.0), b(1.0)), Some(b(256.0)));
        assert_eq!(add(Type::BF16, true, b(256.0), b(3.0)), Some(b(260.0)));
        // Just above half-way, by what f32 cannot hold.
        assert_eq!(add(Type::BF16, true, b(256.0), b(1.0 + 1.0 / 128.0)), Some(b(258.0)));
        assert_eq!(
            add(Type::F16x2, true, f(1.0) | f(2.0) << 16, f(3.0) | f(4.0) << 16),
            Some(f(4.0) | f(6.0) << 16)
        );
    }
}
