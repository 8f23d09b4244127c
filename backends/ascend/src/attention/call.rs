//! One layer of a step.

use std::sync::atomic::Ordering;

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    attention::{AttentionArgs, AttentionOut, AttentionPlan, AttentionSpec, Mask},
    cache::KvCacheInfo,
};

use super::{AscendAttentionPlan, runs::Run};
use crate::{
    copy,
    device::Ascend,
    room::{Room, bytes},
    runtime::{FusedInferAttention, QueryLayout, RuntimeError},
    stream::AscendStream,
    support::unsupported,
};

/// Queries, results and log-sum-exps without gaps, and log-sum-exps as CANN gives them.
pub(super) fn workspace(plan: &AscendAttentionPlan) -> u64 {
    let (tokens, spec) = (plan.capacity().max_tokens, plan.spec());
    let logs = bytes(DType::F32, &[tokens, spec.query_heads]);
    let [q, out] = rows(spec, tokens).map(|dims| bytes(spec.dtype, &dims));
    q.saturating_add(out).saturating_add(logs.saturating_mul(2))
}

/// The shapes of queries and results.
fn rows(spec: &AttentionSpec, tokens: usize) -> [[usize; 3]; 2] {
    [spec.kv.head_dim, spec.kv.value_head_dim].map(|dim| [tokens, spec.query_heads, dim])
}

/// A call, whose arguments were checked.
pub(super) fn run(stream: &mut AscendStream, args: &AttentionArgs<'_, Ascend>) -> Result<()> {
    let (plan, spec, tokens) = (args.plan, args.plan.spec(), args.plan.tokens());
    let (AttentionOut::Normalised(to), None) = (args.out, &args.state_in) else {
        return Err(unsupported("attention", "states of some of the positions", spec));
    };
    stream
        .not_while_captured("attention", "CANN takes lengths when a call is planned, and would keep them")?;
    if tokens == 0 {
        return Ok(());
    }
    let mut room = Room::new(stream.scratch("attention", workspace(plan))?);
    let [q_dims, out_dims] = rows(spec, tokens);
    let q = if args.q.is_dense() {
        args.q.clone()
    } else {
        let q = room.tensor("attention", spec.dtype, &q_dims)?;
        copy::elements(stream, args.q, &q)?;
        q
    };
    let out = if to.is_dense() { to.clone() } else { room.tensor("attention", spec.dtype, &out_dims)? };
    let log_sum_exp = match args.log_sum_exp {
        Some(logs) if !logs.is_dense() => Some(room.tensor("attention", DType::F32, logs.dims())?),
        logs => logs.cloned(),
    };
    let turned = match &log_sum_exp {
        Some(logs) => Some(room.tensor("attention", DType::F32, &[logs.shape().elements()])?),
        None => None,
    };
    let layer = args.cache.layer(args.layer);
    let (blocks, kv) = (args.cache.blocks(), &spec.kv);
    let dims = |dim| [blocks, kv.block_size, kv.kv_heads * dim];
    let keys = Tensor::from_buffer(layer.keys.clone(), 0, spec.dtype, &dims(kv.head_dim))?;
    let values = Tensor::from_buffer(layer.values.clone(), 0, spec.dtype, &dims(kv.value_head_dim))?;
    let call = Call { plan, q, keys, values, out, log_sum_exp, turned };
    if !call.at_once(stream)? {
        plan.runs.runs.iter().try_for_each(|run| call.run(stream, run))?;
    }
    call.unseeing(stream)?;
    if !to.is_dense() {
        copy::elements(stream, &call.out, to)?;
    }
    match (args.log_sum_exp, &call.log_sum_exp) {
        (Some(to), Some(from)) if !to.is_dense() => copy::elements(stream, from, to),
        _ => Ok(()),
    }
}

/// Tensors without gaps.
struct Call<'a> {
    plan: &'a AscendAttentionPlan,
    q: Tensor<Ascend>,
    keys: Tensor<Ascend>,
    values: Tensor<Ascend>,
    out: Tensor<Ascend>,
    log_sum_exp: Option<Tensor<Ascend>>,
    /// Room for log-sum-exps in the order of heads.
    turned: Option<Tensor<Ascend>>,
}

