//! A file's tensors to packed weights on the device, one matrix at a time.

use super::convert::HostMatrix;
use super::weights::{FfnWeights, LayerWeights, Network, Table, Weights, network_specs};
use crate::model_file::{
    ExpertPart, LayerMatrix, LayerPart, MatrixFormat, ModelConfig, ModelFile, Part, SourceTensor,
};
use crate::{LoadProgress, Result, WeightsFormat};
use halite_kernels::linear::LinearSpec;
use halite_kernels::{Backend, DType, Tensor};

impl<B: Backend> Weights<B> {
    /// Converts, packs and uploads everything; every shape has been checked.
    pub(super) fn load(
        device: &B,
        stream: &mut B::Stream,
        file: &dyn ModelFile,
        config: &ModelConfig,
        format: WeightsFormat,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        let total = file.stored_tensors().iter().filter_map(|tensor| tensor.bytes).sum();
        let mut loader = Loader { device, stream, file, config, format, progress, done: 0, total, kept: 0 };

        let dims = [config.vocabulary, config.hidden];
        let table_format = MatrixFormat::of(config.table_format(format));
        let table = loader.matrix(&[Part::Embedding], table_format)?;
        let embedding = Table::new(loader.stream, &table, &dims)?;
        loader.kept += table_format.bytes(dims[0] as u64, dims[1] as u64);
        drop(table);
        let output_format = MatrixFormat::of(format.output_layer());
        let output_spec = output_format.spec(config.hidden, config.vocabulary);
        let output = if config.tied {
            // The table again, in the output layer's format. Its progress was counted above.
            let table = HostMatrix::read(&[file.tensor(Part::Embedding)?], output_format)?;
            loader.pack(&table, output_format, &output_spec)?
        } else {
            loader.linear(&[Part::Output], output_format, &output_spec)?
        };
        let layers = (0..config.layers).map(|layer| loader.layer(layer)).collect::<Result<_>>()?;
        let final_norm = loader.norm(Part::FinalNorm)?;
        let bytes = loader.kept;
        Ok(Self { embedding, layers, final_norm, output, bytes })
    }
}

/// What converting a tensor needs, and how far it has come.
struct Loader<'a, B: Backend> {
    device: &'a B,
    stream: &'a mut B::Stream,
    file: &'a dyn ModelFile,
    config: &'a ModelConfig,
    /// Of the layers' matrices.
    format: WeightsFormat,
    progress: &'a mut dyn FnMut(LoadProgress<'_>),
    /// Bytes of the file's tensors.
    done: u64,
    total: u64,
    /// Bytes kept.
    kept: u64,
}

