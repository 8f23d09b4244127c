//! Quantisation per token, judged.

use crate::{
    case::{Group, Verdict, ensure},
    judge::{judge_quantised, refused, unsupported},
    ledger::denied,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    quantize::{QuantizeArgs, QuantizeSpec},
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Row {
    /// Random values over twelve octaves.
    Spread,
    /// Zeros of both signs.
    Zeros,
    /// A largest magnitude of 6e-38.
    Tiny,
    /// Subnormal values.
    Subnormal,
    /// Values near the largest of the type.
    Huge,
    /// The same value throughout.
    Constant,
    /// Halfway between two steps: rounded to even.
    Ties,
    /// A NaN among numbers.
    Nan,
    /// An infinity among numbers.
    Infinite,
}

const ROWS: [Row; 9] = [
    Row::Spread,
    Row::Zeros,
    Row::Tiny,
    Row::Subnormal,
    Row::Huge,
    Row::Constant,
    Row::Ties,
    Row::Nan,
    Row::Infinite,
];

/// One call: a row of each kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// Type of the input.
    pub input: DType,
    /// What the rows hold.
    pub rows: Vec<Row>,
    /// Columns.
    pub columns: usize,
    /// How input and output lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("quantize", "edges", edges(), body),
        Group::listed("quantize", "supports", supports(), body),
        Group::seeded("quantize", "random", 40, random, body),
        Group::bodies("quantize", "errors", vec![("wrong shapes, types and overlaps", errors)]),
    ]
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in
        [0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 576, 1536].into_iter().enumerate()
    {
        for rows in [vec![], vec![Row::Spread], ROWS.to_vec()] {
            let layout = LAYOUTS[number % 3];
            cases.push(Case { input: DType::F32, rows, columns, layout, seed: number as u64 });
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let case = |input| Case { input, rows: ROWS.to_vec(), columns: 70, layout: LAYOUTS[1], seed: 3 };
    FLOATS.into_iter().map(case).collect()
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let rows = rng.below(14);
    Case {
        input: rng.pick(&FLOATS),
        rows: (0..rows).map(|_| rng.pick(&ROWS)).collect(),
        columns: rng.below(200),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

/// The values of a row, before they are rounded to the input's type.
pub(crate) fn row(rng: &mut Rng, kind: Row, input: DType, columns: usize) -> Vec<f32> {
    let mut values = rng.spreads(columns);
    let huge = if input == DType::F16 { 6e4 } else { 3e38 };
    let place = rng.below(columns);
    for (i, value) in values.iter_mut().enumerate() {
        *value = match kind {
            Row::Spread | Row::Nan | Row::Infinite => *value,
            Row::Zeros => 0f32.copysign(*value),
            Row::Tiny => 6e-38 * (*value / 32.0),
            Row::Subnormal => 1e-40 * (*value / 32.0),
            Row::Huge => huge * (*value / 32.0),
            Row::Constant => -2.5,
            // With 127 as the largest magnitude the scale is 1.
            Row::Ties => match i {
                0 => 127.0,
                _ => (rng.below(253) as f32 - 126.0) + 0.5,
            },
        };
    }
    match kind {
        Row::Nan => values.iter_mut().skip(place).take(1).for_each(|value| *value = f32::NAN),
        Row::Infinite => values.iter_mut().skip(place).take(1).for_each(|value| *value = f32::NEG_INFINITY),
        _ => {}
    }
    values
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { input, columns, layout, .. } = case;
    let (spec, rows) = (QuantizeSpec::new(*input), case.rows.len());
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let values: Vec<f32> = case.rows.iter().flat_map(|&kind| row(&mut rng, kind, *input, *columns)).collect();
    let (x, x_values) = Guarded::<B>::input(stream, *input, &values, &[rows, *columns], *layout)?;
    let q = Guarded::<B>::output(stream, DType::I8, &[rows, *columns], *layout)?;
    let scales = Guarded::<B>::output(stream, DType::F32, &[rows], Layout::Dense)?;
    let args = QuantizeArgs { spec: &spec, x: &x.view, q: &q.view, scales: &scales.view };
    let ran = device.quantize(stream, args.check()?);
    if denied(device.quantize_supports(&spec)) {
        unsupported("quantize", ran)?;
        q.untouched(stream)?;
        return scales.untouched(stream);
    }
    ran?;
    let (q, scales) = (q.read(stream)?, scales.read(stream)?);
    let exact: Vec<Bound> = x_values.iter().map(|&x| Bound::exact(x)).collect();
    judge_quantised(*columns, &exact, &q, &scales)?;
    // Where the scale is 1 nothing but the tie decides.
    for (r, _) in case.rows.iter().enumerate().filter(|(_, kind)| **kind == Row::Ties) {
        for c in r * columns..(r + 1) * columns {
            if scales[r] == 1.0 {
                ensure(q[c] == x_values[c].round_ties_even(), || {
                    format!("tie {} in row {r} became {}, not the even neighbour", x_values[c], q[c])
                })?;
            }
        }
    }
    Ok(())
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = QuantizeSpec::new(DType::F32);
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Dense)?;
    let q = Guarded::<B>::output(stream, DType::I8, &[2, 3], Layout::Dense)?;
    let narrow = Guarded::<B>::output(stream, DType::I8, &[2, 2], Layout::Dense)?;
    let scales = Guarded::<B>::output(stream, DType::F32, &[2], Layout::Dense)?;
    let long = Guarded::<B>::output(stream, DType::F32, &[3], Layout::Dense)?;
    let inside_x = x.view.narrow(1, 0..1)?.reshape(&[2]);
    for (argument, x, q, scales) in [
        ("x", &q.view, &q.view, &scales.view),
        ("x", &scales.view, &q.view, &scales.view),
        ("q", &x.view, &x.view, &scales.view),
        ("q", &x.view, &narrow.view, &scales.view),
        ("scales", &x.view, &q.view, &long.view),
        ("scales", &x.view, &q.view, &q.view),
        ("scales", &x.view, &q.view, &x.view.narrow(0, 0..1)?.narrow(1, 0..2)?.reshape(&[2])?),
    ] {
        refused("quantize", argument, QuantizeArgs { spec: &spec, x, q, scales }.check())?;
    }
    ensure(inside_x.is_err(), || "a strided column was reshaped as if it were dense".into())?;
    q.untouched(stream)?;
    scales.untouched(stream)
}
