//! Specs, steps and shapes that are refused.

use crate::{
    case::{Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    cache::{KvSpec, SlotMapping},
    rope::{
        CosSin, Direction, MAX_ROTARY_DIM, Positions, RopeArgs, RopeScaling, RopeSpec, RopeStyle,
        RopeWriteArgs, Yarn,
    },
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![("wrong specs", specs), ("wrong steps and shapes", steps), ("wrong writes", writes)]
}

fn base() -> RopeSpec {
    RopeSpec::new(8, RopeStyle::HalfSplit, 10)
}

fn specs<B: Backend>(device: &B) -> Verdict {
    let llama3 = |factor, low_freq_factor, high_freq_factor, original_context| {
        base().with_scaling(RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context,
        })
    };
    let yarn = |yarn| base().with_scaling(RopeScaling::Yarn(yarn));
    let per_pair =
        |divisors, attention_factor| base().with_scaling(RopeScaling::PerPair { divisors, attention_factor });
    for (argument, spec) in [
        ("rotary_dim", base().with_rotary_dim(0)),
        ("rotary_dim", base().with_rotary_dim(3)),
        ("rotary_dim", base().with_rotary_dim(10)),
        ("rotary_dim", RopeSpec::new(MAX_ROTARY_DIM + 2, RopeStyle::HalfSplit, 10)),
        ("rotary_dim", RopeSpec::new(1 << 60, RopeStyle::HalfSplit, 10)),
        ("theta", base().with_theta(0.0)),
        ("theta", base().with_theta(f32::NAN)),
        ("theta", base().with_theta(f32::INFINITY)),
        ("scaling", base().with_scaling(RopeScaling::Linear { factor: 0.0 })),
        ("scaling", base().with_scaling(RopeScaling::Linear { factor: f32::NAN })),
        ("scaling", llama3(8.0, 4.0, 4.0, 8192)),
        ("scaling", llama3(8.0, 1.0, 4.0, 0)),
        ("scaling", llama3(8.0, 1.0, f32::INFINITY, 8192)),
        ("scaling", llama3(-1.0, 1.0, 4.0, 8192)),
        ("scaling", base().with_scaling(RopeScaling::Ntk { factor: -1.0 })),
        ("scaling", yarn(Yarn::new(0.0, 4096))),
        ("scaling", yarn(Yarn::new(4.0, 0))),
        ("scaling", yarn(Yarn::new(4.0, 4096).with_betas(1.0, 1.0))),
        ("scaling", yarn(Yarn::new(4.0, 4096).with_betas(f32::NAN, 1.0))),
        ("scaling", yarn(Yarn::new(4.0, 4096).with_betas(32.0, 0.0))),
        ("scaling", yarn(Yarn::new(4.0, 4096).with_attention_factor(f32::INFINITY))),
        ("theta", yarn(Yarn::new(4.0, 4096)).with_theta(1.0)),
        ("scaling", per_pair(vec![1.0; 3], 1.0)),
        ("scaling", per_pair(vec![1.0; 5], 1.0)),
        ("scaling", per_pair(vec![1.0, 0.0, 1.0, 1.0], 1.0)),
        ("scaling", per_pair(vec![1.0; 4], 0.0)),
        ("pair_axes", base().with_pair_axes(vec![0; 3])),
        ("pair_axes", base().with_pair_axes(vec![0, 0, 0, 4])),
        ("pair_axes", base().with_sections(&[2, 1])),
        ("max_positions", RopeSpec::new(8, RopeStyle::HalfSplit, 1 << 31)),
    ] {
        refused("rope", argument, spec.check())?;
        refused("rope", argument, device.rope_plan(&spec, 4))?;
    }
    Ok(())
}

