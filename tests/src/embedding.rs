//! Embedding, judged.

use crate::{
    case::{Group, Verdict},
    judge::{judge, refused, unsupported},
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Support,
    embedding::{EmbeddingArgs, EmbeddingSpec, EmbeddingTable, TableFormat},
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
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
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("embedding", "edges", edges(), body),
        Group::listed("embedding", "supports", supports(), body),
        Group::seeded("embedding", "random", 30, random, body),
        Group::bodies("embedding", "errors", vec![("wrong shapes, types and overlaps", errors)]),
    ]
}

fn formats() -> impl Iterator<Item = TableFormat> {
    FLOATS.into_iter().map(TableFormat::Float).chain([TableFormat::Int8PerRow])
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, hidden) in [0, 1, 7, 15, 16, 17, 33, 64, 576].into_iter().enumerate() {
        for table in formats() {
            for ids in [vec![], vec![2], vec![4, 0, -1, 5, i32::MIN, i32::MAX, 3, 3]] {
                let (layout, output) = (LAYOUTS[number % 3], DType::F32);
                let seed = number as u64;
                for scale in [1.0, 8.485_281, -0.5] {
                    let ids = ids.clone();
                    cases.push(Case { table, scale, output, vocabulary: 5, hidden, ids, layout, seed });
                }
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for table in formats() {
        for output in FLOATS {
            let (ids, layout) = (vec![8, -1, 9, 0], LAYOUTS[1]);
            for scale in [1.0, 3.0] {
                let ids = ids.clone();
                cases.push(Case { table, scale, output, vocabulary: 9, hidden: 35, ids, layout, seed: 5 });
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let formats: Vec<TableFormat> = formats().collect();
    let (vocabulary, tokens) = (1 + rng.below(40), rng.below(12));
    Case {
        table: rng.pick(&formats),
        scale: if rng.coin() { 1.0 } else { 24.0 * rng.unit() },
        output: rng.pick(&FLOATS),
        vocabulary,
        hidden: rng.below(90),
        ids: (0..tokens).map(|_| rng.below(vocabulary + 4) as i32 - 2).collect(),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { table: format, scale, output, vocabulary, hidden, ids, layout, seed } = case;
    let spec = EmbeddingSpec::new(*format).with_scale(*scale).with_output(*output);
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(*seed);
    let dims = [*vocabulary, *hidden];
    let (table, values, scales) = match format {
        TableFormat::Float(dtype) => {
            let (table, values) =
                Guarded::<B>::input(stream, *dtype, &rng.spreads(vocabulary * hidden), &dims, *layout)?;
            (table, values, None)
        }
        _ => {
            let q: Vec<i32> = rng.int8(vocabulary * hidden).into_iter().map(i32::from).collect();
            let table = Guarded::<B>::integers(stream, DType::I8, &q, &dims, *layout)?;
            let scales: Vec<f32> = (0..*vocabulary).map(|_| 0.01 + rng.unit()).collect();
            let scales = Guarded::<B>::input(stream, DType::F32, &scales, &[*vocabulary], Layout::Dense)?;
            (table, q.into_iter().map(f64::from).collect(), Some(scales))
        }
    };
    let operand = match &scales {
        None => EmbeddingTable::Float(&table.view),
        Some((scales, _)) => EmbeddingTable::Int8PerRow { q: &table.view, scales: &scales.view },
    };
    let ids_tensor = Guarded::<B>::integers(stream, DType::I32, ids, &[ids.len()], Layout::Dense)?;
    let out = Guarded::<B>::output(stream, *output, &[ids.len(), *hidden], *layout)?;
    let args = EmbeddingArgs { spec: &spec, table: operand, ids: &ids_tensor.view, out: &out.view };
    let ran = device.embedding(stream, args.check()?);
    if let Support::No(_) = device.embedding_supports(&spec) {
        unsupported("embedding", ran)?;
        return out.untouched(stream);
    }
    ran?;
    let row_scales = scales.as_ref().map(|(_, values)| values.as_slice());
    let exact = oracle::embedding::rows(&values, row_scales, *hidden, ids, f64::from(*scale));
    let widens = *format == TableFormat::Float(*output) || *output == DType::F32;
    let as_it_is = widens && scales.is_none() && *scale == 1.0;
    let expected: Vec<Bound> =
        exact.into_iter().map(|y| if as_it_is { y } else { y.rounded(*output) }).collect();
    judge("out", &[ids.len(), *hidden], &out.read(stream)?, &expected)
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
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
        ("out", &float, floats(), &ids.view, &wide.view),
        ("out", &float, floats(), &ids.view, &table.view.narrow(0, 0..2)?),
    ] {
        refused("embedding", argument, EmbeddingArgs { spec, table, ids, out }.check())?;
    }
    out.untouched(stream)
}