impl Call<'_> {
    /// All sequences in one call, where they are all of the step's rows and this release takes them so.
    fn at_once(&self, stream: &mut AscendStream) -> Result<bool> {
        let (plan, runs) = (self.plan, &self.plan.runs);
        if !runs.is_whole() || plan.one_by_one.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let table = plan.table.narrow(0, 0..runs.sequences.len())?;
        let logs = self.log_sum_exp.as_ref().map(|logs| logs.reshape(&[plan.tokens(), logs.dims()[1], 1]));
        let logs = logs.transpose()?;
        let of = Asked {
            layout: QueryLayout::Tnd,
            q: &self.q,
            row_ends: Some(&runs.row_ends),
            kv_lens: &runs.kv_lens,
            table: &table,
            steps: runs.has_steps(),
            out: &self.out,
            log_sum_exp: logs.as_ref(),
        };
        let mut refused = false;
        match self.ask(stream, &of, &mut refused) {
            Err(_) if refused => {
                plan.one_by_one.store(true, Ordering::Relaxed);
                Ok(false)
            }
            answer => answer.map(|()| true),
        }
    }

    /// Sequences of one length in a call.
    fn run(&self, stream: &mut AscendStream, run: &Run) -> Result<()> {
        let (plan, heads) = (self.plan, self.plan.spec().query_heads);
        let (sequences, each) = (run.sequences.len(), run.each);
        let part = |tensor: &Tensor<Ascend>| {
            let width = tensor.dims()[2];
            tensor.narrow(0, run.rows.clone())?.reshape(&[sequences, each, heads, width])
        };
        let (q, out) = (part(&self.q)?, part(&self.out)?);
        let table = plan.table.narrow(0, run.sequences.clone())?;
        // Where sequences have one row each, heads follow one another either way.
        let logs = self.log_sum_exp.as_ref().map(|logs| logs.narrow(0, run.rows.clone())).transpose()?;
        let (by_head, dims) = ([sequences, heads, each, 1], sequences * each * heads);
        let to = match (&logs, &self.turned) {
            (Some(logs), _) if each == 1 => Some(logs.reshape(&by_head)?),
            (Some(_), Some(room)) => Some(room.narrow(0, 0..dims)?.reshape(&by_head)?),
            _ => None,
        };
        let of = Asked {
            layout: QueryLayout::Bsnd,
            q: &q,
            row_ends: None,
            kv_lens: &plan.runs.kv_lens[run.sequences.clone()],
            table: &table,
            steps: each > 1,
            out: &out,
            log_sum_exp: to.as_ref(),
        };
        self.ask(stream, &of, &mut false)?;
        match (&logs, &to) {
            (Some(logs), Some(by_head)) if each > 1 => {
                let from = by_head.reshape(&[sequences, heads, each])?;
                let to = logs.reshape(&[sequences, each, heads])?;
                stream.run("attention", &[], |cann| cann.inplace_copy_turned(&to, &from))
            }
            _ => Ok(()),
        }
    }

    /// Queues a call, or tells whether this release refuses what is asked.
    fn ask(&self, stream: &mut AscendStream, of: &Asked<'_>, refused: &mut bool) -> Result<()> {
        let (plan, spec) = (self.plan, self.plan.spec());
        let mask = (spec.mask == Mask::Causal && of.steps).then_some(&plan.constants.mask);
        let call = FusedInferAttention {
            layout: of.layout,
            q: of.q,
            keys: &self.keys,
            values: &self.values,
            mask,
            row_ends: of.row_ends,
            kv_lens: of.kv_lens,
            table: of.table,
            query_heads: spec.query_heads as i64,
            kv_heads: spec.kv.kv_heads as i64,
            block_size: spec.kv.block_size as i64,
            scale: f64::from(spec.scale),
            out: of.out,
            log_sum_exp: of.log_sum_exp,
        };
        let tensors = [
            ("q", of.q),
            ("cache", &self.keys),
            ("cache", &self.values),
            ("plan", of.table),
            ("out", of.out),
        ];
        let logs = of.log_sum_exp.map(|logs| ("log_sum_exp", logs));
        let tensors: Vec<_> = tensors.into_iter().chain(logs).collect();
        stream.run("attention", &tensors, |cann| {
            let planned = cann.fused_infer_attention(call);
            *refused = planned.as_ref().is_err_and(RuntimeError::is_refusal);
            planned
        })
    }

    /// What rows give that see nothing.
    fn unseeing(&self, stream: &mut AscendStream) -> Result<()> {
        let constants = &self.plan.constants;
        let pairs = [
            Some((&self.out, &constants.zeros)),
            self.log_sum_exp.as_ref().map(|logs| (logs, &constants.empty)),
        ];
        for (to, from) in pairs.into_iter().flatten() {
            let bytes = (from.shape().elements() * from.dtype().size()) as u64;
            for row in self.plan.runs.unseeing.iter().cloned().flatten() {
                let place = (to.buffer(), to.offset() + row as u64 * bytes);
                stream.copy_bytes(place, (from.buffer(), from.offset()), bytes)?;
            }
        }
        Ok(())
    }
}

/// What differs between calls.
struct Asked<'a> {
    layout: QueryLayout,
    q: &'a Tensor<Ascend>,
    row_ends: Option<&'a [i64]>,
    kv_lens: &'a [i64],
    table: &'a Tensor<Ascend>,
    /// Whether some rows see more than others.
    steps: bool,
    out: &'a Tensor<Ascend>,
    log_sum_exp: Option<&'a Tensor<Ascend>>,
}
