//! States: what attention over some of a sequence's positions leaves for a call over those that follow.

use super::{AttentionSpec, Sinks};
use crate::check::Check;
use halite_hal::{DType, Device, Result, Tensor};

/// What the rows of a step know of the positions read so far, not normalised, sinks not counted.
///
/// For a row that has seen the positions `j` so far, with the scores `s_j` of the [family's text](super), it is
/// `m = max s_j`, `l = Σ exp(s_j - m)` and `o = Σ exp(s_j - m) v_j`: the running form of Milakov and Gimelshein 2018
/// (arXiv:1805.02867). Of a row that has seen nothing it is `(-inf, 0, 0)`, the empty state.
///
/// A call that goes on from a state does what a call over everything does after the same part, so calls over ranges that
/// follow one another ([`AttentionStep::kv_ranges`](super::AttentionStep::kv_ranges)) give the bits of one call, and
/// not only its value, on a backend that claims batch invariance. Two uses:
///
/// - **Cascade** (Ye et al. 2025, arXiv:2501.01005, section 3.1): several requests begin with the same `p` positions, `p` a
///   multiple of [`AttentionSpec::kv_split`](super::AttentionSpec::kv_split). One call reads these once: the rows of all
///   requests as one sequence of `kv_len = p`, [`Mask::Bidirectional`](super::Mask::Bidirectional), state out. A second
///   call has a sequence a request, its own block table, `kv_ranges` from `p` on, the mask as it is, state in. It is right
///   where the mask shows every row all of the prefix: causal, bidirectional and tree masks, of rows that come after it.
///   Windows, chunks and linear biases are not for the first call: they go by positions, and rows of several requests
///   have none in common.
/// - **A long sequence in several calls**, with the same plan, rows and `kv_len` in each, and ranges from left to right.
///   Every mask and bias is right there.
#[derive(Debug)]
pub struct AttentionState<'a, D: Device> {
    /// F32 `[tokens, query_heads]`: `m`, the greatest score.
    pub max: &'a Tensor<D>,
    /// F32 `[tokens, query_heads]`: `l`, the sum of `exp(s_j - m)`.
    pub sum: &'a Tensor<D>,
    /// F32 `[tokens, query_heads, value_head_dim]`: `o`, the sum of `exp(s_j - m) v_j`; outer dimensions may be strided.
    pub values: &'a Tensor<D>,
}

impl<D: Device> Clone for AttentionState<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for AttentionState<'_, D> {}

/// What a call makes of the positions that it read.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttentionOut<'a, D: Device> {
    /// The result, of the spec's type: `[tokens, query_heads, value_head_dim]`; outer dimensions may be strided.
    Normalised(&'a Tensor<D>),
    /// The state, for a call that goes on from it. No sinks are counted and no log-sum-exp is told: both are for the call
    /// that normalises.
    State(AttentionState<'a, D>),
}

impl<D: Device> Clone for AttentionOut<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for AttentionOut<'_, D> {}

impl<'a, D: Device> AttentionState<'a, D> {
    fn tensors(&self, names: [&'static str; 3]) -> [Named<'a, D>; 3] {
        let [max, sum, values] = names;
        [(max, Some(self.max)), (sum, Some(self.sum)), (values, Some(self.values))]
    }

    fn check(&self, check: Check, names: [&'static str; 3], dims: [usize; 3]) -> Result<()> {
        let [max, sum, values] = names;
        check.tensor(max, self.max, DType::F32, &dims[..2])?;
        check.tensor(sum, self.sum, DType::F32, &dims[..2])?;
        check.tensor(values, self.values, DType::F32, &dims)
    }
}

/// A tensor under its argument's name, where it is given.
type Named<'a, D> = (&'static str, Option<&'a Tensor<D>>);

/// The tensors with a row a query token, and the sinks: what both families of attention check alike.
pub(crate) struct RowTensors<'a, D: Device> {
    pub(crate) q: &'a Tensor<D>,
    pub(crate) state_in: Option<AttentionState<'a, D>>,
    pub(crate) out: AttentionOut<'a, D>,
    pub(crate) sinks: Option<&'a Tensor<D>>,
    pub(crate) log_sum_exp: Option<&'a Tensor<D>>,
}

const STATE_IN: [&str; 3] = ["state_in.max", "state_in.sum", "state_in.values"];
const STATE_OUT: [&str; 3] = ["out.max", "out.sum", "out.values"];

impl<D: Device> RowTensors<'_, D> {
    /// Shapes, types, and outputs that overlap neither each other nor an input. Queries are `[tokens, query_heads,
    /// head_dim]`, results `dims`.
    pub(crate) fn check(
        &self,
        check: Check,
        spec: &AttentionSpec,
        head_dim: usize,
        dims: [usize; 3],
    ) -> Result<()> {
        let [tokens, heads, _] = dims;
        check.tensor("q", self.q, spec.dtype, &[tokens, heads, head_dim])?;
        if let Some(state) = &self.state_in {
            state.check(check, STATE_IN, dims)?;
        }
        let outputs = match &self.out {
            AttentionOut::Normalised(out) => {
                check.tensor("out", out, spec.dtype, &dims)?;
                [("out", Some(*out)), ("log_sum_exp", self.log_sum_exp), ("", None)]
            }
            AttentionOut::State(state) => {
                state.check(check, STATE_OUT, dims)?;
                let untold = self.log_sum_exp.is_none();
                let got = if untold { "no tensor" } else { "a tensor" };
                check.holds(untold, "log_sum_exp", "no tensor beside a state", got)?;
                state.tensors(STATE_OUT)
            }
        };
        match (&self.out, spec.sinks, self.sinks) {
            (AttentionOut::State(_), _, None) | (AttentionOut::Normalised(_), Sinks::None, None) => {}
            (AttentionOut::Normalised(_), Sinks::PerHead, Some(sinks)) => {
                check.tensor("sinks", sinks, DType::F32, &[heads])?;
            }
            (out, sinks, given) => {
                let expected = match out {
                    AttentionOut::State(_) => "no tensor beside a state".to_owned(),
                    AttentionOut::Normalised(_) if sinks == Sinks::None => {
                        "no tensor, since the spec has no sinks (`AttentionSpec::with_sinks`)".to_owned()
                    }
                    AttentionOut::Normalised(_) => format!("a tensor, since the spec has {sinks:?} sinks"),
                };
                return Err(check.wrong("sinks", expected, given.map_or("no tensor", |_| "a tensor")));
            }
        }
        let inputs = [("q", Some(self.q)), ("sinks", self.sinks)];
        for (place, (name, out)) in outputs.iter().enumerate() {
            let Some(out) = out else { continue };
            check.disjoint(name, out, &inputs)?;
            check.disjoint(name, out, &outputs[place + 1..])?;
            if let Some(state) = &self.state_in {
                check.disjoint(name, out, &state.tensors(STATE_IN))?;
            }
        }
        match self.log_sum_exp {
            Some(log_sum_exp) => check.tensor("log_sum_exp", log_sum_exp, DType::F32, &dims[..2]),
            None => Ok(()),
        }
    }
}
