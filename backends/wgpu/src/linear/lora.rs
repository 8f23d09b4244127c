//! Low-rank adapters. A step's rows are sorted by adapter, copied together where they are not neighbours, and multiplied
//! twice for each adapter that has any; a row's bits do not depend on which rows those are.

use super::{
    adapter_rows::Sorted,
    product::{Added, After, Input, Matrix, Product},
};
use crate::{device::Wgpu, moe::Gather, operand::Operand, room, stream::WgpuStream};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{Activations, Lora, LoraAdapter, LoraArgs, LoraLimits, LoraPlan, LoraSpec, LoraStep},
};

/// A step's adapters: the rows of each on the host, and where they come from on the device.
#[derive(Debug)]
pub struct WgpuLoraPlan {
    spec: LoraSpec,
    max_rows: usize,
    rows: usize,
    sorted: Sorted,
    /// I32 `[2, max_rows]`: the row at each place of the sorted rows, and the place of each row.
    table: Tensor<Wgpu>,
}

impl LoraPlan for WgpuLoraPlan {
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
        self.sorted.adapters.last().map(|of| of.adapter)
    }
}

/// Scratch memory of a call: rows copied together, and what lies between the two products.
struct Sizes {
    rows: usize,
    in_features: usize,
    max_rank: usize,
}

impl Sizes {
    fn of(plan: &WgpuLoraPlan, adapters: &[Option<LoraAdapter<'_, Wgpu>>]) -> Self {
        let downs = || adapters.iter().flatten().map(|adapter| adapter.down.as_ref());
        Sizes {
            rows: plan.max_rows,
            in_features: downs().next().map_or(0, |down| down.in_features),
            max_rank: downs().map(|down| down.out_features).max().unwrap_or(0),
        }
    }

    fn bytes(&self, activations: DType) -> u64 {
        let gathered = room::bytes(activations, self.rows.saturating_mul(self.in_features));
        gathered.saturating_add(room::bytes(DType::F32, self.rows.saturating_mul(self.max_rank)))
    }
}

impl Lora for Wgpu {
    type LoraPlan = WgpuLoraPlan;

    fn lora_supports(&self, _: &LoraSpec) -> Support {
        Support::Native
    }

    fn lora_plan(&self, spec: &LoraSpec, max_rows: usize) -> Result<WgpuLoraPlan> {
        spec.check()?;
        let table = self.bindable("lora", "bytes of sorted rows", DType::I32, &[2, max_rows])?;
        Ok(WgpuLoraPlan { spec: spec.clone(), max_rows, rows: 0, sorted: Sorted::default(), table })
    }

    fn lora_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuLoraPlan,
        step: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        step.checked_against("lora", &plan.limits())?;
        plan.rows = 0;
        let sorted = Sorted::of(step.adapters);
        let Sorted { order, places, .. } = &sorted;
        // Both lists in one piece.
        let mut table = vec![-1i32; plan.max_rows];
        table[..order.len()].copy_from_slice(order);
        table.extend(places);
        stream.stage(plan.table.buffer(), plan.table.offset(), bytemuck::cast_slice(&table))?;
        (plan.rows, plan.sorted) = (step.adapters.len(), sorted);
        Ok(())
    }

    fn lora_workspace(&self, plan: &WgpuLoraPlan, adapters: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        Sizes::of(plan, adapters).bytes(plan.spec.activations)
    }

    fn lora(&self, stream: &mut WgpuStream, args: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        if args.out.shape().elements() == 0 || args.x.shape().elements() == 0 {
            return Ok(());
        }
        let LoraArgs { plan, x, adapters, out } = &*args;
        let mut room = stream.scratch("lora", self.lora_workspace(plan, adapters))?;
        let sizes = Sizes::of(plan, adapters);
        let gathered = room.tensor("lora", plan.spec.activations, &[sizes.rows, sizes.in_features])?;
        let hidden = room.tensor("lora", DType::F32, &[sizes.rows, sizes.max_rank])?;
        let mut is_gathered = false;
        for of in &plan.sorted.adapters {
            // The check has found an entry for every index.
            let Some(&Some(adapter)) = adapters.get(of.adapter) else { continue };
            let x = match plan.sorted.neighbours(of) {
                Some(first) => x.narrow(0, first..first + of.rows.len())?,
                None => {
                    if !is_gathered {
                        plan.gather(stream, x, &gathered)?;
                    }
                    is_gathered = true;
                    gathered.narrow(0, of.rows.clone())?
                }
            };
            let rows = of.rows.len();
            let hidden = Matrix::of(&hidden);
            let down = Product {
                weights: adapter.down,
                input: Input::of(&Activations::Float(&x))?,
                after: After::default(),
                out: hidden.clone(),
                rows,
                range: None,
            };
            down.queue(stream)?;
            let order = Operand::tensor(&plan.table);
            let up = Product {
                weights: adapter.up,
                input: Input { x: hidden, scales: None, zero_points: None, outliers: None },
                after: After {
                    added: Some(Added { order, at: of.rows.start, scale: adapter.scale }),
                    ..After::default()
                },
                out: Matrix::of(out),
                rows,
                range: None,
            };
            up.queue(stream)?;
        }
        Ok(())
    }
}

impl WgpuLoraPlan {
    /// Copies all rows that have an adapter together, sorted.
    fn gather(&self, stream: &mut WgpuStream, x: &Tensor<Wgpu>, to: &Tensor<Wgpu>) -> Result<()> {
        let places = self.table.narrow(0, 1..2)?.narrow(1, 0..self.rows)?.reshape(&[self.rows, 1])?;
        let (x, rows) = (&Activations::Float(x), &Activations::Float(to));
        Gather { x, rows, places: &places, weights: None }.queue(stream)
    }
}
