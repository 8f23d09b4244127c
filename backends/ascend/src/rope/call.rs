//! Turning heads, and turning them on their way to the cache.
//!
//! CANN's operator turns whole heads, of two tensors at once, where they lie; its document does not say that they may have gaps, and
//! cosines of F16 or BF16 heads would be of their type. So what turns is brought into memory without gaps, in F32, and back.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    cache::CacheWriteArgs,
    rope::{Direction, RopeArgs, RopePlan, RopeWriteArgs},
};

use super::AscendRopePlan;
use crate::{
    cache::{aside, write_in},
    copy,
    device::Ascend,
    room::{Room, bytes},
    stream::AscendStream,
};

/// One call in place.
pub(super) fn turn(stream: &mut AscendStream, args: &RopeArgs<'_, Ascend>) -> Result<()> {
    // CANN refuses empty tensors.
    if args.x.shape().elements() == 0 {
        return Ok(());
    }
    let turning = part(args.plan, args.x)?;
    let one = [turning.dims()[0], 1, turning.dims()[2]];
    let mut room = Room::new(stream.aside(bytes(DType::F32, turning.dims()) + bytes(DType::F32, &one))?);
    let x = lent(stream, &mut room, &turning)?;
    // The operator wants a second tensor: one head once more, which nobody reads.
    let second = room.tensor("rope", DType::F32, &one)?;
    copy::elements(stream, &x.narrow(1, 0..1)?, &second)?;
    apply(stream, args.plan, args.direction, [&x, &second])?;
    back(stream, &x, &turning)
}

/// Queries in place; keys on their way to the cache, and values.
pub(super) fn turn_and_write(stream: &mut AscendStream, args: &RopeWriteArgs<'_, Ascend>) -> Result<()> {
    let &RopeWriteArgs { plan, q, slots, cache, layer, k, v } = args;
    // A cache has KV heads, so that without tokens there is nothing at all.
    if k.shape().elements() == 0 {
        return Ok(());
    }
    let (turning_q, turning_k) = (part(plan, q)?, part(plan, k)?);
    let pieces = [turning_q.dims(), turning_k.dims(), k.dims()].map(|dims| bytes(DType::F32, dims));
    let one = [turning_k.dims()[0], 1, turning_k.dims()[2]];
    let all = pieces.iter().sum::<u64>() + bytes(DType::F32, &one) + aside(k, v);
    let mut room = Room::new(stream.aside(all)?);
    // All of a key goes to the cache, what turns and what does not.
    let written = room.tensor("rope", DType::F32, k.dims())?;
    copy::elements(stream, k, &written)?;
    let to = part(plan, &written)?;
    let keys = lent(stream, &mut room, &to)?;
    if q.shape().elements() == 0 {
        let second = room.tensor("rope", DType::F32, &one)?;
        copy::elements(stream, &keys.narrow(1, 0..1)?, &second)?;
        apply(stream, plan, Direction::Forward, [&keys, &second])?;
    } else {
        let queries = lent(stream, &mut room, &turning_q)?;
        apply(stream, plan, Direction::Forward, [&queries, &keys])?;
        back(stream, &queries, &turning_q)?;
    }
    back(stream, &keys, &to)?;
    write_in(stream, &CacheWriteArgs { slots, cache, layer, k: &written, v }, room)
}

/// What of heads turns.
fn part(plan: &AscendRopePlan, x: &Tensor<Ascend>) -> Result<Tensor<Ascend>> {
    x.narrow(2, 0..plan.spec().rotary_dim)
}

/// The same elements in F32 and without gaps, where they lie if they are that.
fn lent(stream: &mut AscendStream, room: &mut Room, x: &Tensor<Ascend>) -> Result<Tensor<Ascend>> {
    if x.dtype() == DType::F32 && x.is_dense() {
        return Ok(x.clone());
    }
    let floats = room.tensor("rope", DType::F32, x.dims())?;
    if x.dtype() == DType::F32 {
        copy::elements(stream, x, &floats)?;
    } else {
        stream.run("rope", &[("x", x)], |cann| cann.cast(x, &floats))?;
    }
    Ok(floats)
}

/// Takes back what was lent.
fn back(stream: &mut AscendStream, floats: &Tensor<Ascend>, x: &Tensor<Ascend>) -> Result<()> {
    if x.dtype() != DType::F32 {
        return stream.run("rope", &[("x", x)], |cann| cann.cast(floats, x));
    }
    if x.is_dense() { Ok(()) } else { copy::elements(stream, floats, x) }
}

fn apply(
    stream: &mut AscendStream,
    plan: &AscendRopePlan,
    direction: Direction,
    [x, y]: [&Tensor<Ascend>; 2],
) -> Result<()> {
    let [cos, sin] = plan.cos_sin(direction)?;
    let tensors = [("x", x), ("k", y), ("plan", &cos), ("plan", &sin)];
    stream.run("rope", &tensors, |cann| cann.apply_rotary_pos_emb([x, y], [&cos, &sin]))
}
