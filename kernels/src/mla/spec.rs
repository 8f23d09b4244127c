//! Sizes, form, and what attention does with them.

use super::CHECK;
use crate::{
    attention::AttentionSpec,
    cache::{KvSpec, KvValues},
    linear::WeightFormat,
};
use halite_hal::Result;

/// How keys and values come of latents; see the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MlaForm {
    /// `W_UK` is multiplied into the queries and `W_UV` into the result: attention runs over the latents.
    Absorbed,
    /// Each head's keys and values are made from the latents.
    Expanded,
}

/// One kind of layer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MlaSpec {
    /// Attention over the latent cache: query heads, the cache, scale, mask and so on. In the absorbed form it is what
    /// [`Attention`](crate::attention::Attention) is planned with.
    pub attention: AttentionSpec,
    /// Elements of a query that do not turn; rows of a head's `W_UK`.
    pub nope_dim: usize,
    /// Elements of a value; rows of a head's `W_UV`.
    pub value_head_dim: usize,
    /// How `W_UK` and `W_UV` are stored: F32, F16 or BF16.
    pub weights: WeightFormat,
    /// Which form.
    pub form: MlaForm,
}

impl MlaSpec {
    /// Causal attention of `query_heads` over `kv`, made by [`KvSpec::latent`]; BF16 weights, F32 queries and results,
    /// `scale = 1 / √(nope_dim + rope_dim)`.
    pub fn new(
        query_heads: usize,
        kv: KvSpec,
        nope_dim: usize,
        value_head_dim: usize,
        form: MlaForm,
    ) -> Self {
        let attention = AttentionSpec::causal(query_heads, kv);
        let mut spec = MlaSpec { attention, nope_dim, value_head_dim, weights: WeightFormat::Bf16, form };
        spec.attention.scale = 1.0 / (spec.query_dim() as f32).sqrt();
        spec
    }

    /// The other form.
    pub fn with_form(mut self, form: MlaForm) -> Self {
        self.form = form;
        self
    }

    /// Another storage of the weights.
    pub fn with_weights(mut self, weights: WeightFormat) -> Self {
        self.weights = weights;
        self
    }

    /// Another scale, soft-cap, mask, type or split.
    pub fn with_attention(mut self, change: impl FnOnce(AttentionSpec) -> AttentionSpec) -> Self {
        self.attention = change(self.attention);
        self
    }

    /// Query heads.
    pub fn heads(&self) -> usize {
        self.attention.query_heads
    }

    /// Elements of a latent; columns of the weights.
    pub fn kv_lora_rank(&self) -> usize {
        self.attention.kv.value_head_dim
    }

    /// Elements that turn, of a query and of the key that heads share.
    pub fn rope_dim(&self) -> usize {
        self.attention.kv.head_dim.saturating_sub(self.kv_lora_rank())
    }

    /// Elements of a query: `[q_n, q_r]`.
    pub fn query_dim(&self) -> usize {
        self.nope_dim.saturating_add(self.rope_dim())
    }

    /// Whether weights that were packed for `self` are what `other` wants: sizes, storage and form.
    pub fn same_weights(&self, other: &MlaSpec) -> bool {
        let sizes = |spec: &MlaSpec| {
            let sizes =
                (spec.heads(), spec.kv_lora_rank(), spec.rope_dim(), spec.nope_dim, spec.value_head_dim);
            (sizes, spec.weights, spec.form, spec.attention.dtype)
        };
        sizes(self) == sizes(other)
    }

    /// [`MlaSpec::check`], and that it is of the expanded form: a backend calls it before it plans.
    ///
    /// # Errors
    /// As [`MlaSpec::check`], or the absorbed form.
    pub fn check_expanded(&self) -> Result<()> {
        self.check()?;
        let expanded = self.form == MlaForm::Expanded;
        CHECK.that(expanded, "form", "Expanded: attention's plan serves the absorbed form", self.form)
    }

