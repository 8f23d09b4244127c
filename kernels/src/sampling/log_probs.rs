//! Log-probabilities of given tokens, the highest of each row, and those of all tokens: the log-softmax.

use super::CHECK;
use crate::Checked;
use halite_hal::{DType, Device, Result, Tensor};

/// One call: `out[r] = logits[r, targets[r]] - ln Σ exp(logits[r])`; a target outside the vocabulary gives NaN.
///
/// A NaN among the logits weighs nothing, and is NaN itself. A row whose greatest logit is not finite, or
/// which has no logits, has no weights: its log-probabilities are NaN.
#[derive(Clone, Debug)]
pub struct LogProbArgs<'a, D: Device> {
    /// F32 `[rows, vocabulary]`.
    pub logits: &'a Tensor<D>,
    /// I32 `[rows]`: the drawn tokens, or any others.
    pub targets: &'a Tensor<D>,
    /// F32 `[rows]`, natural.
    pub out: &'a Tensor<D>,
    /// The highest log-probabilities of each row, where they are wanted.
    pub top: Option<TopLogProbs<'a, D>>,
    /// F32 `[rows, vocabulary]`, where it is wanted: the log-softmax of the logits, every token's log-probability by the
    /// same formula. Apart from the logits.
    #[doc(alias = "log_softmax")]
    pub all: Option<&'a Tensor<D>>,
}

/// The `n` highest log-probabilities of each row, highest first, ties by the lower id, NaN last.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TopLogProbs<'a, D: Device> {
    /// I32 `[rows, n]`, `n` up to the vocabulary.
    pub ids: &'a Tensor<D>,
    /// F32 `[rows, n]`, natural.
    pub log_probs: &'a Tensor<D>,
}

impl<'a, D: Device> TopLogProbs<'a, D> {
    /// Ids and their log-probabilities.
    pub fn new(ids: &'a Tensor<D>, log_probs: &'a Tensor<D>) -> Self {
        TopLogProbs { ids, log_probs }
    }
}

impl<D: Device> LogProbArgs<'_, D> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = CHECK.rows("logits", self.logits, 2)?;
        let vocabulary = self.logits.dims().get(1).copied().unwrap_or(0);
        CHECK.tensor("logits", self.logits, DType::F32, &[rows, vocabulary])?;
        CHECK.limit("vocabulary", vocabulary, i32::MAX as usize)?;
        CHECK.tensor("targets", self.targets, DType::I32, &[rows])?;
        CHECK.tensor("out", self.out, DType::F32, &[rows])?;
        let [logits, targets] = [("logits", Some(self.logits)), ("targets", Some(self.targets))];
        CHECK.disjoint("out", self.out, &[logits, targets])?;
        if let Some(TopLogProbs { ids, log_probs }) = &self.top {
            CHECK.rows("top.ids", ids, 2)?;
            let n = ids.dims().get(1).copied().unwrap_or(0);
            CHECK.limit("top.ids", n, vocabulary)?;
            CHECK.tensor("top.ids", ids, DType::I32, &[rows, n])?;
            CHECK.tensor("top.log_probs", log_probs, DType::F32, &[rows, n])?;
            let out = ("out", Some(self.out));
            CHECK.disjoint("top.ids", ids, &[logits, targets, out])?;
            CHECK.disjoint("top.log_probs", log_probs, &[logits, targets, out, ("top.ids", Some(ids))])?;
        }
        if let Some(all) = self.all {
            CHECK.tensor("all", all, DType::F32, &[rows, vocabulary])?;
            let top = self.top.as_ref();
            let ids = ("top.ids", top.map(|top| top.ids));
            let highest = ("top.log_probs", top.map(|top| top.log_probs));
            CHECK.disjoint("all", all, &[logits, targets, ("out", Some(self.out)), ids, highest])?;
        }
        Ok(Checked::new(self))
    }
}
