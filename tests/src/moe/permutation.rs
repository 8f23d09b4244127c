//! Rows to experts and back.

use crate::{
    case::{Fault, Verdict, ensure},
    judge::judge,
    ledger::denied,
    oracle::moe::permutation::{Sorted, combined, sorted},
    poison::{Guarded, LAYOUTS, Layout, pattern},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    linear::{ActivationFormat, Activations},
    moe::{CombineArgs, DispatchArgs, LocalExperts},
};

const FORMATS: [ActivationFormat; 4] = [
    ActivationFormat::Float(DType::F32),
    ActivationFormat::Float(DType::F16),
    ActivationFormat::Float(DType::Bf16),
    ActivationFormat::Int8PerToken,
];

/// Where tokens want to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// Distinct experts, any of them.
    Spread,
    /// All slots of all tokens to one expert.
    One,
    /// Most to the first expert, few to the others.
    Skewed,
    /// Only to experts that are not there.
    Elsewhere,
    /// Ids that no router gives among others.
    Garbage,
}

pub(super) const LOADS: [Loads; 5] =
    [Loads::Spread, Loads::One, Loads::Skewed, Loads::Elsewhere, Loads::Garbage];

/// `[tokens, top_k]` ids, of `experts` in all.
pub(super) fn ids(
    rng: &mut Rng,
    loads: Loads,
    experts: usize,
    local: LocalExperts,
    tokens: usize,
    top_k: usize,
) -> Vec<i32> {
    let one = (local.first + rng.below(local.count)) as i32;
    (0..tokens)
        .flat_map(|_| {
            let order = rng.permutation(experts);
            (0..top_k)
                .map(|slot| {
                    let distinct = order[slot % experts] as i32;
                    match loads {
                        Loads::Spread => distinct,
                        Loads::One => one,
                        Loads::Skewed if rng.below(8) > 0 => local.first as i32,
                        Loads::Skewed => distinct,
                        Loads::Elsewhere => (local.first + local.count + slot) as i32,
                        Loads::Garbage => rng.pick(&[distinct, -1, i32::MIN, i32::MAX, experts as i32]),
                    }
                })
                .collect::<Vec<i32>>()
        })
        .collect()
}

/// One call of dispatch, and one of combine with its places.
#[derive(Clone, Debug)]
pub(super) struct Case {
    format: ActivationFormat,
    experts: usize,
    local: LocalExperts,
    top_k: usize,
    tokens: usize,
    hidden: usize,
    loads: Loads,
    weights: bool,
    layout: Layout,
    seed: u64,
}

