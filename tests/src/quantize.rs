//! Quantisation, judged.

mod bounds;
mod errors;
mod known;
mod options;
pub(crate) mod outputs;
mod products;
mod rotate;

use crate::{
    case::{Group, Verdict, ensure},
    judge::unsupported,
    ledger::denied,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    quantize::{QuantizeArgs, QuantizeSpec},
};
pub(crate) use options::fused;
use outputs::Outputs;

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Row {
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
pub(crate) struct Case {
    /// Which quantisation.
    pub spec: QuantizeSpec,
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
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("quantize", "edges", edges(), body),
        Group::listed("quantize", "formats", options::formats(), body),
        Group::listed("quantize", "prepared", options::prepared(), body),
        Group::bodies("quantize", "known", known::bodies()),
        Group::bodies("quantize", "products", products::bodies()),
        Group::listed("quantize", "rotate", rotate::cases(), rotate::body),
        Group::listed("quantize", "supports", supports(), body),
        Group::seeded("quantize", "random", 60, random, body),
        Group::bodies("quantize", "errors", errors::bodies()),
    ]
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in
        [0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 576, 1536].into_iter().enumerate()
    {
        for rows in [vec![], vec![Row::Spread], ROWS.to_vec()] {
            let (spec, layout) = (QuantizeSpec::new(DType::F32), LAYOUTS[number % 3]);
            cases.push(Case { spec, rows, columns, layout, seed: number as u64 });
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let case = |input| {
        let spec = QuantizeSpec::new(input);
        Case { spec, rows: ROWS.to_vec(), columns: 70, layout: LAYOUTS[1], seed: 3 }
    };
    FLOATS.into_iter().map(case).collect()
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (rows, columns) = (rng.below(14), rng.below(200));
    let mut spec = QuantizeSpec::new(rng.pick(&FLOATS));
    if rng.coin() {
        spec = spec.with_output(rng.pick(&options::FORMATS));
    }
    // Factors and rotations take the greatest rows beyond their type.
    let mut kinds = ROWS.to_vec();
    match rng.below(4) {
        0 => spec = spec.with_smoothing(),
        1 if columns > 0 => spec = spec.with_outlier_columns(1 + rng.below(columns)),
        2 if columns > 0 => {
            kinds.retain(|&kind| kind != Row::Huge);
            spec = spec.with_hadamard(1 << columns.trailing_zeros());
        }
        _ => {}
    }
    let rows = (0..rows).map(|_| rng.pick(&kinds)).collect();
    Case { spec, rows, columns, layout: rng.pick(&LAYOUTS), seed }
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
    let Case { spec, columns, layout, .. } = case;
    let rows = case.rows.len();
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let values: Vec<f32> =
        case.rows.iter().flat_map(|&kind| row(&mut rng, kind, spec.input, *columns)).collect();
    let (x, x_values) = Guarded::<B>::input(stream, spec.input, &values, &[rows, *columns], *layout)?;
    let outputs = Outputs::<B>::new(stream, &mut rng, spec, &[rows, *columns], *layout)?;
    stream.reserve(device.quantize_workspace(spec, rows, *columns))?;
    let args = QuantizeArgs::with_out(spec, &x.view, outputs.out());
    let ran = device.quantize(stream, args.check()?);
    if denied(device.quantize_supports(spec)) {
        unsupported("quantize", ran)?;
        return outputs.untouched(stream);
    }
    ran?;
    let y: Vec<Bound> = x_values.iter().map(|&x| Bound::exact(x)).collect();
    let [q, scales] = outputs.judge(stream, &y)?;
    // Where the scale is 1 nothing but the tie decides.
    let plain = *spec == QuantizeSpec::new(spec.input);
    for (r, _) in case.rows.iter().enumerate().filter(|(_, kind)| plain && **kind == Row::Ties) {
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
