//! Rows of a table by token id.

use crate::{
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat},
    stream::CpuStream,
    view::{read, with_float, write},
};
use halite_hal::{DType, Element, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    embedding::{Embedding, EmbeddingArgs, EmbeddingSpec, EmbeddingTable},
};

impl Embedding for Cpu {
    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support {
        match spec.output {
            DType::F32 => Support::Native,
            other => Support::No(format!("output {other}: only F32 is built")),
        }
    }

    fn embedding(&self, _stream: &mut CpuStream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        self.embedding_supports(args.spec).require("embedding", self, args.spec)?;
        match &args.table {
            EmbeddingTable::Float(table) => with_float!(table.dtype(), Float => {
                self.gather::<Float>(&args, table, |_| None, |row, out| {
                    self.tier().run(Widen { row, out });
                })
            }),
            EmbeddingTable::Int8PerRow { q, scales } => {
                let scales = read::<f32>(scales)?;
                let scales = scales.data();
                self.gather::<i8>(
                    &args,
                    q,
                    |id| Some(scales[id]),
                    |row, out| {
                        self.tier().run(Dequantize { row, out });
                    },
                )
            }
            other => Err(crate::unsupported("embedding", "this form of table", other)),
        }
    }
}

impl Cpu {
    /// Copies the row of each id by `copy`, then multiplies it by the row's factor, where it has one, and by the spec's.
    fn gather<T: Element>(
        &self,
        args: &EmbeddingArgs<'_, Cpu>,
        table: &Tensor<Cpu>,
        factor: impl Fn(usize) -> Option<f32>,
        copy: impl Fn(&[T], &mut [f32]),
    ) -> Result<()> {
        let (table, ids, mut out) = (read::<T>(table)?, read::<i32>(args.ids)?, write::<f32>(args.out)?);
        let (rows, out_rows) = (table.rows, out.rows);
        // One row is at most some kilobytes and a step has few: the caller does it alone.
        for (&id, out) in ids.data().iter().zip(out.data().chunks_mut(out_rows.outer_stride)) {
            let out = &mut out[..out_rows.columns];
            match usize::try_from(id) {
                Ok(id) if id < rows.count() => {
                    copy(rows.row(table.data(), id), out);
                    if let Some(factor) = factor(id) {
                        out.iter_mut().for_each(|value| *value *= factor);
                    }
                    if args.spec.scale != 1.0 {
                        out.iter_mut().for_each(|value| *value *= args.spec.scale);
                    }
                }
                _ => out.fill(0.0),
            }
        }
        Ok(())
    }
}

struct Widen<'a, T> {
    row: &'a [T],
    out: &'a mut [f32],
}

impl<T: StoredFloat> Kernel for Widen<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, out) in self.row.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            isa.store_partial(T::load_partial(isa, row), out);
        }
    }
}

struct Dequantize<'a> {
    row: &'a [i8],
    out: &'a mut [f32],
}

impl Kernel for Dequantize<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, out) in self.row.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            isa.store_partial(isa.to_f32(isa.load_i8_partial(row)), out);
        }
    }
}
