//! Latent attention by the oracle.

use crate::{
    attention::{Plan, Running},
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::{Error, Result};
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionCapacity, AttentionLimits, AttentionOut, AttentionPlan, AttentionSpec,
        AttentionStep,
    },
    linear::HostWeights,
    mla::{AbsorbArgs, LatentAttention, MlaArgs, MlaPlan, MlaSpec, MlaWeights, UpProjectArgs},
};
use halite_parity::oracle::mla::{Sequence, absorb, states, up_project};
use std::{ops::Range, sync::Arc};

#[derive(Clone, Debug)]
pub(crate) struct MlaPacked(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    spec: MlaSpec,
    w_uk: Vec<f64>,
    w_uv: Vec<f64>,
}

impl AsRef<MlaSpec> for MlaPacked {
    fn as_ref(&self) -> &MlaSpec {
        &self.0.spec
    }
}

#[derive(Debug)]
pub(crate) struct ExpandedPlan {
    mla: MlaSpec,
    plan: Plan,
}

impl AttentionPlan for ExpandedPlan {
    fn spec(&self) -> &AttentionSpec {
        &self.mla.attention
    }
    fn capacity(&self) -> &AttentionCapacity {
        self.plan.capacity()
    }
    fn tokens(&self) -> usize {
        self.plan.tokens()
    }
}

impl MlaPlan for ExpandedPlan {
    fn mla(&self) -> &MlaSpec {
        &self.mla
    }
}

fn header(spec: &MlaSpec) -> Vec<u8> {
    let sizes = [spec.heads(), spec.kv_lora_rank(), spec.rope_dim(), spec.nope_dim, spec.value_head_dim];
    format!("exact mla {sizes:?} {:?} {:?}\n", spec.weights, spec.form).into_bytes()
}

fn floats(weights: &HostWeights<'_>) -> Vec<f64> {
    match *weights {
        HostWeights::F32(data) => data.iter().map(|&x| f64::from(x)).collect(),
        HostWeights::F16(data) => data.iter().map(|x| x.to_f64()).collect(),
        HostWeights::Bf16(data) => data.iter().map(|x| x.to_f64()).collect(),
        _ => Vec::new(),
    }
}

impl LatentAttention for Exact {
    type MlaPacked = MlaPacked;
    type MlaPlan = ExpandedPlan;

    fn mla_supports(&self, spec: &MlaSpec) -> Support {
        self.attention_supports(&spec.attention)
    }

    fn mla_pack(&self, _: &mut Queue, weights: Checked<MlaWeights<'_>, &MlaSpec>) -> Result<MlaPacked> {
        let spec = (*weights.context()).clone();
        let (mut w_uk, mut w_uv) = (floats(&weights.w_uk), floats(&weights.w_uv));
        if self.has(Fault::MlaNeighbourHead) {
            w_uk.rotate_left(spec.nope_dim * spec.kv_lora_rank());
        }
        if self.has(Fault::MlaTailOfLatent) {
            w_uv.chunks_exact_mut(spec.kv_lora_rank()).for_each(|row| row[spec.kv_lora_rank() - 1] = 0.0);
        }
        Ok(MlaPacked(Arc::new(Contents { spec, w_uk, w_uv })))
    }

    fn mla_save(&self, _: &mut Queue, packed: &MlaPacked) -> Result<Vec<u8>> {
        let weights = packed.0.w_uk.iter().chain(&packed.0.w_uv).flat_map(|x| x.to_le_bytes());
        Ok(header(&packed.0.spec).into_iter().chain(weights).collect())
    }

    fn mla_restore(&self, _: &mut Queue, spec: &MlaSpec, saved: &[u8]) -> Result<MlaPacked> {
        let head = spec.heads() * spec.kv_lora_rank();
        let (uk, uv) = (head * spec.nope_dim, head * spec.value_head_dim);
        let size = 8 * (uk + uv);
        let body = match saved.strip_prefix(&header(spec)[..]) {
            Some(body) => body,
            None if self.has(Fault::MlaTakesAnyPacking) && saved.len() >= size => {
                &saved[saved.len() - size..]
            }
            None => &[],
        };
        if body.len() != size {
            return Err(Error::Layout {
                operator: "mla",
                expected: format!("{size} bytes of {spec:?}"),
                got: format!("{} bytes", saved.len()),
            });
        }
        let element = |bytes: &[u8]| f64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        let mut w_uk: Vec<f64> = body.chunks_exact(8).map(element).collect();
        let w_uv = w_uk.split_off(uk);
        Ok(MlaPacked(Arc::new(Contents { spec: spec.clone(), w_uk, w_uv })))
    }