impl<B: Backend> Loader<'_, B> {
    fn layer(&mut self, layer: usize) -> Result<LayerWeights<B>> {
        use LayerPart::*;
        let part = |part| Part::Layer(layer, part);
        let config = self.config;
        let hidden = config.hidden;
        let (query, kv) = (config.query_width(), config.kv_width());
        let format = |matrix| config.matrix_format(self.format, layer, matrix);
        let (qkv, attention_out) = (format(LayerMatrix::Qkv), format(LayerMatrix::AttentionOut));
        let qkv_spec = qkv.spec(hidden, query + 2 * kv);
        let attention_out_spec = attention_out.spec(query, hidden);
        let biases = [part(QueryBias), part(KeyBias), part(ValueBias)];
        Ok(LayerWeights {
            attention_norm: self.norm(part(AttentionNorm))?,
            qkv: self.linear(&[part(Query), part(Key), part(Value)], qkv, &qkv_spec)?,
            qkv_bias: config.qkv_bias.then(|| self.vector(&biases, 0.0)).transpose()?,
            head_norms: match config.head_norms {
                true => Some([self.norm(part(QueryNorm))?, self.norm(part(KeyNorm))?]),
                false => None,
            },
            attention_out: self.linear(&[part(AttentionOut)], attention_out, &attention_out_spec)?,
            post_attention_norm: config.post_norms.then(|| self.norm(part(PostAttentionNorm))).transpose()?,
            ffn_norm: self.norm(part(FfnNorm))?,
            ffn: self.ffn(layer)?,
            post_ffn_norm: config.post_norms.then(|| self.norm(part(PostFfnNorm))).transpose()?,
        })
    }

    fn ffn(&mut self, layer: usize) -> Result<FfnWeights<B>> {
        let part = |part| Part::Layer(layer, part);
        let [gate_up_spec, down_spec] = network_specs(self.config, self.format, layer);
        let format = |matrix| self.config.matrix_format(self.format, layer, matrix);
        let (gate_up_format, down_format) = (format(LayerMatrix::GateUp), format(LayerMatrix::Down));
        let Some(routing) = &self.config.experts else {
            return Ok(FfnWeights::Dense(Network {
                gate_up: self.linear(
                    &[part(LayerPart::Gate), part(LayerPart::Up)],
                    gate_up_format,
                    &gate_up_spec,
                )?,
                down: self.linear(&[part(LayerPart::Down)], down_format, &down_spec)?,
            }));
        };
        let router_spec = MatrixFormat::F32.spec(self.config.hidden, routing.experts);
        let router = self.linear(&[part(LayerPart::Router)], MatrixFormat::F32, &router_spec)?;
        let (mut gate_up, mut down) = (Vec::new(), Vec::new());
        for expert in 0..routing.experts {
            let of = |which| part(LayerPart::Expert(expert, which));
            let parts = [of(ExpertPart::Gate), of(ExpertPart::Up)];
            gate_up.push(self.linear(&parts, gate_up_format, &gate_up_spec)?);
            down.push(self.linear(&[of(ExpertPart::Down)], down_format, &down_spec)?);
        }
        Ok(FfnWeights::Experts { router, gate_up, down })
    }

    /// The rows of some tensors, one below the other.
    fn matrix(&mut self, parts: &[Part], format: MatrixFormat) -> Result<HostMatrix> {
        let file = self.file;
        let tensors = parts.iter().map(|&part| file.tensor(part)).collect::<Result<Vec<_>>>()?;
        let matrix = HostMatrix::read(&tensors, format)?;
        tensors.iter().for_each(|tensor| self.count(tensor));
        Ok(matrix)
    }

    /// The rows of some tensors, as the weights of one linear layer.
    fn linear(&mut self, parts: &[Part], format: MatrixFormat, spec: &LinearSpec) -> Result<B::Packed> {
        let matrix = self.matrix(parts, format)?;
        self.pack(&matrix, format, spec)
    }

    fn pack(&mut self, matrix: &HostMatrix, format: MatrixFormat, spec: &LinearSpec) -> Result<B::Packed> {
        self.device.linear_supports(spec).require("linear", self.device, spec)?;
        self.kept += format.bytes(spec.weight_rows() as u64, spec.in_features as u64);
        Ok(self.device.linear_pack(self.stream, matrix.weights().check(spec)?)?)
    }

    /// The weight of a norm.
    fn norm(&mut self, part: Part) -> Result<Tensor<B>> {
        self.vector(&[part], self.config.norm_weight_offset)
    }

    /// Vectors one after the other, with `offset` added: F32, whatever the other weights are.
    fn vector(&mut self, parts: &[Part], offset: f32) -> Result<Tensor<B>> {
        let mut values = Vec::new();
        for &part in parts {
            let tensor = self.file.tensor(part)?;
            values.extend(tensor.to_f32()?.into_iter().map(|value| value + offset));
            self.count(&tensor);
        }
        self.kept += (values.len() * DType::F32.size()) as u64;
        Ok(Tensor::from_slice(self.stream, &values, &[values.len()])?)
    }

    fn count(&mut self, tensor: &SourceTensor<'_>) {
        self.done += tensor.bytes();
        (self.progress)(LoadProgress { tensor: tensor.name(), done: self.done, total: self.total });
    }
}
