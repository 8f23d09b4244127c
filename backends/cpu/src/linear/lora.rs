//! Low-rank adapters. Rows in a row that have the same adapter are multiplied together; each is its own chain of
//! multiply-adds, so which rows those are does not change a bit.

use super::{
    choice::FloatKernel,
    dequantized::DequantizedProduct,
    epilogue::{Epilogue, RowSums},
    float::{FloatProduct, FloatRows, FloatWeights},
    output::OutputRows,
    pack::Place,
    packed::CpuPacked,
};
use crate::{
    buffer::CpuBuffer,
    device::Cpu,
    room::room_for,
    simd::{Isa, LANES, StoredFloat},
    stream::CpuStream,
    view::{read, with_float, write},
};
use halite_hal::{DType, Element, Result, Storage, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{
        Activations, Epilogue as After, Linear, LinearArgs, Lora, LoraAdapter, LoraArgs, LoraLimits,
        LoraPlan, LoraSpec, LoraStep,
    },
};
use std::ops::Range;

/// A step's adapters, and room for what lies between the two products.
#[derive(Debug)]
pub struct CpuLoraPlan {
    spec: LoraSpec,
    max_rows: usize,
    /// Neighbouring rows with the same adapter.
    runs: Vec<Run>,
    rows: usize,
    /// F32 `[max_rows, max_rank]`.
    hidden: Tensor<Cpu>,
    /// A byte that a call holds for as long as it works in this memory: of two at once, one is refused.
    in_use: CpuBuffer,
}

#[derive(Clone, Debug)]
struct Run {
    rows: Range<usize>,
    adapter: usize,
}

impl LoraPlan for CpuLoraPlan {
    fn spec(&self) -> &LoraSpec {
        &self.spec
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn last_adapter(&self) -> Option<usize> {
        self.runs.iter().map(|run| run.adapter).max()
    }
}

impl Lora for Cpu {
    type LoraPlan = CpuLoraPlan;

    fn lora_supports(&self, _spec: &LoraSpec) -> Support {
        Support::Native
    }

    fn lora_plan(&self, spec: &LoraSpec, max_rows: usize) -> Result<CpuLoraPlan> {
        spec.check()?;
        let hidden = Tensor::new(self, DType::F32, &[max_rows, spec.max_rank])?;
        let in_use = CpuBuffer::alloc(1)?;
        Ok(CpuLoraPlan { spec: spec.clone(), max_rows, runs: room_for(max_rows)?, rows: 0, hidden, in_use })
    }

    fn lora_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuLoraPlan,
        step: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        step.checked_against("lora", &plan.limits())?;
        plan.rows = step.adapters.len();
        plan.runs.clear();
        for (row, &adapter) in step.adapters.iter().enumerate() {
            let Ok(adapter) = usize::try_from(adapter) else { continue };
            match plan.runs.last_mut() {
                Some(run) if run.adapter == adapter && run.rows.end == row => run.rows.end = row + 1,
                _ => plan.runs.push(Run { rows: row..row + 1, adapter }),
            }
        }
        Ok(())
    }

    fn lora_workspace(&self, plan: &CpuLoraPlan, adapters: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        let downs = adapters.iter().flatten().map(|adapter| adapter.down);
        downs.map(|down| self.linear_workspace(down, plan.max_rows)).max().unwrap_or(0)
    }

    fn lora(&self, stream: &mut CpuStream, args: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        if args.out.shape().elements() == 0 || args.x.shape().elements() == 0 {
            return Ok(());
        }
        let _mine = args.plan.in_use.write(0..1)?;
        for Run { rows, adapter } in &args.plan.runs {
            // The check has found an entry for every index.
            let Some(&Some(adapter)) = args.adapters.get(*adapter) else { continue };
            let rank = adapter.down.as_ref().out_features;
            let hidden = args.plan.hidden.narrow(0, 0..rows.len())?.narrow(1, 0..rank)?;
            let x = args.x.narrow(0, rows.clone())?;
            let (x, weights, epilogue) = (Activations::Float(&x), adapter.down, After::default());
            let down = LinearArgs { x, weights, epilogue, out: &hidden };
            self.linear(stream, down.check()?)?;
            let out = args.out.narrow(0, rows.clone())?;
            with_float!(out.dtype(), Float => self.add_up::<Float>(&adapter, &hidden, &out))?;
        }
        Ok(())
    }
}

impl Cpu {
    /// Adds what an adapter makes of its hidden rows.
    fn add_up<T: StoredFloat + Element>(
        &self,
        adapter: &LoraAdapter<'_, Cpu>,
        hidden: &Tensor<Cpu>,
        out: &Tensor<Cpu>,
    ) -> Result<()> {
        let packed: &CpuPacked = adapter.up;
        let spec = packed.as_ref();
        let hidden = read::<f32>(hidden)?;
        let panels = packed.panels().read(0..packed.panels().len())?;
        let mut out = write::<T>(out)?;
        let layout = hidden.rows;
        let rows = FloatRows::new(hidden.data(), layout.outer, layout.outer_stride, spec.in_features);
        let out = super::rows_of(&mut out);
        let add = |out| AddScaled { scale: adapter.scale, out };
        match FloatKernel::of(spec) {
            FloatKernel::Dequantized => {
                self.share(DequantizedProduct { rows, weights: packed.groups(&panels) }, out, add);
            }
            FloatKernel::Stored(dtype) => with_float!(dtype, Stored => {
                let panels: &[Stored] = bytemuck::cast_slice(&panels);
                let columns = packed.columns();
                let weights = FloatWeights::new(panels, spec.weight_rows(), spec.in_features, columns);
                self.share(FloatProduct::new(rows, weights), out, add);
            }),
        }
        Ok(())
    }
}

/// `out = round(out + sum * scale)`, each operation rounded by itself.
struct AddScaled<'a, T> {
    scale: f32,
    out: OutputRows<'a, T>,
}

impl<T: StoredFloat> Epilogue for AddScaled<'_, T> {
    type Sum = f32;

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let scale = isa.splat(self.scale);
        let out = self.out.segment(row, place.column, place.valid);
        for (sums, out) in sums.iter().zip(out.chunks_mut(LANES)) {
            let added = isa.mul(isa.load(sums), scale);
            let y = isa.add(T::load_partial(isa, out), added);
            T::store_partial(isa, y, out);
        }
    }
}
