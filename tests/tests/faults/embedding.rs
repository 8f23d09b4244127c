//! Embedding, pooling and L2 normalising of the exact device.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, DType, Support,
    embedding::{
        Embedding, EmbeddingArgs, EmbeddingSpec, EmbeddingTable, L2NormalizeArgs, L2NormalizeSpec, PoolArgs,
        Pooling, PoolingLimits, PoolingPlan, PoolingSpec, PoolingStep, TableFormat,
    },
};
use halite_parity::{
    oracle::{self, linear::group_wise::Weights},
    tolerance::Bound,
};

#[derive(Debug)]
pub(crate) struct Sequences {
    spec: PoolingSpec,
    max_sequences: usize,
    max_tokens: usize,
    cu_seqlens: Vec<u32>,
}

impl PoolingPlan for Sequences {
    fn spec(&self) -> &PoolingSpec {
        &self.spec
    }
    fn max_sequences(&self) -> usize {
        self.max_sequences
    }
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }
    fn sequences(&self) -> usize {
        self.cu_seqlens.len() - 1
    }
    fn tokens(&self) -> usize {
        self.cu_seqlens.last().map_or(0, |&tokens| tokens as usize)
    }
}

impl Exact {
    /// The elements of a table, dequantised.
    fn elements(&self, args: &EmbeddingArgs<'_, Self>) -> Vec<Bound> {
        let hidden = args.out.dims()[1];
        let neighbours = |mut scales: Vec<f64>| {
            if self.has(Fault::EmbeddingNeighbourScale) {
                let step = 1.min(scales.len());
                scales.rotate_left(step);
            }
            scales
        };
        let weights = match &args.table {
            EmbeddingTable::Float(table) => return read(table).into_iter().map(Bound::exact).collect(),
            EmbeddingTable::Int8PerRow { q, scales } => {
                let (rows, scales) = (q.dims()[0], neighbours(read(scales)));
                let q = read(q).into_iter().map(|q| q as i64).collect();
                Weights { rows, k: hidden, group: hidden.max(1), q, scales, mins: Vec::new() }
            }
            EmbeddingTable::Int4PerGroup { codes, scales } => {
                let TableFormat::Int4PerGroup { group_size: group } = args.spec.table else {
                    return Vec::new();
                };
                let (rows, scales) = (codes.dims()[0], neighbours(read(scales)));
                let swapped = usize::from(self.has(Fault::EmbeddingHalvesSwapped));
                let bytes = read(codes);
                let code = |row: usize, column: usize| {
                    let byte = bytes[row * hidden.div_ceil(2) + column / 2] as i64;
                    (byte >> (4 * ((column + swapped) % 2)) & 15) - 8
                };
                let q = (0..rows * hidden).map(|i| code(i / hidden, i % hidden)).collect();
                Weights { rows, k: hidden, group, q, scales, mins: Vec::new() }
            }
            EmbeddingTable::Blocks(table) => {
                let Some(format) = args.spec.table.blocks() else { return Vec::new() };
                let bytes: Vec<u8> = read(table).into_iter().map(|byte| byte as u8).collect();
                let mut weights = Weights::of_blocks(format, &bytes, table.dims()[0], hidden);
                if self.has(Fault::EmbeddingNoMinima) {
                    weights.mins.clear();
                }
                weights
            }
            _ => return Vec::new(),
        };
        (0..weights.rows * hidden).map(|i| weights.element(i / hidden, i % hidden)).collect()
    }
}

impl Embedding for Exact {
    type PoolingPlan = Sequences;

    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support {
        match spec.table {
            TableFormat::Float(dtype) if !dtype.is_float() => Support::No(format!("{dtype} is no float")),
            _ => Support::Native,
        }
    }

