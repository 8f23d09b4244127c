//! One layer of the decoder: attention, then feed-forward. [`decoder`](super::decoder) has the formula.

use super::buffers::{Buffers, ExpertBuffers, Input};
use super::plans::Plans;
use super::queue::Queue;
use super::weights::{FfnWeights, LayerWeights};
use crate::Result;
use crate::runner::ModelInfo;
use halite_kernels::attention::{AttentionArgs, AttentionOut};
use halite_kernels::linear::Epilogue;
use halite_kernels::moe::{ExpertWeights, ExpertsArgs, RoutingArgs};
use halite_kernels::norm::{NormOut, NormResidual, NormSpec};
use halite_kernels::rope::RopeWriteArgs;
use halite_kernels::{Backend, Tensor};

/// Views of a step's queries, keys and values, `[tokens, heads, head_dim]`.
pub(super) struct Heads<B: Backend> {
    /// As the linear layer gives them.
    raw: QueriesAndKeys<B>,
    /// After their norms: the same memory where the model has none. Queries turn in place, keys on their way to the cache.
    normed: QueriesAndKeys<B>,
    v: Tensor<B>,
    /// What attention gives.
    attn_out: Tensor<B>,
}

struct QueriesAndKeys<B: Backend> {
    q: Tensor<B>,
    k: Tensor<B>,
}

impl<B: Backend> Heads<B> {
    pub(super) fn new(step: &Buffers<B>, info: &ModelInfo) -> Result<Self> {
        let dim = info.head_dim;
        let (query, kv) = (info.query_heads * dim, info.kv_heads * dim);
        let part = |of: &Tensor<B>, start: usize, width: usize| -> Result<Tensor<B>> {
            Ok(of.narrow(1, start..start + width)?.split_last(dim)?)
        };
        let queries_and_keys = |of: &Tensor<B>| -> Result<QueriesAndKeys<B>> {
            Ok(QueriesAndKeys { q: part(of, 0, query)?, k: part(of, query, kv)? })
        };
        Ok(Self {
            raw: queries_and_keys(&step.qkv)?,
            normed: queries_and_keys(step.normed_heads.as_ref().unwrap_or(&step.qkv))?,
            v: part(&step.qkv, query + kv, kv)?,
            attn_out: step.attn_out.split_last(dim)?,
        })
    }
}

/// What all layers of a step share.
pub(super) struct Layers<'a, B: Backend> {
    pub(super) norm: &'a NormSpec,
    pub(super) plans: &'a Plans<B>,
    pub(super) cache: &'a B::KvCache,
}

impl<B: Backend> Layers<'_, B> {
    /// One layer: from `step.hidden` to `step.hidden`.
    pub(super) fn layer(
        &self,
        queue: &mut Queue<'_, B>,
        layer: usize,
        weights: &LayerWeights<B>,
        step: &Buffers<B>,
        heads: &Heads<B>,
    ) -> Result<()> {
        let plans = self.plans.of_layer(layer)?;
        let (cache, slots) = (self.cache, &self.plans.slots);
        let Heads { raw, normed, v, attn_out } = heads;
        queue.norm(self.norm, &step.hidden, &weights.attention_norm, None, step.normed.norm_out())?;
        let bias = Epilogue { bias: weights.qkv_bias.as_ref(), ..Epilogue::default() };
        queue.linear(&step.normed, &weights.qkv, bias, &step.qkv)?;
        if let Some([query_norm, key_norm]) = &weights.head_norms {
            queue.norm(self.norm, &raw.q, query_norm, None, NormOut::Float(&normed.q))?;
            queue.norm(self.norm, &raw.k, key_norm, None, NormOut::Float(&normed.k))?;
        }
        let (q, k) = (&normed.q, &normed.k);
        queue.rope_cache_write(RopeWriteArgs { plan: &plans.rope, q, slots, cache, layer, k, v })?;
        queue.attention(AttentionArgs {
            plan: &plans.attention,
            cache,
            layer,
            q,
            state_in: None,
            out: AttentionOut::Normalised(attn_out),
            sinks: None,
            log_sum_exp: None,
        })?;
        queue.quantize(&step.attn_out, &step.attn_out_input)?;
        let out = Branch { weights: &weights.attention_out, norm: weights.post_attention_norm.as_ref() };
        self.add(queue, out, &step.attn_out_input, step, &step.hidden, &step.residual)?;

        match &weights.ffn {
            FfnWeights::Dense(network) => {
                queue.norm(self.norm, &step.residual, &weights.ffn_norm, None, step.normed.norm_out())?;
                queue.linear(&step.normed, &network.gate_up, Epilogue::default(), &step.ffn_act)?;
                queue.quantize(&step.ffn_act, &step.ffn_act_input)?;
                let down = Branch { weights: &network.down, norm: weights.post_ffn_norm.as_ref() };
                self.add(queue, down, &step.ffn_act_input, step, &step.residual, &step.hidden)
            }
            FfnWeights::Experts { router, gate_up, down } => {
                let experts = ExpertWeights::new(gate_up, down);
                self.experts(queue, router, experts, &weights.ffn_norm, step)
            }
        }
    }

    /// `hidden = residual + Σ share · expert(norm(residual))`.
    fn experts(
        &self,
        queue: &mut Queue<'_, B>,
        router: &B::Packed,
        experts: ExpertWeights<'_, B>,
        norm: &Tensor<B>,
        step: &Buffers<B>,
    ) -> Result<()> {
        let plans = self.plans.of_experts()?;
        let ExpertBuffers { normed, logits, ids, weights } = step.of_experts()?;
        queue.norm(self.norm, &step.residual, norm, None, NormOut::Float(normed))?;
        queue.linear(&Input::Float(normed.clone()), router, Epilogue::default(), logits)?;
        queue.route(RoutingArgs { spec: &plans.routing, logits, correction_bias: None, ids, weights })?;
        queue.moe(ExpertsArgs {
            plan: &plans.moe,
            x: normed,
            ids,
            weights,
            experts,
            shared: None,
            residual: Some(&step.residual),
            out: &step.hidden,
        })
    }

    /// `to = from + post_norm(x · Wᵀ)`, the end of attention and of the feed-forward layer.
    fn add(
        &self,
        queue: &mut Queue<'_, B>,
        branch: Branch<'_, B>,
        x: &Input<B>,
        step: &Buffers<B>,
        from: &Tensor<B>,
        to: &Tensor<B>,
    ) -> Result<()> {
        match (branch.norm, &step.branch) {
            (Some(norm), Some(product)) => {
                queue.linear(x, branch.weights, Epilogue::default(), product)?;
                let residual = Some(NormResidual::After { residual: from });
                queue.norm(self.norm, product, norm, residual, NormOut::Float(to))
            }
            _ => {
                queue.linear(x, branch.weights, Epilogue { residual: Some(from), ..Epilogue::default() }, to)
            }
        }
    }
}

/// The last linear layer of attention or feed-forward, and the norm after it where there is one.
struct Branch<'a, B: Backend> {
    weights: &'a B::Packed,
    norm: Option<&'a Tensor<B>>,
}