    /// Checks that the specification makes sense: a backend calls it before it packs.
    ///
    /// # Errors
    /// A cache of another form than [`KvSpec::latent`]'s, sizes of zero or beyond 2^63 bytes of weights, weights that are
    /// not floats, and whatever attention refuses.
    pub fn check(&self) -> Result<()> {
        let kv = &self.attention.kv;
        let latent = kv.values == KvValues::KeyPrefix && kv.kv_heads == 1;
        CHECK.that(latent, "kv", "a latent cache of one head", kv)?;
        self.attention.check()?;
        CHECK.positive("rope_dim", self.rope_dim())?;
        CHECK.positive("nope_dim", self.nope_dim)?;
        CHECK.positive("value_head_dim", self.value_head_dim)?;
        CHECK.that(self.weights.float_type().is_some(), "weights", "F32, F16 or BF16", self.weights)?;
        CHECK.that(
            self.attention.dtype.is_float(),
            "dtype",
            "a floating-point type",
            self.attention.dtype,
        )?;
        let rows = self.nope_dim.checked_add(self.value_head_dim).and_then(|n| n.checked_mul(self.heads()));
        let bytes = rows.and_then(|n| n.checked_mul(self.kv_lora_rank())?.checked_mul(4));
        CHECK.limit("weight bytes", bytes.unwrap_or(usize::MAX), i64::MAX as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Error};

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        let kv = || KvSpec::latent(2, 512, 64);
        let spec = |form| MlaSpec::new(128, kv(), 128, 128, form);
        let good = spec(MlaForm::Expanded);
        assert_eq!(good.check(), Ok(()));
        assert_eq!((good.kv_lora_rank(), good.rope_dim(), good.query_dim()), (512, 64, 192));
        assert_eq!(good.attention.scale, 1.0 / 192f32.sqrt(), "of the whole query, not of the cached row");
        let with = |change: fn(&mut MlaSpec)| {
            let mut spec = spec(MlaForm::Absorbed);
            change(&mut spec);
            spec
        };
        for (bad, argument) in [
            (with(|s| s.attention.kv = KvSpec::new(2, 1, 576)), "kv"),
            (with(|s| s.attention.kv.kv_heads = 2), "kv"),
            (with(|s| s.attention.kv.head_dim = 512), "rope_dim"),
            (with(|s| s.nope_dim = 0), "nope_dim"),
            (with(|s| s.value_head_dim = 0), "value_head_dim"),
            (with(|s| s.weights = WeightFormat::Int8PerChannel), "weights"),
            (with(|s| s.attention.dtype = DType::I8), "dtype"),
            (with(|s| s.attention.query_heads = 0), "query_heads"),
            (with(|s| s.attention.scale = f32::NAN), "scale"),
            (with(|s| s.nope_dim = usize::MAX), "weight bytes"),
            (with(|s| s.value_head_dim = 1 << 60), "weight bytes"),
        ] {
            match bad.check().unwrap_err() {
                Error::Argument { argument: found, .. } | Error::Limit { argument: found, .. } => {
                    assert_eq!(found, argument, "{bad:?}");
                }
                other => panic!("{bad:?}: {other}"),
            }
        }
    }

    #[test]
    fn weights_belong_to_their_sizes_and_form_and_not_to_a_mask() {
        let spec = MlaSpec::new(4, KvSpec::latent(1, 40, 6), 10, 12, MlaForm::Expanded);
        assert!(spec.same_weights(&spec.clone().with_attention(|a| a.with_soft_cap(3.0).with_scale(0.1))));
        for other in [
            MlaSpec { form: MlaForm::Absorbed, ..spec.clone() },
            MlaSpec { nope_dim: 11, ..spec.clone() },
            MlaSpec::new(5, KvSpec::latent(1, 40, 6), 10, 12, MlaForm::Expanded),
            MlaSpec::new(4, KvSpec::latent(1, 41, 6), 10, 12, MlaForm::Expanded),
            MlaSpec::new(4, KvSpec::latent(1, 40, 8), 10, 12, MlaForm::Expanded),
            spec.clone().with_weights(WeightFormat::F32),
        ] {
            assert!(!spec.same_weights(&other), "{other:?}");
        }
    }
}