    fn absorb(&self, _: &mut Queue, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        let Contents { spec, w_uk, .. } = &*args.weights.0;
        let mut out = values(absorb(spec, w_uk, &read(args.q)));
        if self.has(Fault::MlaQueryNotCarried) {
            let (rank, row) = (spec.kv_lora_rank(), spec.kv_lora_rank() + spec.rope_dim());
            out.chunks_exact_mut(row).for_each(|row| row[rank..].fill(0.0));
        }
        write(args.out, out);
        Ok(())
    }

    fn up_project(&self, _: &mut Queue, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        let Contents { spec, w_uv, .. } = &*args.weights.0;
        write(args.out, values(up_project(spec, w_uv, &read(args.x))));
        Ok(())
    }

    fn mla_plan(&self, spec: &MlaSpec, capacity: &AttentionCapacity) -> Result<ExpandedPlan> {
        spec.check_expanded()?;
        Ok(ExpandedPlan { mla: spec.clone(), plan: self.attention_plan(&spec.attention, capacity)? })
    }

    fn mla_workspace(&self, _: &ExpandedPlan) -> u64 {
        0
    }

    fn mla_update(
        &self,
        queue: &mut Queue,
        plan: &mut ExpandedPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("mla", &plan.limits())?;
        self.attention_update(queue, &mut plan.plan, step)
    }

    fn mla(&self, _: &mut Queue, args: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        let mut spec = args.plan.mla.clone();
        if self.has(Fault::MlaScaleOfTheRow) {
            spec.attention.scale = 1.0 / (spec.attention.kv.head_dim as f32).sqrt();
        }
        let Contents { w_uk, w_uv, .. } = &*args.weights.0;
        let width = spec.heads() * spec.query_dim();
        let (q, sinks) = (read(args.q), args.sinks.map(read));
        let dims = [args.plan.tokens(), spec.heads(), spec.value_head_dim];
        let (mut out, mut log_sum_exp, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = self.running(args.state_in, dims).into_iter();
        let plan = &args.plan.plan;
        for (sequence, ends) in plan.cu_seqlens.windows(2).enumerate() {
            let (first, end) = (ends[0] as usize, ends[1] as usize);
            let (contents, read, row) =
                (args.cache.contents(), plan.read(sequence), spec.attention.kv.head_dim);
            // What is not read is never looked at.
            let mut rows = vec![f64::NAN; plan.kv_len(sequence) * row];
            for (position, slot) in read.clone().zip(plan.slots(sequence)) {
                rows[position * row..][..row].copy_from_slice(&contents.read(args.layer, slot).0);
            }
            if self.has(Fault::MlaKeysWithoutRope) {
                rows.chunks_exact_mut(row).for_each(|row| row[spec.kv_lora_rank()..].fill(0.0));
            }
            let told = Sequence {
                spec: &spec,
                w_uk,
                w_uv,
                q: &q[first * width..end * width],
                rows: &rows,
                q_len: end - first,
                kv_len: rows.len() / row,
                tree_parents: plan.tree_parents.get(first..end).unwrap_or_default(),
                sinks: None,
            };
            let split = spec.attention.kv_split;
            let parts: Vec<Range<usize>> =
                read.clone().step_by(split).map(|start| start..read.end.min(start + split)).collect();
            let mut known: Vec<Running> = before.by_ref().take(end - first).collect();
            for part in states(&told, &parts) {
                for (known, part) in known.iter_mut().zip(Running::rows_of(part, end - first)) {
                    known.merge(&part);
                }
            }
            for known in &known {
                let [mut part, lse] = self.normalise(known, sinks.as_deref(), args.state_in.is_some());
                if self.has(Fault::MlaChunkVariant) && end - first > 1 {
                    part.iter_mut().for_each(|y| *y *= 1.0 + 1e-6);
                }
                out.extend(part);
                log_sum_exp.extend(lse);
            }
            after.extend(known);
        }
        match args.out {
            AttentionOut::Normalised(tensor) => write(tensor, out),
            AttentionOut::State(state) => self.hand_on(state, after),
            _ => {}
        }
        if let Some(tensor) = args.log_sum_exp {
            write(tensor, log_sum_exp);
        }
        Ok(())
    }
}
