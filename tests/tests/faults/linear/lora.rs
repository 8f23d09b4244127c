//! Low-rank adapters by the oracle.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::{Lora, LoraAdapter, LoraArgs, LoraLimits, LoraPlan, LoraSpec, LoraStep},
};
use halite_parity::oracle::linear::lora::{Adapter, row};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    spec: LoraSpec,
    max_rows: usize,
    adapters: Vec<i32>,
}

impl LoraPlan for Plan {
    fn spec(&self) -> &LoraSpec {
        &self.spec
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn rows(&self) -> usize {
        self.adapters.len()
    }

    fn last_adapter(&self) -> Option<usize> {
        self.adapters.iter().filter_map(|&adapter| usize::try_from(adapter).ok()).max()
    }
}

impl Lora for Exact {
    type LoraPlan = Plan;

    fn lora_supports(&self, _: &LoraSpec) -> Support {
        Support::Native
    }

    fn lora_plan(&self, spec: &LoraSpec, max_rows: usize) -> Result<Plan> {
        spec.check()?;
        Ok(Plan { spec: spec.clone(), max_rows, adapters: Vec::new() })
    }

    fn lora_update(
        &self,
        _: &mut Queue,
        plan: &mut Plan,
        step: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        step.checked_against("lora", &plan.limits())?;
        let first = plan.adapters.first().copied();
        plan.adapters = step.adapters.to_vec();
        if self.has(Fault::LoraStaleStep)
            && let (Some(to), Some(first)) = (plan.adapters.first_mut(), first)
        {
            *to = first;
        }
        Ok(())
    }

    fn lora_workspace(&self, _: &Plan, _: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        0
    }

    fn lora(&self, _: &mut Queue, args: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        let (x, out, output) = (read(args.x), read(args.out), args.plan.spec.output);
        let (inputs, outputs) = (args.x.dims()[1], args.out.dims()[1]);
        let rows = args.plan.adapters.len();
        let mut all = Vec::new();
        for (t, &index) in args.plan.adapters.iter().enumerate() {
            let (x, before) = (&x[t * inputs..][..inputs], &out[t * outputs..][..outputs]);
            let mut index = usize::try_from(index).ok();
            if self.has(Fault::LoraFirstForNone) {
                index = index.or(Some(0));
            }
            if self.has(Fault::LoraFirstRowsAdapter) {
                index = usize::try_from(args.plan.adapters[0]).ok();
            }
            let Some(adapter) = index.and_then(|index| args.adapters.get(index).copied().flatten()) else {
                all.extend_from_slice(before);
                continue;
            };
            let (down, up) = (adapter.down.floats().to_vec(), adapter.up.floats().to_vec());
            let rank = down.len() / inputs;
            let scale = if self.has(Fault::LoraNoScale) { 1.0 } else { f64::from(adapter.scale) };
            let mut exact = Adapter { down, up, rank, scale };
            if self.has(Fault::LoraLastRankLost) {
                exact.up.chunks_exact_mut(rank).for_each(|b| b[rank - 1] = 0.0);
            }
            let zeros = vec![0.0; outputs];
            let before = if self.has(Fault::LoraOverwrites) { &zeros[..] } else { before };
            let mut y = values(row(x, &exact, before, output));
            if self.has(Fault::LoraBatchVariant) && rows > 4 {
                y.iter_mut().for_each(|y| *y *= 1.0 + 1e-6);
            }
            all.extend(y);
        }
        write(args.out, all);
        Ok(())
    }
}
