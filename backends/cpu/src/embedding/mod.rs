//! Rows of a table by token id; pooling and L2 normalising.

mod l2_normalize;
mod pooling;
mod table;

pub use pooling::CpuPoolingPlan;

use crate::{
    device::Cpu,
    row::{Row, StoredRow},
    simd::{Isa, Kernel, LANES, StoredFloat},
    stream::CpuStream,
    view::{read, with_float, write},
};
use halite_hal::{Element, Result};
use halite_kernels::{
    Checked, Support,
    embedding::{
        Embedding, EmbeddingArgs, EmbeddingSpec, EmbeddingTable, L2NormalizeArgs, L2NormalizeSpec, PoolArgs,
        PoolingLimits, PoolingSpec, PoolingStep, TableFormat,
    },
};
use table::{BlockRow, Int4Row, Int8Row};

impl Embedding for Cpu {
    type PoolingPlan = CpuPoolingPlan;

    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support {
        match spec.table {
            TableFormat::Float(dtype) if !dtype.is_float() => crate::float_only(dtype),
            _ => crate::float_only(spec.output),
        }
    }

    fn embedding(&self, _stream: &mut CpuStream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        self.embedding_supports(args.spec).require("embedding", self, args.spec)?;
        with_float!(args.spec.output, Out => self.look_up::<Out>(&args))
    }

    fn pooling_supports(&self, spec: &PoolingSpec) -> Support {
        pooling::supports(spec)
    }

    fn pooling_plan(
        &self,
        spec: &PoolingSpec,
        max_sequences: usize,
        max_tokens: usize,
    ) -> Result<CpuPoolingPlan> {
        self.pooling_supports(spec).require("pool", self, spec)?;
        CpuPoolingPlan::new(spec, max_sequences, max_tokens)
    }

    fn pooling_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuPoolingPlan,
        step: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        plan.update(step)
    }

    fn pool(&self, _stream: &mut CpuStream, args: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        pooling::pool(self, &args)
    }

    fn l2_normalize_supports(&self, spec: &L2NormalizeSpec) -> Support {
        l2_normalize::supports(spec)
    }

    fn l2_normalize(&self, _stream: &mut CpuStream, args: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        self.l2_normalize_supports(args.spec).require("l2_normalize", self, args.spec)?;
        with_float!(args.spec.dtype, Float => l2_normalize::rows::<Float>(self, &args))
    }
}

impl Cpu {
    fn look_up<O: StoredFloat + Element>(&self, args: &EmbeddingArgs<'_, Cpu>) -> Result<()> {
        match &args.table {
            EmbeddingTable::Float(table) => with_float!(table.dtype(), Float => {
                let table = read::<Float>(table)?;
                self.gather::<O, _>(args, table.rows.count(), |id| StoredRow(table.rows.row(table.data(), id)))
            }),
            EmbeddingTable::Int8PerRow { q, scales } => {
                let (q, scales) = (read::<i8>(q)?, read::<f32>(scales)?);
                self.gather::<O, _>(args, q.rows.count(), |id| Int8Row {
                    q: q.rows.row(q.data(), id),
                    scale: scales.data()[id],
                })
            }
            EmbeddingTable::Int4PerGroup { codes, scales } => {
                let (columns, codes, scales) = (args.out.dims()[1], read::<u8>(codes)?, read::<f32>(scales)?);
                let TableFormat::Int4PerGroup { group_size } = args.spec.table else {
                    return Err(crate::unsupported("embedding", "this form of table", args.spec));
                };
                self.gather::<O, _>(args, codes.rows.count(), |id| Int4Row {
                    codes: codes.rows.row(codes.data(), id),
                    scales: scales.rows.row(scales.data(), id),
                    group: group_size,
                    columns,
                })
            }
            EmbeddingTable::Blocks(table) => {
                let (columns, table) = (args.out.dims()[1], read::<u8>(table)?);
                let Some(format) = args.spec.table.blocks() else {
                    return Err(crate::unsupported("embedding", "this form of table", args.spec));
                };
                self.gather::<O, _>(args, table.rows.count(), |id| BlockRow {
                    format,
                    blocks: table.rows.row(table.data(), id),
                    columns,
                })
            }
            other => Err(crate::unsupported("embedding", "this form of table", other)),
        }
    }

    /// Writes the row of each id that the table of `vocabulary` rows has, and zeros for others.
    fn gather<O: StoredFloat + Element, R: Row>(
        &self,
        args: &EmbeddingArgs<'_, Cpu>,
        vocabulary: usize,
        row: impl Fn(usize) -> R,
    ) -> Result<()> {
        let (ids, mut out) = (read::<i32>(args.ids)?, write::<O>(args.out)?);
        let layout = out.rows;
        // One row is at most some kilobytes and a step has few: the caller does it alone.
        for (&id, out) in ids.data().iter().zip(out.data().chunks_mut(layout.outer_stride)) {
            let out = &mut out[..layout.columns];
            match usize::try_from(id) {
                Ok(id) if id < vocabulary => {
                    self.tier().run(Scaled { row: row(id), factor: args.spec.scale, out });
                }
                _ => out.fill(O::ZERO),
            }
        }
        Ok(())
    }
}

/// A row times a factor.
struct Scaled<'a, R, O> {
    row: R,
    factor: f32,
    out: &'a mut [O],
}

impl<R: Row, O: StoredFloat> Kernel for Scaled<'_, R, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (vector, out) in self.out.chunks_mut(LANES).enumerate() {
            let mut y = self.row.at(isa, vector * LANES);
            // A factor of 1 leaves the bits of a NaN too.
            if self.factor != 1.0 {
                y = isa.mul(y, isa.splat(self.factor));
            }
            O::store_partial(isa, y, out);
        }
    }
}
