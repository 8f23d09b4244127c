//! Tables of every format, with their elements.

use crate::{
    case::Fault,
    oracle::linear::group_wise::Weights,
    poison::{Guarded, Layout},
    random::Rng,
    tolerance::Bound,
};
use half::f16;
use halite_kernels::{
    Backend, DType,
    embedding::{EmbeddingTable, TableFormat},
    linear::WeightFormat,
};

/// Every format.
pub(super) const FORMATS: [TableFormat; 9] = [
    TableFormat::Float(DType::F32),
    TableFormat::Float(DType::F16),
    TableFormat::Float(DType::Bf16),
    TableFormat::Int8PerRow,
    TableFormat::Int4PerGroup { group_size: 16 },
    TableFormat::Int4PerGroup { group_size: 64 },
    TableFormat::Q4_0,
    TableFormat::Q4_1,
    TableFormat::Q4K,
];

/// Whether rows of `hidden` columns can be stored so.
pub(super) fn fits(format: TableFormat, hidden: usize) -> bool {
    format.blocks().and_then(WeightFormat::block).is_none_or(|block| hidden.is_multiple_of(block.values))
}

/// A table on the device, and its elements as F32 arithmetic has them.
pub(super) struct Table<B: Backend> {
    format: TableFormat,
    data: Guarded<B>,
    scales: Option<Guarded<B>>,
    pub(super) elements: Vec<Bound>,
}

impl<B: Backend> Table<B> {
    pub(super) fn new(
        stream: &mut B::Stream,
        rng: &mut Rng,
        format: TableFormat,
        [vocabulary, hidden]: [usize; 2],
        layout: Layout,
        extremes: bool,
    ) -> Result<Self, Fault> {
        let (dims, count) = ([vocabulary, hidden], vocabulary * hidden);
        let scale_layout =
            if layout == Layout::Dense { layout } else { Layout::Rows { before: 1, after: 2 } };
        let mut floats = |dtype, values: &[f32], dims: &[usize], layout| {
            Guarded::<B>::input(stream, dtype, values, dims, layout)
        };
        let elements =
            |weights: &Weights| (0..count).map(|i| weights.element(i / hidden, i % hidden)).collect();
        if let TableFormat::Float(dtype) = format {
            let mut values = rng.spreads(count);
            mark(&mut values, extremes);
            let (data, values) = floats(dtype, &values, &dims, layout)?;
            return Ok(Table {
                format,
                data,
                scales: None,
                elements: values.into_iter().map(Bound::exact).collect(),
            });
        }
        if let Some((blocks, block)) = format.blocks().and_then(|blocks| Some((blocks, blocks.block()?))) {
            let bytes = blocks_of(rng, blocks, count);
            let row = hidden / block.values * block.bytes;
            let values: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte)).collect();
            let (data, _) = floats(DType::U8, &values, &[vocabulary, row], layout)?;
            let elements = elements(&Weights::of_blocks(blocks, &bytes, vocabulary, hidden));
            return Ok(Table { format, data, scales: None, elements });
        }
        let group = match format {
            TableFormat::Int4PerGroup { group_size } => group_size,
            _ => hidden.max(1),
        };
        let groups = hidden.div_ceil(group);
        let four_bits = matches!(format, TableFormat::Int4PerGroup { .. });
        let scale_dims = if four_bits { vec![vocabulary, groups] } else { vec![vocabulary] };
        let mut scales: Vec<f32> = (0..scale_dims.iter().product()).map(|_| 0.01 + rng.unit()).collect();
        mark(&mut scales, extremes);
        let (scales, scale_values) = floats(DType::F32, &scales, &scale_dims, scale_layout)?;
        let (q, data) = if four_bits {
            let q: Vec<i64> = (0..count).map(|_| rng.below(16) as i64 - 8).collect();
            // The half of a byte that no column has is filled like any other.
            let row = |q: &[i64]| q.chunks(2).map(pair).collect::<Vec<f32>>();
            let bytes: Vec<f32> = q.chunks(hidden.max(1)).flat_map(row).collect();
            (q, floats(DType::U8, &bytes, &[vocabulary, hidden.div_ceil(2)], layout)?.0)
        } else {
            let q: Vec<i64> = rng.int8(count).into_iter().map(i64::from).collect();
            let values: Vec<f32> = q.iter().map(|&q| q as f32).collect();
            (q, floats(DType::I8, &values, &dims, layout)?.0)
        };
        let weights =
            Weights { rows: vocabulary, k: hidden, group, q, scales: scale_values, mins: Vec::new() };
        Ok(Table { format, data, scales: Some(scales), elements: elements(&weights) })
    }

    pub(super) fn argument(&self) -> EmbeddingTable<'_, B> {
        match (self.format, &self.scales) {
            (TableFormat::Int4PerGroup { .. }, Some(scales)) => {
                EmbeddingTable::Int4PerGroup { codes: &self.data.view, scales: &scales.view }
            }
            (_, Some(scales)) => EmbeddingTable::Int8PerRow { q: &self.data.view, scales: &scales.view },
            (TableFormat::Float(_), _) => EmbeddingTable::Float(&self.data.view),
            _ => EmbeddingTable::Blocks(&self.data.view),
        }
    }
}

/// The first a NaN, the last an infinity, where that is asked for.
fn mark(values: &mut [f32], extremes: bool) {
    if let ([first, .., last], true) = (values, extremes) {
        (*first, *last) = (f32::NAN, f32::NEG_INFINITY);
    }
}

fn pair(q: &[i64]) -> f32 {
    let code = |half: usize| q.get(half).map_or(13, |q| q + 8);
    (code(0) + 16 * code(1)) as f32
}

/// Stored blocks of `count` values.
fn blocks_of(rng: &mut Rng, format: WeightFormat, count: usize) -> Vec<u8> {
    let Some(block) = format.block() else { return Vec::new() };
    let mut bytes = Vec::new();
    for _ in 0..count / block.values {
        let start = bytes.len();
        bytes.extend((0..block.bytes).map(|_| rng.below(256) as u8));
        bytes[start..start + 2].copy_from_slice(&f16::from_f32(rng.away() / 16.0).to_le_bytes());
        if format != WeightFormat::Q4_0 {
            bytes[start + 2..start + 4].copy_from_slice(&f16::from_f32(rng.away() / 8.0).to_le_bytes());
        }
    }
    bytes
}