fn steps<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut plan = device.rope_plan(&base(), 2)?;
    refused("rope", "tokens", Positions { positions: &[0, 1, 2] }.check(&plan))?;
    refused("rope", "positions", Positions { positions: &[0, 10] }.check(&plan))?;
    let three = device.rope_plan(&base().with_sections(&[2, 1, 1]), 2)?;
    refused("rope", "positions", Positions { positions: &[0; 5] }.check(&three))?;
    refused("rope", "tokens", Positions { positions: &[0; 9] }.check(&three))?;
    let of = |cos, sin| CosSin { cos: &[1.0; 16][..cos], sin: &[0.0; 16][..sin] }.check(&plan);
    refused("rope", "cos", of(7, 7))?;
    refused("rope", "sin", of(8, 7))?;
    refused("rope", "tokens", of(12, 12))?;
    let tables = of(8, 8)?;
    let step = Positions { positions: &[0, 9] }.check(&plan)?;
    let mut shorter = base();
    shorter.max_positions = 9;
    for mut other in [device.rope_plan(&base(), 1)?, device.rope_plan(&shorter, 2)?, three] {
        refused("rope", "step", device.rope_update(stream, &mut other, &step))?;
        refused("rope", "step", device.rope_update_cos_sin(stream, &mut other, &tables))?;
    }
    device.rope_update(stream, &mut plan, &step)?;
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 3, 8], Layout::Dense)?;
    let flat = Guarded::<B>::output(stream, DType::F32, &[2, 24], Layout::Dense)?;
    let half = Guarded::<B>::output(stream, DType::F16, &[2, 3, 8], Layout::Dense)?;
    for x in [&x.view.narrow(0, 0..1)?, &flat.view, &half.view, &flat.view.split_last(4)?] {
        refused("rope", "x", RopeArgs { plan: &plan, direction: Direction::Forward, x }.check())?;
    }
    x.untouched(stream)
}

fn writes<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let kv = KvSpec::new(2, 1, 8).with_dtype(DType::F32).with_block_size(4);
    let cache = device.kv_cache(&kv, 2)?;
    let other = device.kv_cache(&KvSpec::new(2, 1, 6).with_dtype(DType::F32).with_block_size(4), 2)?;
    let mut slots = device.slots_plan(&cache, 3)?;
    let mapping = SlotMapping { slots: &[0, 5] }.check(&slots)?;
    device.slots_update(stream, &mut slots, &mapping)?;
    let mut few = device.slots_plan(&cache, 3)?;
    let mapping = SlotMapping { slots: &[1] }.check(&few)?;
    device.slots_update(stream, &mut few, &mapping)?;
    let mut plan = device.rope_plan(&base(), 3)?;
    let step = Positions { positions: &[0, 9] }.check(&plan)?;
    device.rope_update(stream, &mut plan, &step)?;
    let mut half = device.rope_plan(&base().with_dtype(DType::F16), 3)?;
    let step = Positions { positions: &[0, 9] }.check(&half)?;
    device.rope_update(stream, &mut half, &step)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    // Columns: three heads of queries, one of keys, one of values.
    let rows = tensor(DType::F32, &[2, 40])?;
    let columns = |range| -> Result<_, halite_hal::Error> { rows.view.narrow(1, range)?.split_last(8) };
    let (q, k, v) = (columns(0..24)?, columns(24..32)?, columns(32..40)?);
    let (shifted, halves) = (columns(8..32)?, tensor(DType::F16, &[2, 3, 8])?);
    let args =
        || RopeWriteArgs::<B> { plan: &plan, q: &q, slots: &slots, cache: &cache, layer: 1, k: &k, v: &v };
    args().check()?;
    for (operator, argument, args) in [
        ("rope", "plan", RopeWriteArgs { plan: &half, q: &halves.view, ..args() }),
        ("rope", "slots", RopeWriteArgs { slots: &few, ..args() }),
        ("rope", "cache", RopeWriteArgs { cache: &other, ..args() }),
        ("rope", "q", RopeWriteArgs { q: &halves.view, ..args() }),
        ("rope", "q", RopeWriteArgs { q: &shifted, ..args() }),
        ("rope", "q", RopeWriteArgs { k: &q.narrow(1, 1..2)?, ..args() }),
        ("rope", "q", RopeWriteArgs { v: &q.narrow(1, 0..1)?, ..args() }),
        ("cache", "layer", RopeWriteArgs { layer: 2, ..args() }),
        ("cache", "k", RopeWriteArgs { k: &q, ..args() }),
        ("cache", "v", RopeWriteArgs { v: &q, ..args() }),
    ] {
        refused(operator, argument, args.check())?;
    }
    rows.untouched(stream)
}
