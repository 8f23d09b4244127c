//! Packed weights on the device, one matrix at a time: of a file's tensors, or of what an earlier start kept of them.

use super::convert::HostMatrix;
use super::keeping::{self, Kept};
use super::weights::{FfnWeights, LayerWeights, Network, Table, Weights, network_specs};
use crate::model_file::{
    ExpertPart, LayerMatrix, LayerPart, MatrixFormat, ModelConfig, ModelFile, Part, SourceTensor,
};
use crate::weights_cache::WeightsCache;
use crate::{LoadProgress, LoadStep, Result, WeightsFormat};
use halite_kernels::linear::LinearSpec;
use halite_kernels::{Backend, DType, Tensor};

/// Whose weights, and how they are kept.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a dyn ModelFile,
    pub(super) config: &'a ModelConfig,
    /// Of the layers' matrices.
    pub(super) format: WeightsFormat,
    pub(super) cache: Option<&'a WeightsCache>,
}

impl<B: Backend> Weights<B> {
    /// Takes what was kept, or converts, packs and uploads everything; every shape has been checked.
    pub(super) fn load(
        device: &B,
        stream: &mut B::Stream,
        source: Source<'_>,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        let Source { file, format, cache, .. } = source;
        let backend = device.info().backend;
        // A model that was replaced since its state was noted is not the one that is open.
        let cache = cache.filter(|cache| cache.is_current());
        if let Some(kept) = cache.and_then(|cache| keeping::kept(cache, format, backend)) {
            let (step, total) = (LoadStep::Restoring, kept.bytes());
            let keeping = Kept::Restored(kept);
            let mut loader =
                Loader { device, stream, source, keeping, progress, step, done: 0, total, kept: 0 };
            match loader.weights() {
                Ok(weights) => return Ok(weights),
                // A fault of the device comes again when the weights are converted.
                Err(error) => keeping::not_taken(&error),
            }
        }
        let total = file.stored_tensors().iter().filter_map(|tensor| tensor.bytes).sum();
        let keeping = cache.map_or(Kept::Off, |cache| Kept::begin(cache, format, backend));
        let step = LoadStep::Converting;
        let mut loader = Loader { device, stream, source, keeping, progress, step, done: 0, total, kept: 0 };
        let weights = loader.weights()?;
        if let (Some(cache), Kept::Written(writer)) = (cache, &loader.keeping) {
            let bytes = writer.bytes();
            (loader.progress)(LoadProgress {
                step: LoadStep::Keeping,
                tensor: "",
                done: bytes,
                total: bytes,
            });
            loader.keeping.finish(cache);
        }
        Ok(weights)
    }
}

/// What loading a tensor needs, and how far it has come.
struct Loader<'a, B: Backend> {
    device: &'a B,
    stream: &'a mut B::Stream,
    source: Source<'a>,
    keeping: Kept,
    progress: &'a mut dyn FnMut(LoadProgress<'_>),
    step: LoadStep,
    /// Bytes of the file's tensors, or of what was kept.
    done: u64,
    total: u64,
    /// Bytes in memory.
    kept: u64,
}

