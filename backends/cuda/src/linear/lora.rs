//! Low-rank adapters: for each adapter that a step has, two products of its rows, the second added to the output. A row's bits
//! do not depend on the other rows.

use super::{
    call::{Call, Only},
    dot,
};
use crate::{device::Cuda, room, stream::CudaStream};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{
        Activations, Epilogue, LinearArgs, Lora, LoraAdapter, LoraArgs, LoraLimits, LoraPlan, LoraSpec,
        LoraStep,
    },
};

/// A step's adapters: which there are on the host, and that of each row on the device.
#[derive(Debug)]
pub struct CudaLoraPlan {
    spec: LoraSpec,
    max_rows: usize,
    rows: usize,
    /// In ascending order, each once.
    adapters: Vec<usize>,
    /// I32 `[max_rows]`.
    table: Tensor<Cuda>,
}

impl LoraPlan for CudaLoraPlan {
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
        self.adapters.last().copied()
    }
}

impl CudaLoraPlan {
    /// Products of A in F32, of all rows; the largest rank of these adapters, and its bytes.
    fn hidden(&self, adapters: &[Option<LoraAdapter<'_, Cuda>>]) -> (usize, u64) {
        let ranks = adapters.iter().flatten().map(|adapter| adapter.down.as_ref().out_features);
        let rank = ranks.max().unwrap_or(0);
        (rank, room::bytes(DType::F32, self.max_rows.saturating_mul(rank)))
    }
}

impl Lora for Cuda {
    type LoraPlan = CudaLoraPlan;

    fn lora_supports(&self, _: &LoraSpec) -> Support {
        Support::Native
    }

    fn lora_plan(&self, spec: &LoraSpec, max_rows: usize) -> Result<CudaLoraPlan> {
        spec.check()?;
        let table = Tensor::new(self, DType::I32, &[max_rows])?;
        Ok(CudaLoraPlan { spec: spec.clone(), max_rows, rows: 0, adapters: Vec::new(), table })
    }

    fn lora_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaLoraPlan,
        step: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        step.checked_against("lora", &plan.limits())?;
        plan.rows = 0;
        if !step.adapters.is_empty() {
            stream.stage(plan.table.buffer(), plan.table.offset(), bytemuck::cast_slice(step.adapters))?;
        }
        // -1 is none.
        let mut adapters: Vec<usize> =
            step.adapters.iter().filter_map(|&a| usize::try_from(a).ok()).collect();
        adapters.sort_unstable();
        adapters.dedup();
        (plan.rows, plan.adapters) = (step.adapters.len(), adapters);
        Ok(())
    }

    fn lora_workspace(&self, plan: &CudaLoraPlan, adapters: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        plan.hidden(adapters).1
    }

    fn lora(&self, stream: &mut CudaStream, args: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        if args.out.shape().elements() == 0 || args.x.shape().elements() == 0 {
            return Ok(());
        }
        let LoraArgs { plan, x, adapters, out } = &*args;
        let (rank, bytes) = plan.hidden(adapters);
        let room = stream.scratch("lora", bytes)?.tensor("lora", DType::F32, &[plan.max_rows, rank])?;
        for &index in &plan.adapters {
            // The check has found an entry for every index.
            let Some(&Some(LoraAdapter { down, up, scale })) = adapters.get(index) else { continue };
            let only = |scale| Only { adapters: &plan.table, adapter: index, scale };
            let hidden = room.narrow(0, 0..plan.rows)?.narrow(1, 0..down.as_ref().out_features)?;
            let (x, epilogue) = (Activations::Float(x), Epilogue::default());
            let args = LinearArgs { x, weights: down, epilogue, out: &hidden };
            dot::run(stream, &Call::of(&args)?.only(only(1.0)))?;
            let (x, epilogue) =
                (Activations::Float(&hidden), Epilogue { residual: Some(out), ..Epilogue::default() });
            let args = LinearArgs { x, weights: up, epilogue, out };
            dot::run(stream, &Call::of(&args)?.only(only(scale)))?;
        }
        Ok(())
    }
}
