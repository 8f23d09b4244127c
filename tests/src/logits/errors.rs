//! Bad arguments of penalties, biases and masks.

use crate::{
    case::{Fault, Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    logits::{LogitsArgs, LogitsCapacity, LogitsRow, LogitsSpec, LogitsStep, Penalties},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("rows that ask for what cannot be", rows),
        ("steps beyond the plan", steps),
        ("tensors that do not fit", tensors),
    ]
}

fn rows<B: Backend>(device: &B) -> Verdict {
    for vocabulary in [0, 1 << 31, usize::MAX] {
        let spec = LogitsSpec::new(vocabulary);
        refused("logits", "vocabulary", spec.check())?;
        refused("logits", "vocabulary", device.logits_plan(&spec, &LogitsCapacity::rows(1)))?;
    }
    let spec = LogitsSpec::new(40);
    let capacity = LogitsCapacity::rows(3).with_history(100).with_biases(100);
    let plan = device.logits_plan(&spec, &capacity)?;
    let (none, mild) = (Penalties::NONE, Penalties::NONE.with_presence(0.1));
    let row = LogitsRow::unchanged();
    for (argument, row) in [
        ("repetition", row.with_penalties(none.with_repetition(0.0), &[], &[])),
        ("repetition", row.with_penalties(none.with_repetition(-1.0), &[], &[])),
        ("repetition", row.with_penalties(none.with_repetition(f32::NAN), &[], &[])),
        ("repetition", row.with_penalties(none.with_repetition(f32::INFINITY), &[], &[])),
        ("presence", row.with_penalties(none.with_presence(f32::NAN), &[], &[])),
        ("frequency", row.with_penalties(none.with_frequency(f32::INFINITY), &[], &[])),
        ("prompt", row.with_penalties(mild, &[3, 40], &[])),
        ("output", row.with_penalties(mild, &[3], &[u32::MAX])),
        ("bias", row.with_bias(&[(40, 1.0)])),
        ("bias", row.with_bias(&[(3, f32::NAN)])),
        ("bias", row.with_bias(&[(3, f32::NEG_INFINITY)])),
        ("bias", row.with_bias(&[(3, 1.0), (3, 1.0)])),
        ("bias", row.with_bias(&[(4, 1.0), (3, 1.0)])),
        ("allowed", row.with_allowed(&[])),
        ("allowed", row.with_allowed(&[1])),
        ("allowed", row.with_allowed(&[1, 1, 1])),
        ("allowed", row.with_allowed(&[0, 0])),
        ("allowed", row.with_allowed(&[0, 1 << 8])),
    ] {
        refused("logits", argument, row.check(&spec))?;
        let rows = [LogitsRow::unchanged(), row];
        refused("logits", argument, LogitsStep { rows: &rows }.check(&plan))?;
    }
    // Without penalties nobody looks at the history.
    Ok(row.with_penalties(none, &[u32::MAX], &[u32::MAX]).check(&spec)?)
}

fn steps<B: Backend>(device: &B) -> Verdict {
    let spec = LogitsSpec::new(40);
    let capacity = LogitsCapacity::rows(2).with_history(4).with_biases(2);
    let mut plan = device.logits_plan(&spec, &capacity)?;
    let mild = Penalties::NONE.with_repetition(1.1);
    let row = LogitsRow::unchanged();
    for (argument, rows) in [
        ("rows", vec![row; 3]),
        ("history", vec![row.with_penalties(mild, &[1, 2], &[3]); 2]),
        ("biases", vec![row.with_bias(&[(1, 1.0), (2, 1.0)]), row.with_bias(&[(1, 1.0)])]),
    ] {
        refused("logits", argument, LogitsStep { rows: &rows }.check(&plan))?;
    }
    let rows = [row.with_penalties(mild, &[1, 2], &[3]).with_bias(&[(1, 1.0), (2, 1.0)])];
    let step = LogitsStep { rows: &rows }.check(&plan)?;
    let stream = &mut device.stream()?;
    device.logits_update(stream, &mut plan, &step)?;
    for (vocabulary, capacity) in [(41, capacity), (40, capacity.with_biases(3))] {
        let mut other = device.logits_plan(&LogitsSpec::new(vocabulary), &capacity)?;
        refused("logits", "step", device.logits_update(stream, &mut other, &step))?;
    }
    Ok::<(), Fault>(())
}

fn tensors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut plan = device.logits_plan(&LogitsSpec::new(5), &LogitsCapacity::rows(4))?;
    let rows = [LogitsRow::unchanged().with_allowed(&[1]); 2];
    let step = LogitsStep { rows: &rows }.check(&plan)?;
    device.logits_update(stream, &mut plan, &step)?;
    for (dtype, dims) in [
        (DType::F16, &[2, 5][..]),
        (DType::F32, &[2, 6]),
        (DType::F32, &[3, 5]),
        (DType::F32, &[10]),
        (DType::F32, &[2, 1, 5]),
    ] {
        let logits = Guarded::<B>::output(stream, dtype, dims, Layout::Dense)?;
        refused("logits", "logits", LogitsArgs::<B> { plan: &plan, logits: &logits.view }.check())?;
        logits.untouched(stream)?;
    }
    Ok(())
}
