//! The decoder's operators in its own words: arguments are checked and queued on one stream.

use super::buffers::Input;
use crate::Result;
use halite_kernels::attention::AttentionArgs;
use halite_kernels::embedding::{EmbeddingArgs, EmbeddingSpec, EmbeddingTable};
use halite_kernels::linear::{Epilogue, LinearArgs};
use halite_kernels::moe::{ExpertsArgs, RoutingArgs};
use halite_kernels::norm::{NormArgs, NormOut, NormResidual, NormSpec};
use halite_kernels::quantize::{QuantizeArgs, QuantizeSpec};
use halite_kernels::rope::RopeWriteArgs;
use halite_kernels::{Backend, Tensor};

/// A device and the stream that its work is queued on.
pub(super) struct Queue<'a, B: Backend> {
    pub(super) device: &'a B,
    pub(super) stream: &'a mut B::Stream,
}

impl<B: Backend> Queue<'_, B> {
    /// `out[r] = table[ids[r]]`.
    pub(super) fn gather(
        &mut self,
        spec: &EmbeddingSpec,
        table: EmbeddingTable<'_, B>,
        ids: &Tensor<B>,
        out: &Tensor<B>,
    ) -> Result<()> {
        Ok(self.device.embedding(self.stream, EmbeddingArgs { spec, table, ids, out }.check()?)?)
    }

    /// RMS norm.
    pub(super) fn norm(
        &mut self,
        spec: &NormSpec,
        x: &Tensor<B>,
        weight: &Tensor<B>,
        residual: Option<NormResidual<'_, B>>,
        out: NormOut<'_, B>,
    ) -> Result<()> {
        let args = NormArgs { spec, x, residual, weight: Some(weight), bias: None, out };
        Ok(self.device.norm(self.stream, args.check()?)?)
    }

    /// Brings `x` into the form that the next linear layer reads. A float form is `x` itself.
    pub(super) fn quantize(&mut self, x: &Tensor<B>, out: &Input<B>) -> Result<()> {
        match out {
            Input::Float(_) => Ok(()),
            Input::Int8 { q, scales } => {
                let args = QuantizeArgs::new(&QuantizeSpec::INT8_PER_TOKEN, x, q, scales);
                Ok(self.device.quantize(self.stream, args.check()?)?)
            }
        }
    }

    /// `out = epilogue(x · Wᵀ)`.
    pub(super) fn linear(
        &mut self,
        x: &Input<B>,
        weights: &B::Packed,
        epilogue: Epilogue<'_, B>,
        out: &Tensor<B>,
    ) -> Result<()> {
        let args = LinearArgs { x: x.activations(), weights, epilogue, out };
        Ok(self.device.linear(self.stream, args.check()?)?)
    }

    /// Chooses experts.
    pub(super) fn route(&mut self, args: RoutingArgs<'_, B>) -> Result<()> {
        Ok(self.device.route(self.stream, args.check()?)?)
    }

    /// The experts of a layer.
    pub(super) fn moe(&mut self, args: ExpertsArgs<'_, B>) -> Result<()> {
        Ok(self.device.moe(self.stream, args.check()?)?)
    }

    /// Turns queries in place, and keys on their way to the cache, where values go with them.
    pub(super) fn rope_cache_write(&mut self, args: RopeWriteArgs<'_, B>) -> Result<()> {
        Ok(self.device.rope_cache_write(self.stream, args.check()?)?)
    }

    /// Attention of one layer.
    pub(super) fn attention(&mut self, args: AttentionArgs<'_, B>) -> Result<()> {
        Ok(self.device.attention(self.stream, args.check()?)?)
    }
}