    fn embedding(&self, _: &mut Queue, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        let mut ids: Vec<i32> = read(args.ids).into_iter().map(|id| id as i32).collect();
        let (hidden, elements) = (args.out.dims()[1], self.elements(&args));
        if self.has(Fault::EmbeddingClamps) {
            let last = (elements.len() / hidden.max(1)) as i32 - 1;
            ids.iter_mut().for_each(|id| *id = (*id).clamp(0, last.max(0)));
        }
        let factor = if self.has(Fault::EmbeddingNoFactor) { 1.0 } else { f64::from(args.spec.scale) };
        let mut rows = values(oracle::embedding::rows(&elements, hidden, &ids, factor));
        if self.has(Fault::EmbeddingNanAsZero) {
            rows.iter_mut().filter(|y| y.is_nan()).for_each(|y| *y = 0.0);
        }
        write(args.out, rows);
        Ok(())
    }

    fn pooling_supports(&self, _: &PoolingSpec) -> Support {
        Support::Native
    }

    fn pooling_plan(&self, spec: &PoolingSpec, max_sequences: usize, max_tokens: usize) -> Result<Sequences> {
        Ok(Sequences { spec: spec.clone(), max_sequences, max_tokens, cu_seqlens: vec![0] })
    }

    fn pooling_update(
        &self,
        _: &mut Queue,
        plan: &mut Sequences,
        step: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        step.checked_against("pool", &plan.limits())?;
        plan.cu_seqlens = step.cu_seqlens.to_vec();
        Ok(())
    }

    fn pool(&self, _: &mut Queue, args: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        let (plan, hidden, x) = (args.plan, args.x.dims()[1], read(args.x));
        let mut out = Vec::new();
        for window in plan.cu_seqlens.windows(2) {
            let (start, end) = (window[0] as usize, window[1] as usize);
            let mut row = values(oracle::embedding::pool(plan.spec.pooling, &x, hidden, start..end));
            let mean = plan.spec.pooling == Pooling::Mean;
            if self.has(Fault::PoolingLastOfNext) && plan.spec.pooling == Pooling::Last {
                let last = end.min(plan.tokens().max(1) - 1);
                row = x.iter().copied().skip(last * hidden).take(hidden).collect();
                row.resize(hidden, 0.0);
            }
            if self.has(Fault::PoolingSum) && mean {
                row.iter_mut().for_each(|y| *y *= (end - start) as f64);
            }
            if self.has(Fault::PoolingHalfSums) && mean && plan.spec.input == DType::F16 {
                let beyond = |y: f64| (y * (end - start) as f64).abs() > 65_504.0;
                row.iter_mut().filter(|y| beyond(**y)).for_each(|y| *y = f64::INFINITY);
            }
            if self.has(Fault::PoolingNanSkipped) {
                row.iter_mut().filter(|y| y.is_nan()).for_each(|y| *y = 0.0);
            }
            if self.has(Fault::PoolingEmptyIsNan) && start == end {
                row.fill(f64::NAN);
            }
            if self.has(Fault::PoolingBatchVariant) && mean && plan.sequences() > 1 {
                row.iter_mut().for_each(|y| *y = f64::from(*y as f32) * (1.0 + 1e-6));
            }
            out.extend(row);
        }
        write(args.out, out);
        Ok(())
    }

    fn l2_normalize_supports(&self, _: &L2NormalizeSpec) -> Support {
        Support::Native
    }

    fn l2_normalize(&self, _: &mut Queue, args: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        let (columns, eps) = (args.x.dims()[1], f64::from(args.spec.eps));
        let mut out = Vec::new();
        for row in read(args.x).chunks_exact(columns.max(1)) {
            let squares: f64 = row.iter().map(|x| x * x).sum();
            out.extend(if self.has(Fault::L2EpsAdded) {
                row.iter().map(|x| x / (squares + eps).sqrt()).collect()
            } else if self.has(Fault::L2SquaresOverflow) && squares > f64::from(f32::MAX) {
                vec![0.0; columns]
            } else if self.has(Fault::L2ZerosAreNan) && squares == 0.0 {
                vec![f64::NAN; columns]
            } else {
                values(oracle::embedding::l2_normalize(eps, row))
            });
        }
        write(args.out, out);
        Ok(())
    }
}
