//! What the lanes of a warp tell each other: `shfl`, `vote`, `match`, `redux`, `elect`.

use super::context::Context;
use super::{ComputeError, unsupported};
use crate::ir::{AtomicOp, Predicate, PredicateSource, Register, ShuffleMode, Source, Type, VoteMode};
use crate::registers::{LANES, Lanes};

/// The member masks of the lanes that execute; each lane must be named by its own.
fn members(context: &Context<'_>, source: Source) -> Result<Lanes, ComputeError> {
    let members = context.read(source);
    for (lane, &mask) in members.iter().enumerate() {
        if context.lanes >> lane & 1 == 1 && mask >> lane & 1 == 0 {
            return Err(ComputeError::NotAMember { lane: lane as u32, members: mask as u32 });
        }
    }
    Ok(members)
}

/// A result that is the same for all lanes of a member mask: computed once a mask.
fn by_group(context: &Context<'_>, members: &Lanes, f: impl Fn(u32) -> u64) -> Lanes {
    let mut result = [0; LANES];
    let mut left = context.lanes;
    while left != 0 {
        let mask = members[left.trailing_zeros() as usize] as u32;
        let group = mask & context.lanes;
        let value = f(group);
        for (lane, result) in result.iter_mut().enumerate() {
            if group >> lane & 1 == 1 && members[lane] as u32 == mask {
                *result = value;
                left &= !(1 << lane);
            }
        }
    }
    result
}

/// Bit 0 of each lane.
fn bits(lanes: &Lanes) -> u32 {
    lanes.iter().rev().fold(0, |bits, lane| bits << 1 | (lane & 1) as u32)
}

/// The operands of `shfl.sync`.
pub(super) struct Shuffle {
    pub(super) mode: ShuffleMode,
    pub(super) a: Source,
    pub(super) lane: Source,
    pub(super) clamp: Source,
    pub(super) members: Source,
}

/// `shfl.sync`.
pub(super) fn shuffle(
    context: &mut Context<'_>,
    shuffle: &Shuffle,
    dst: Register,
    in_range: Option<Predicate>,
) -> Result<(), ComputeError> {
    let members = members(context, shuffle.members)?;
    let (a, by, clamp) = (context.read(shuffle.a), context.read(shuffle.lane), context.read(shuffle.clamp));
    let mut result = [0; LANES];
    let mut inside = 0u32;
    for lane in 0..LANES {
        if context.lanes >> lane & 1 == 0 {
            continue;
        }
        // `clamp`: bits 0..5 the bound, bits 8..13 the segment's mask.
        let segment = (clamp[lane] >> 8 & 31) as usize;
        let bound = lane & segment | (clamp[lane] & 31) as usize & !segment;
        let by = (by[lane] & 31) as usize;
        let (from, within) = match shuffle.mode {
            ShuffleMode::Up => (lane.wrapping_sub(by), lane >= by && lane - by >= bound),
            ShuffleMode::Down => (lane + by, lane + by <= bound),
            ShuffleMode::Butterfly => (lane ^ by, lane ^ by <= bound),
            ShuffleMode::Index => {
                let from = lane & segment | by & !segment;
                (from, from <= bound)
            }
        };
        let from = if within { from } else { lane };
        inside |= u32::from(within) << lane;
        if context.lanes & members[lane] as u32 & 1 << from == 0 {
            return Err(ComputeError::InactiveSource { lane: lane as u32, source_lane: from as u32 });
        }
        result[lane] = a[from];
    }
    context.write(dst, &result);
    if let Some(predicate) = in_range {
        context.write_predicate(predicate, inside);
    }
    Ok(())
}

