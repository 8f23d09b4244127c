//! Embedding, pooling and L2 normalising, judged.

mod l2_normalize;
pub(crate) mod pooling;
mod table;

use crate::{
    case::{Group, Verdict, ensure},
    judge::{judge, refused, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Support,
    embedding::{EmbeddingArgs, EmbeddingSpec, EmbeddingTable, TableFormat},
};
use table::{FORMATS, Table, fits};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// How the table is stored.
    pub table: TableFormat,
    /// Factor of the rows.
    pub scale: f32,
    /// Type of the output.
    pub output: DType,
    /// Rows of the table.
    pub vocabulary: usize,
    /// Columns.
    pub hidden: usize,
    /// The ids, some of them outside of the table.
    pub ids: Vec<i32>,
    /// How table and output lie in memory.
    pub layout: Layout,
    /// Whether the table's first element or scale is a NaN, and the last an infinity.
    pub extremes: bool,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("embedding", "edges", edges(), body),
        Group::listed("embedding", "supports", supports(), body),
        Group::seeded("embedding", "random", 30, random, body),
        Group::listed("embedding", "pooling", pooling::cases(), pooling::body),
        Group::seeded("embedding", "pooling_random", 30, pooling::random, pooling::body),
        Group::listed("embedding", "l2_normalize", l2_normalize::cases(), l2_normalize::body),
        Group::seeded("embedding", "l2_normalize_random", 30, l2_normalize::random, l2_normalize::body),
        Group::bodies(
            "embedding",
            "errors",
            vec![
                ("wrong shapes, types and overlaps", errors),
                ("of pooling", pooling::errors),
                ("of L2 normalising", l2_normalize::errors),
            ],
        ),
    ]
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, hidden) in [0, 1, 7, 15, 16, 17, 33, 64, 512, 576].into_iter().enumerate() {
        for table in FORMATS.into_iter().filter(|&format| fits(format, hidden)) {
            for ids in [vec![], vec![2], vec![4, 0, -1, 5, i32::MIN, i32::MAX, 3, 3]] {
                let (layout, output) = (LAYOUTS[number % 3], DType::F32);
                let seed = number as u64;
                for scale in [1.0, 8.485_281, -0.5] {
                    let ids = ids.clone();
                    let (vocabulary, extremes) = (5, false);
                    cases.push(Case {
                        table,
                        scale,
                        output,
                        vocabulary,
                        hidden,
                        ids,
                        layout,
                        extremes,
                        seed,
                    });
                }
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for table in FORMATS {
        let hidden = if table.blocks().is_some() { 256 } else { 35 };
        for output in FLOATS {
            let (ids, layout) = (vec![8, -1, 9, 0], LAYOUTS[1]);
            for scale in [1.0, 3.0] {
                let ids = ids.clone();
                let (vocabulary, extremes, seed) = (9, scale == 3.0, 5);
                cases.push(Case { table, scale, output, vocabulary, hidden, ids, layout, extremes, seed });
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let table = rng.pick(&FORMATS);
    let (vocabulary, tokens) = (1 + rng.below(40), rng.below(12));
    Case {
        table,
        scale: if rng.coin() { 1.0 } else { 24.0 * rng.unit() },
        output: rng.pick(&FLOATS),
        vocabulary,
        hidden: if table.blocks().is_some() { 256 * rng.below(3) } else { rng.below(90) },
        ids: (0..tokens).map(|_| rng.below(vocabulary + 4) as i32 - 2).collect(),
        layout: rng.pick(&LAYOUTS),
        extremes: rng.coin(),
        seed,
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { table: format, scale, output, vocabulary, hidden, ids, layout, extremes, seed } = case;
    let spec = EmbeddingSpec::new(*format).with_scale(*scale).with_output(*output);
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(*seed);
    let table = Table::<B>::new(stream, &mut rng, *format, [*vocabulary, *hidden], *layout, *extremes)?;
    let ids_tensor = Guarded::<B>::integers(stream, DType::I32, ids, &[ids.len()], Layout::Dense)?;
    let out = Guarded::<B>::output(stream, *output, &[ids.len(), *hidden], *layout)?;
    let args = EmbeddingArgs { spec: &spec, table: table.argument(), ids: &ids_tensor.view, out: &out.view };
    let ran = device.embedding(stream, args.check()?);
    if denied(device.embedding_supports(&spec)) {
        unsupported("embedding", ran)?;
        return out.untouched(stream);
    }
    ran?;
    let exact = oracle::embedding::rows(&table.elements, *hidden, ids, f64::from(*scale));
    let widens = *format == TableFormat::Float(*output) || *output == DType::F32;
    // Floats that no operation touched keep their bits.
    let as_it_is = widens && matches!(format, TableFormat::Float(_)) && *scale == 1.0;
    let expected: Vec<Bound> =
        exact.into_iter().map(|y| if as_it_is { y } else { y.rounded(*output) }).collect();
    judge("out", &[ids.len(), *hidden], &out.read(stream)?, &expected)
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for dtype in [DType::I8, DType::U8, DType::I32] {
        // The check refuses such a table whatever it holds, so no backend may say that it runs it.
        let spec = EmbeddingSpec::new(TableFormat::Float(dtype));
        ensure(matches!(device.embedding_supports(&spec), Support::No(_)), || {
            format!("{spec:?} is supported")
        })?;
    }
    let float = EmbeddingSpec::new(TableFormat::Float(DType::F32));
    let int8 = EmbeddingSpec::new(TableFormat::Int8PerRow);
    let (nan, infinite) = (float.clone().with_scale(f32::NAN), int8.clone().with_scale(f32::INFINITY));
    let table = Guarded::<B>::output(stream, DType::F32, &[5, 3], Layout::Dense)?;
    let q = Guarded::<B>::output(stream, DType::I8, &[5, 3], Layout::Dense)?;
    let scales = Guarded::<B>::output(stream, DType::F32, &[5], Layout::Dense)?;
    let few = Guarded::<B>::output(stream, DType::F32, &[4], Layout::Dense)?;
    let ids = Guarded::<B>::output(stream, DType::I32, &[2], Layout::Dense)?;
    let out = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Dense)?;
    let wide = Guarded::<B>::output(stream, DType::F32, &[2, 4], Layout::Dense)?;
    let bytes = Guarded::<B>::output(stream, DType::U8, &[5, 2], Layout::Dense)?;
    let of_groups = Guarded::<B>::output(stream, DType::F32, &[5, 1], Layout::Dense)?;
    let many = Guarded::<B>::output(stream, DType::F32, &[2, 32], Layout::Dense)?;
    let int4 = |group_size| EmbeddingSpec::new(TableFormat::Int4PerGroup { group_size });
    let blocks = EmbeddingSpec::new(TableFormat::Q4_0);
    let codes = |codes, scales| EmbeddingTable::Int4PerGroup { codes, scales };
    let floats = || EmbeddingTable::Float(&table.view);
    let ints = |scales| EmbeddingTable::Int8PerRow { q: &q.view, scales };
    for (argument, spec, table, ids, out) in [
        ("scale", &nan, floats(), &ids.view, &out.view),
        ("scale", &infinite, ints(&scales.view), &ids.view, &out.view),
        ("ids", &float, floats(), &scales.view, &out.view),
        ("ids", &float, floats(), &table.view, &out.view),
        ("table", &float, EmbeddingTable::Float(&q.view), &ids.view, &out.view),
        ("table", &float, EmbeddingTable::Float(&scales.view), &ids.view, &out.view),
        ("table", &int8, floats(), &ids.view, &out.view),
        ("table", &float, ints(&scales.view), &ids.view, &out.view),
        ("scales", &int8, ints(&few.view), &ids.view, &out.view),
        ("group_size", &int4(0), codes(&bytes.view, &of_groups.view), &ids.view, &out.view),
        ("group_size", &int4(8), codes(&bytes.view, &of_groups.view), &ids.view, &out.view),
        ("table", &int4(16), codes(&q.view, &of_groups.view), &ids.view, &out.view),
        ("table", &int4(16), codes(&bytes.view, &of_groups.view), &ids.view, &many.view),
        ("scales", &int4(16), codes(&bytes.view, &few.view), &ids.view, &out.view),
        ("table", &int4(16), EmbeddingTable::Blocks(&bytes.view), &ids.view, &out.view),
        ("out", &blocks, EmbeddingTable::Blocks(&bytes.view), &ids.view, &out.view),
        ("table", &blocks, EmbeddingTable::Blocks(&bytes.view), &ids.view, &many.view),
        ("table", &blocks, EmbeddingTable::Float(&table.view), &ids.view, &out.view),
        ("table", &float, floats(), &ids.view, &wide.view),
        ("out", &float, floats(), &ids.view, &table.view.narrow(0, 0..2)?),
    ] {
        refused("embedding", argument, EmbeddingArgs { spec, table, ids, out }.check())?;
    }
    out.untouched(stream)
}