impl<B: Backend> Loader<'_, B> {
    fn weights(&mut self) -> Result<Weights<B>> {
        let Source { file, config, format, .. } = self.source;
        let embedding = self.table(MatrixFormat::of(config.table_format(format)))?;
        let output_format = config.output_format(format);
        let output_spec = output_format.spec(config.hidden, config.vocabulary);
        let output = if config.tied {
            // The table again, in the output layer's format. Its progress was counted above.
            self.packed("output", output_format, &output_spec, |_| {
                HostMatrix::read(&[file.tensor(Part::Embedding)?], output_format)
            })?
        } else {
            self.linear(&[Part::Output], output_format, &output_spec)?
        };
        let layers = (0..config.layers).map(|layer| self.layer(layer)).collect::<Result<_>>()?;
        let final_norm = self.norm(Part::FinalNorm)?;
        let restored = matches!(self.keeping, Kept::Restored(_));
        Ok(Weights { embedding, layers, final_norm, output, bytes: self.kept, restored })
    }

    fn layer(&mut self, layer: usize) -> Result<LayerWeights<B>> {
        use LayerPart::*;
        let part = |part| Part::Layer(layer, part);
        let Source { config, format, .. } = self.source;
        let hidden = config.hidden;
        let (query, kv) = (config.query_width(), config.kv_width());
        let format = |matrix| config.matrix_format(format, layer, matrix);
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
        let Source { config, format, .. } = self.source;
        let [gate_up_spec, down_spec] = network_specs(config, format, layer);
        let format = |matrix| config.matrix_format(format, layer, matrix);
        let (gate_up_format, down_format) = (format(LayerMatrix::GateUp), format(LayerMatrix::Down));
        let Some(routing) = &config.experts else {
            let parts = [part(LayerPart::Gate), part(LayerPart::Up)];
            return Ok(FfnWeights::Dense(Network {
                gate_up: self.linear(&parts, gate_up_format, &gate_up_spec)?,
                down: self.linear(&[part(LayerPart::Down)], down_format, &down_spec)?,
            }));
        };
        let router_spec = MatrixFormat::F32.spec(config.hidden, routing.experts);
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

    /// The embedding table.
    fn table(&mut self, format: MatrixFormat) -> Result<Table<B>> {
        let dims = [self.source.config.vocabulary, self.source.config.hidden];
        self.kept += format.bytes(dims[0] as u64, dims[1] as u64);
        if let Kept::Restored(kept) = &mut self.keeping {
            let table = Table::take(self.stream, kept, format, &dims)?;
            self.advance("table", format.bytes(dims[0] as u64, dims[1] as u64));
            return Ok(table);
        }
        let matrix = self.matrix(&[Part::Embedding], format)?;
        let table = Table::new(self.stream, &matrix, &dims)?;
        for (name, bytes) in matrix.sections() {
            self.keeping.keep(name, || Ok(bytes));
        }
        Ok(table)
    }

    /// The rows of some tensors, one below the other.
    fn matrix(&mut self, parts: &[Part], format: MatrixFormat) -> Result<HostMatrix> {
        let file = self.source.file;
        let tensors = parts.iter().map(|&part| file.tensor(part)).collect::<Result<Vec<_>>>()?;
        let matrix = HostMatrix::read(&tensors, format)?;
        tensors.iter().for_each(|tensor| self.count(tensor));
        Ok(matrix)
    }

    /// The rows of some tensors, as the weights of one linear layer.
    fn linear(&mut self, parts: &[Part], format: MatrixFormat, spec: &LinearSpec) -> Result<B::Packed> {
        self.packed(&format!("{parts:?}"), format, spec, |loader| loader.matrix(parts, format))
    }

    fn packed(
        &mut self,
        name: &str,
        format: MatrixFormat,
        spec: &LinearSpec,
        read: impl FnOnce(&mut Self) -> Result<HostMatrix>,
    ) -> Result<B::Packed> {
        self.device.linear_supports(spec).require("linear", self.device, spec)?;
        self.kept += format.bytes(spec.weight_rows() as u64, spec.in_features as u64);
        if let Kept::Restored(kept) = &mut self.keeping {
            let bytes = kept.take(name)?;
            let packed = self.device.linear_restore(self.stream, spec, bytes)?;
            let bytes = bytes.len() as u64;
            self.advance(name, bytes);
            return Ok(packed);
        }
        // The matrix goes before the packed bytes are copied once more.
        let packed = {
            let matrix = read(self)?;
            self.device.linear_pack(self.stream, matrix.weights().check(spec)?)?
        };
        self.keeping.keep(name, || self.device.linear_save(self.stream, &packed));
        Ok(packed)
    }

    /// The weight of a norm.
    fn norm(&mut self, part: Part) -> Result<Tensor<B>> {
        self.vector(&[part], self.source.config.norm_weight_offset)
    }

    /// Vectors one after the other, with `offset` added: F32, whatever the other weights are.
    fn vector(&mut self, parts: &[Part], offset: f32) -> Result<Tensor<B>> {
        let name = format!("{parts:?}");
        if let Kept::Restored(kept) = &mut self.keeping {
            let mut count = 0;
            for &part in parts {
                let tensor = self.source.file.tensor(part)?;
                count += tensor.rows() * tensor.row_len();
            }
            let values: &[f32] = kept.take_elements(&name, count)?;
            let vector = Tensor::from_slice(self.stream, values, &[values.len()])?;
            let bytes = size_of_val(values) as u64;
            self.kept += bytes;
            self.advance(&name, bytes);
            return Ok(vector);
        }
        let mut values = Vec::new();
        for &part in parts {
            let tensor = self.source.file.tensor(part)?;
            values.extend(tensor.to_f32()?.into_iter().map(|value| value + offset));
            self.count(&tensor);
        }
        self.kept += (values.len() * DType::F32.size()) as u64;
        self.keeping.keep(&name, || Ok(bytemuck::cast_slice::<f32, u8>(&values)));
        Ok(Tensor::from_slice(self.stream, &values, &[values.len()])?)
    }

    fn count(&mut self, tensor: &SourceTensor<'_>) {
        self.advance(tensor.name(), tensor.bytes());
    }

    /// So many bytes more are done.
    fn advance(&mut self, tensor: &str, bytes: u64) {
        self.done += bytes;
        let (step, done, total) = (self.step, self.done, self.total);
        (self.progress)(LoadProgress { step, tensor, done, total });
    }
}