pub(super) fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (tokens, top_k, hidden)) in
        [(0, 2, 7), (1, 1, 1), (1, 8, 15), (2, 2, 16), (5, 2, 17), (9, 4, 33), (40, 3, 20), (3, 2, 0)]
            .into_iter()
            .enumerate()
    {
        for (place, loads) in LOADS.into_iter().enumerate() {
            let local = [LocalExperts::all(8), LocalExperts::range(2, 3), LocalExperts::range(7, 1)];
            cases.push(Case {
                format: FORMATS[(number + place) % 4],
                experts: 8,
                local: local[(number + place) % 3],
                top_k,
                tokens,
                hidden,
                loads,
                weights: place % 2 == 0,
                layout: LAYOUTS[(number + place) % 3],
                seed: number as u64,
            });
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let experts = 1 + rng.below(20);
    let first = rng.below(experts);
    Case {
        format: rng.pick(&FORMATS),
        experts,
        local: LocalExperts::range(first, 1 + rng.below(experts - first)),
        top_k: 1 + rng.below(6),
        tokens: rng.below(30),
        hidden: rng.below(60),
        loads: rng.pick(&LOADS),
        weights: rng.coin(),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

/// Rows of either form on the device, and their values.
struct Operand<B: Backend> {
    x: Guarded<B>,
    scales: Option<Guarded<B>>,
    values: Vec<f64>,
    scale_values: Vec<f64>,
}

impl<B: Backend> Operand<B> {
    fn input(
        stream: &mut B::Stream,
        rng: &mut Rng,
        format: ActivationFormat,
        [rows, hidden]: [usize; 2],
        layout: Layout,
    ) -> Result<Self, Fault> {
        let ActivationFormat::Float(dtype) = format else {
            let q: Vec<i32> = rng.int8(rows * hidden).into_iter().map(i32::from).collect();
            let x = Guarded::integers(stream, DType::I8, &q, &[rows, hidden], layout)?;
            let (scales, scale_values) =
                Guarded::input(stream, DType::F32, &rng.aways(rows), &[rows], Layout::Dense)?;
            let values = q.into_iter().map(f64::from).collect();
            return Ok(Operand { x, scales: Some(scales), values, scale_values });
        };
        let spreads = rng.spreads(rows * hidden);
        let (x, values) = Guarded::input(stream, dtype, &spreads, &[rows, hidden], layout)?;
        Ok(Operand { x, scales: None, values, scale_values: Vec::new() })
    }

    fn output(
        stream: &mut B::Stream,
        format: ActivationFormat,
        [rows, hidden]: [usize; 2],
        layout: Layout,
    ) -> Result<Self, Fault> {
        let (dtype, scales) = match format {
            ActivationFormat::Float(dtype) => (dtype, None),
            _ => (DType::I8, Some(Guarded::output(stream, DType::F32, &[rows], Layout::Dense)?)),
        };
        let x = Guarded::output(stream, dtype, &[rows, hidden], layout)?;
        Ok(Operand { x, scales, values: Vec::new(), scale_values: Vec::new() })
    }

    fn activations(&self) -> Activations<'_, B> {
        match &self.scales {
            None => Activations::Float(&self.x.view),
            Some(scales) => Activations::int8_per_token(&self.x.view, &scales.view),
        }
    }
}

pub(super) fn dispatch<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { format, local, top_k, tokens, hidden, layout, .. } = *case;
    if denied(device.permutation_supports(format)) {
        return Ok(());
    }
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let ids = ids(&mut rng, case.loads, case.experts, local, tokens, top_k);
    let Sorted { order, offsets: ends, places: expected } = sorted(local, &ids, top_k);
    let x = Operand::<B>::input(stream, &mut rng, format, [tokens, hidden], layout)?;
    let dims = [tokens, top_k];
    let ids = Guarded::<B>::integers(stream, DType::I32, &ids, &dims, layout)?;
    let (weights, weight_values) =
        Guarded::<B>::input(stream, DType::F32, &rng.aways(tokens * top_k), &dims, layout)?;
    let rows = Operand::<B>::output(stream, format, [tokens * top_k, hidden], layout)?;
    let offsets = Guarded::<B>::output(stream, DType::I32, &[local.count + 1], Layout::Dense)?;
    let places = Guarded::<B>::output(stream, DType::I32, &dims, layout)?;
    let args = DispatchArgs::<B> {
        local,
        x: x.activations(),
        ids: &ids.view,
        weights: case.weights.then_some(&weights.view),
        rows: rows.activations(),
        offsets: &offsets.view,
        places: &places.view,
    };
    device.dispatch(stream, args.check()?)?;

    let exact = |values: &[i32]| -> Vec<Bound> { values.iter().map(|&x| Bound::exact(x.into())).collect() };
    judge("offsets", &[local.count + 1], &offsets.read(stream)?, &exact(&ends))?;
    judge("places", &dims, &places.read(stream)?, &exact(&expected))?;
    let weigh = |value: f64, (token, slot): (usize, usize), dtype: DType| {
        if case.weights {
            let weight = Bound::exact(weight_values[token * top_k + slot]);
            Bound::exact(value).times(weight).rounded(dtype)
        } else {
            Bound::exact(value)
        }
    };
    let mut expected = Vec::new();
    let mut scales = Vec::new();
    for &slot in &order {
        let row = &x.values[slot.0 * hidden..][..hidden];
        match format {
            ActivationFormat::Float(dtype) => expected.extend(row.iter().map(|&x| weigh(x, slot, dtype))),
            _ => {
                expected.extend(row.iter().map(|&q| Bound::exact(q)));
                scales.push(weigh(x.scale_values[slot.0], slot, DType::F32));
            }
        }
    }
    let used = order.len();
    judge("rows", &[used, hidden], &rows.x.read(stream)?[..used * hidden], &expected)?;
    let mut written = vec![(rows.x.view.dtype(), hidden, rows.x.read_bytes(stream)?)];
    if let Some(row_scales) = &rows.scales {
        judge("scales", &[used], &row_scales.read(stream)?[..used], &scales)?;
        written.push((DType::F32, 1, row_scales.read_bytes(stream)?));
    }
    for (dtype, columns, bytes) in written {
        let rest = &bytes[used * columns * dtype.size()..];
        ensure(rest.chunks_exact(dtype.size()).all(|bytes| bytes == pattern(dtype)), || {
            format!("rows beyond the {used} of local experts were written")
        })?;
    }
    Ok(())
}

pub(super) fn combine<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { format, local, top_k, tokens, hidden, layout, .. } = *case;
    if denied(device.permutation_supports(format)) {
        return Ok(());
    }
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let ids = ids(&mut rng, case.loads, case.experts, local, tokens, top_k);
    let Sorted { order, places: mut expected, .. } = sorted(local, &ids, top_k);
    // Fewer rows than dispatch had, and places that none of them gave.
    let count = order.len().saturating_sub(case.seed as usize % 2);
    if case.loads == Loads::Garbage {
        for place in expected.iter_mut().step_by(3) {
            *place = rng.pick(&[i32::MAX, i32::MIN, -2, count as i32]);
        }
    }
    let rows = Operand::<B>::input(stream, &mut rng, format, [count, hidden], layout)?;
    let dims = [tokens, top_k];
    let places = Guarded::<B>::integers(stream, DType::I32, &expected, &dims, layout)?;
    let (weights, weight_values) =
        Guarded::<B>::input(stream, DType::F32, &rng.aways(tokens * top_k), &dims, layout)?;
    let dtype = rng.pick(&[DType::F32, DType::F16, DType::Bf16]);
    let mut added = Vec::new();
    for _ in 0..rng.below(3) {
        let spreads = rng.spreads(tokens * hidden);
        added.push(Guarded::<B>::input(stream, dtype, &spreads, &[tokens, hidden], layout)?);
    }
    let views: Vec<_> = added.iter().map(|(added, _)| &added.view).collect();
    let out = Guarded::<B>::output(stream, dtype, &[tokens, hidden], layout)?;
    let args = CombineArgs::<B> {
        rows: rows.activations(),
        places: &places.view,
        weights: case.weights.then_some(&weights.view),
        added: &views,
        out: &out.view,
    };
    device.combine(stream, args.check()?)?;
    let mut bounds = Vec::new();
    for token in 0..tokens {
        let slots = (0..top_k).map(|slot| {
            let place = usize::try_from(expected[token * top_k + slot]).ok().filter(|&place| place < count);
            let row = place.map(|place| {
                let row = rows.values[place * hidden..][..hidden].iter().map(|&x| Bound::exact(x));
                match rows.scale_values.get(place) {
                    Some(&scale) => row.map(|q| q.times(Bound::exact(scale))).collect(),
                    None => row.collect::<Vec<Bound>>(),
                }
            });
            (row, case.weights.then(|| weight_values[token * top_k + slot]))
        });
        let added: Vec<Vec<Bound>> = added
            .iter()
            .map(|(_, values)| values[token * hidden..][..hidden].iter().map(|&x| Bound::exact(x)).collect())
            .collect();
        bounds.extend(combined(hidden, slots, &added).into_iter().map(|y| y.rounded(dtype)));
    }
    judge("out", &[tokens, hidden], &out.read(stream)?, &bounds)
}