/// `vote.sync.all`, `.any`, `.uni`.
pub(super) fn vote(
    context: &mut Context<'_>,
    mode: VoteMode,
    dst: Predicate,
    a: PredicateSource,
    source: Source,
) -> Result<(), ComputeError> {
    let members = members(context, source)?;
    let votes = context.registers.read_predicate(a);
    let result = by_group(context, &members, |group| {
        let yes = votes & group;
        u64::from(match mode {
            VoteMode::All => yes == group,
            VoteMode::Any => yes != 0,
            VoteMode::Uniform => yes == group || yes == 0,
        })
    });
    context.write_predicate(dst, bits(&result));
    Ok(())
}

/// `vote.sync.ballot`.
pub(super) fn ballot(
    context: &mut Context<'_>,
    dst: Register,
    a: PredicateSource,
    source: Source,
) -> Result<(), ComputeError> {
    let members = members(context, source)?;
    let votes = context.registers.read_predicate(a);
    let result = by_group(context, &members, |group| u64::from(votes & group));
    context.write(dst, &result);
    Ok(())
}

/// `match.any.sync`, `match.all.sync`: the lanes whose value is the same.
pub(super) fn matching(
    context: &mut Context<'_>,
    all: bool,
    dst: Register,
    predicate: Option<Predicate>,
    a: Source,
    source: Source,
) -> Result<(), ComputeError> {
    let members = members(context, source)?;
    let a = context.read(a);
    let equal = |group: u32, value: u64| {
        (0..LANES).fold(0, |mask, lane| mask | u32::from(a[lane] == value && group >> lane & 1 == 1) << lane)
    };
    if all {
        let result = by_group(context, &members, |group| {
            let same = equal(group, a[group.trailing_zeros() as usize & 31]);
            if same == group { u64::from(group) } else { 0 }
        });
        context.write(dst, &result);
        if let Some(predicate) = predicate {
            context.write_predicate(predicate, bits(&result.map(|mask| u64::from(mask != 0))));
        }
    } else {
        let result =
            std::array::from_fn(|lane| u64::from(equal(members[lane] as u32 & context.lanes, a[lane])));
        context.write(dst, &result);
    }
    Ok(())
}

/// `redux.sync`.
pub(super) fn reduce(
    context: &mut Context<'_>,
    op: AtomicOp,
    ty: Type,
    dst: Register,
    a: Source,
    source: Source,
) -> Result<(), ComputeError> {
    let f: fn(u32, u32) -> u32 = match (op, ty) {
        (AtomicOp::Add, Type::U32 | Type::S32) => u32::wrapping_add,
        (AtomicOp::Minimum, Type::U32) => |a, b| a.min(b),
        (AtomicOp::Maximum, Type::U32) => |a, b| a.max(b),
        (AtomicOp::Minimum, Type::S32) => |a, b| (a as i32).min(b as i32) as u32,
        (AtomicOp::Maximum, Type::S32) => |a, b| (a as i32).max(b as i32) as u32,
        (AtomicOp::And, _) => |a, b| a & b,
        (AtomicOp::Or, _) => |a, b| a | b,
        (AtomicOp::Xor, _) => |a, b| a ^ b,
        _ => return unsupported(&("redux", op, ty)),
    };
    let members = members(context, source)?;
    let a = context.read(a);
    let result = by_group(context, &members, |group| {
        let of_group = (0..LANES).filter(|lane| group >> lane & 1 == 1).map(|lane| a[lane] as u32);
        u64::from(of_group.reduce(f).unwrap_or(0))
    });
    context.write(dst, &result);
    Ok(())
}

/// `elect.sync`: the lowest member is the leader, and all learn which.
pub(super) fn elect(
    context: &mut Context<'_>,
    dst: Option<Register>,
    predicate: Predicate,
    source: Source,
) -> Result<(), ComputeError> {
    let members = members(context, source)?;
    let leaders = by_group(context, &members, |group| u64::from(group.trailing_zeros()));
    if let Some(dst) = dst {
        context.write(dst, &leaders);
    }
    let own = leaders.iter().enumerate().rev();
    let bits = own.fold(0, |bits, (lane, &leader)| bits << 1 | u32::from(leader == lane as u64));
    context.write_predicate(predicate, bits);
    Ok(())
}
