//! Top-k, judged: every id and every value to the bit.

use crate::{
    case::{Group, Verdict, ensure},
    judge::{judge, refused, same_bits, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout, encode},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    top_k::{TopKArgs, TopKOrder, TopKSpec},
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Row {
    /// Many values, hardly two alike.
    Spread,
    /// A handful of values, so that most are ties.
    Ties,
    /// One value, in zeros of both signs.
    Zeros,
    /// Infinities and NaN among few numbers.
    Extremes,
    /// The best comes last.
    Ascending,
    /// The best comes first.
    Descending,
    /// Nothing but NaN.
    Nans,
}

const KINDS: [Row; 7] =
    [Row::Spread, Row::Ties, Row::Zeros, Row::Extremes, Row::Ascending, Row::Descending, Row::Nans];

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What to compute.
    pub spec: TopKSpec,
    /// Each row's contents.
    pub rows: Vec<Row>,
    /// Columns of the input.
    pub columns: usize,
    /// How input and outputs lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("top_k", "edges", edges(), body),
        Group::listed("top_k", "supports", supports(), body),
        Group::seeded("top_k", "random", 60, random, body),
        Group::bodies("top_k", "errors", vec![("wrong shapes, sizes, types and overlaps", errors)]),
    ]
}

fn spec(k: usize, order: TopKOrder) -> TopKSpec {
    if order == TopKOrder::Smallest { TopKSpec::smallest(k) } else { TopKSpec::largest(k) }
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in [0usize, 1, 2, 15, 16, 17, 31, 32, 33, 65, 257, 1000].into_iter().enumerate() {
        for k in [0, 1, 2, 8, 16, 17, columns / 2, columns.saturating_sub(1), columns] {
            for order in [TopKOrder::Largest, TopKOrder::Smallest] {
                if k <= columns {
                    let (rows, layout) = (KINDS.to_vec(), LAYOUTS[number % 3]);
                    cases.push(Case { spec: spec(k, order), rows, columns, layout, seed: number as u64 });
                }
            }
        }
        let (spec, layout) = (spec(columns.min(3), TopKOrder::Largest), Layout::Dense);
        cases.push(Case { spec, rows: vec![], columns, layout, seed: 0 });
    }
    let spec = TopKSpec::largest(64);
    cases.push(Case { spec, rows: vec![Row::Spread], columns: 50_000, layout: Layout::Dense, seed: 1 });
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS.into_iter().chain([DType::I32]) {
        for order in [TopKOrder::Largest, TopKOrder::Smallest] {
            let spec = spec(9, order).with_dtype(dtype);
            cases.push(Case { spec, rows: KINDS.to_vec(), columns: 61, layout: LAYOUTS[1], seed: 4 });
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let columns = rng.below(400);
    let order = rng.pick(&[TopKOrder::Largest, TopKOrder::Smallest]);
    let spec = spec(rng.below(columns + 1), order).with_dtype(rng.pick(&FLOATS));
    let rows = (0..rng.below(5)).map(|_| rng.pick(&KINDS)).collect();
    Case { spec, rows, columns, layout: rng.pick(&LAYOUTS), seed }
}

fn values(rng: &mut Rng, kind: Row, columns: usize) -> Vec<f32> {
    let extremes = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.5, -1.5, 6e4, -6e4, 1e-7];
    let value = |column: usize| match kind {
        Row::Spread => rng.spread(),
        Row::Ties => rng.below(4) as f32 - 1.0,
        Row::Zeros => rng.pick(&[0.0, -0.0]),
        Row::Extremes => rng.pick(&extremes),
        Row::Ascending => column as f32 / 8.0 - 20.0,
        Row::Descending => 20.0 - column as f32 / 8.0,
        Row::Nans => f32::NAN,
    };
    (0..columns).map(value).collect()
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, columns, layout, seed } = case;
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(*seed);
    let x: Vec<f32> = rows.iter().flat_map(|&kind| values(&mut rng, kind, *columns)).collect();
    let (dims, kept) = ([rows.len(), *columns], [rows.len(), spec.k]);
    let (guarded, stored) = Guarded::<B>::input(stream, spec.dtype, &x, &dims, *layout)?;
    let found = Guarded::<B>::output(stream, spec.dtype, &kept, *layout)?;
    let ids = Guarded::<B>::output(stream, DType::I32, &kept, *layout)?;
    let args = TopKArgs { spec, x: &guarded.view, values: &found.view, ids: &ids.view };
    let ran = device.top_k(stream, args.check()?);
    if denied(device.top_k_supports(spec)) {
        unsupported("top_k", ran)?;
        found.untouched(stream)?;
        return ids.untouched(stream);
    }
    ran?;
    let mut expected = Vec::new();
    for row in 0..rows.len() {
        let ranking = oracle::top_k::ranking(spec.order, &stored[row * columns..][..*columns]);
        expected.extend(ranking.into_iter().take(spec.k).map(|id| row * columns + id));
    }
    let columns_of = expected.iter().map(|place| Bound::exact((place % columns) as f64));
    judge("ids", &kept, &ids.read(stream)?, &columns_of.collect::<Vec<_>>())?;
    let bytes: Vec<u8> = expected.iter().flat_map(|&place| encode(spec.dtype, x[place])).collect();
    same_bits("values", &found.read_bytes(stream)?, &bytes)
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, half, flat) =
        (tensor(DType::F32, &[2, 5])?, tensor(DType::F16, &[2, 5])?, tensor(DType::F32, &[5])?);
    let (values, wide, ids) =
        (tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[2, 4])?, tensor(DType::I32, &[2, 3])?);
    let (long, spec) = (tensor(DType::I32, &[3, 3])?, TopKSpec::largest(3));
    let inside = x.view.narrow(1, 0..3)?;
    for (argument, x, values, ids) in [
        ("x", &half.view, &values.view, &ids.view),
        ("x", &flat.view, &values.view, &ids.view),
        ("k", &values.view.narrow(1, 0..2)?, &values.view, &ids.view),
        ("values", &x.view, &wide.view, &ids.view),
        ("values", &x.view, &ids.view, &ids.view),
        ("values", &x.view, &inside, &ids.view),
        ("ids", &x.view, &values.view, &long.view),
        ("ids", &x.view, &values.view, &values.view),
    ] {
        let (spec, refusal) =
            (&spec, format!("{argument}: {:?} {:?} {:?}", x.dims(), values.dims(), ids.dims()));
        let verdict = refused("top_k", argument, TopKArgs { spec, x, values, ids }.check());
        ensure(verdict.is_ok(), || format!("{refusal}: {verdict:?}"))?;
    }
    let most = TopKSpec::largest(usize::MAX);
    let args = TopKArgs { spec: &most, x: &x.view, values: &values.view, ids: &ids.view };
    refused("top_k", "k", args.check())?;
    values.untouched(stream)?;
    ids.untouched(stream)
}
