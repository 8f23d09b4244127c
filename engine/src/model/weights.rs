//! A file's tensors to packed weights on the device, one matrix at a time.

use super::convert::HostMatrix;
use super::shapes::layer_tensor;
use super::{ModelConfig, ModelError};
use crate::gguf::{GgufFile, TensorView};
use crate::{LoadProgress, Result, WeightsFormat};
use halite_kernels::activation::Activation;
use halite_kernels::embedding::{EmbeddingSpec, EmbeddingTable, TableFormat};
use halite_kernels::linear::{LinearSpec, WeightFormat};
use halite_kernels::{Backend, DType, Tensor};

/// The embedding table's tensor, the output layer's too where they are tied.
const TABLE: &str = "token_embd.weight";

/// All weights of a decoder.
pub(super) struct Weights<B: Backend> {
    pub(super) embedding: Table<B>,
    pub(super) layers: Vec<LayerWeights<B>>,
    pub(super) final_norm: Tensor<B>,
    /// `[vocabulary, hidden]`.
    pub(super) output: B::Packed,
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// Values of all of them, a tied output layer counted once.
    pub(super) parameters: u64,
}

/// One layer's weights.
pub(super) struct LayerWeights<B: Backend> {
    /// F32 `[hidden]`.
    pub(super) attention_norm: Tensor<B>,
    /// Query, key and value rows, one below the other: `[query + 2 · kv, hidden]`.
    pub(super) qkv: B::Packed,
    /// `[hidden, query]`.
    pub(super) attention_out: B::Packed,
    /// F32 `[hidden]`.
    pub(super) ffn_norm: Tensor<B>,
    /// Gate rows above up rows, as one gated layer of `ffn` columns.
    pub(super) gate_up: B::Packed,
    /// `[hidden, ffn]`.
    pub(super) down: B::Packed,
}

/// The embedding table: a row for each token id.
pub(super) enum Table<B: Backend> {
    Float(Tensor<B>),
    Int8 { q: Tensor<B>, scales: Tensor<B> },
}

impl<B: Backend> Table<B> {
    fn new(stream: &mut B::Stream, matrix: &HostMatrix, dims: &[usize]) -> Result<Self> {
        Ok(match matrix {
            HostMatrix::F32(values) => Self::Float(Tensor::from_slice(stream, values, dims)?),
            HostMatrix::Bf16(values) => Self::Float(Tensor::from_slice(stream, values, dims)?),
            HostMatrix::Int8 { q, scales } => Self::Int8 {
                q: Tensor::from_slice(stream, q, dims)?,
                scales: Tensor::from_slice(stream, scales, &dims[..1])?,
            },
        })
    }

    pub(super) fn spec(&self) -> EmbeddingSpec {
        EmbeddingSpec::new(match self {
            Self::Float(table) => TableFormat::Float(table.dtype()),
            Self::Int8 { .. } => TableFormat::Int8PerRow,
        })
    }

    pub(super) fn as_argument(&self) -> EmbeddingTable<'_, B> {
        match self {
            Self::Float(table) => EmbeddingTable::Float(table),
            Self::Int8 { q, scales } => EmbeddingTable::Int8PerRow { q, scales },
        }
    }
}

/// The linear layer that takes `in_features` to `out_features` in a weights' format.
fn linear_spec(format: WeightsFormat, in_features: usize, out_features: usize) -> LinearSpec {
    match format {
        WeightsFormat::W8a8 => LinearSpec::w8a8(in_features, out_features),
        WeightsFormat::Bf16 => LinearSpec::float(in_features, out_features, WeightFormat::Bf16),
        WeightsFormat::F32 => LinearSpec::float(in_features, out_features, WeightFormat::F32),
    }
}

impl<B: Backend> Weights<B> {
    /// Converts, packs and uploads everything; every shape has been checked.
    pub(super) fn load(
        device: &B,
        stream: &mut B::Stream,
        file: &GgufFile,
        config: &ModelConfig,
        format: WeightsFormat,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        let total = file.tensors().filter_map(|tensor| tensor.byte_len()).map(|bytes| bytes as u64).sum();
        let mut loader = Loader { device, stream, file, progress, done: 0, total, kept: 0, read: 0 };
        let (hidden, ffn) = (config.hidden, config.ffn);
        let (query, kv) = (config.query_width(), config.kv_width());

        let table = loader.matrix(&[TABLE.to_owned()], format)?;
        let embedding = Table::new(loader.stream, &table, &[config.vocabulary, hidden])?;
        loader.kept += table.bytes();
        drop(table);
        let output_format = format.output_layer();
        let output_spec = linear_spec(output_format, hidden, config.vocabulary);
        let output = if config.tied {
            // The table again, in the output layer's format. Its progress was counted above.
            let table = HostMatrix::read(&[file.tensor(TABLE)?], output_format)?;
            loader.pack(&table, &output_spec)?
        } else {
            loader.linear(&["output.weight".to_owned()], output_format, &output_spec)?
        };

        let mut layers = Vec::with_capacity(config.layers);
        for layer in 0..config.layers {
            let name = |name| layer_tensor(layer, name);
            let gate_up = linear_spec(format, hidden, ffn).gated(Activation::Silu);
            layers.push(LayerWeights {
                attention_norm: loader.vector(&name("attn_norm"))?,
                qkv: loader.linear(
                    &[name("attn_q"), name("attn_k"), name("attn_v")],
                    format,
                    &linear_spec(format, hidden, query + 2 * kv),
                )?,
                attention_out: loader.linear(
                    &[name("attn_output")],
                    format,
                    &linear_spec(format, query, hidden),
                )?,
                ffn_norm: loader.vector(&name("ffn_norm"))?,
                gate_up: loader.linear(&[name("ffn_gate"), name("ffn_up")], format, &gate_up)?,
                down: loader.linear(&[name("ffn_down")], format, &linear_spec(format, ffn, hidden))?,
            });
        }
        let final_norm = loader.vector("output_norm.weight")?;
        let (bytes, parameters) = (loader.kept, loader.read);
        Ok(Self { embedding, layers, final_norm, output, bytes, parameters })
    }
}

/// What converting a tensor needs, and how far it has come.
struct Loader<'a, B: Backend> {
    device: &'a B,
    stream: &'a mut B::Stream,
    file: &'a GgufFile,
    progress: &'a mut dyn FnMut(LoadProgress<'_>),
    /// Bytes of the file's tensors.
    done: u64,
    total: u64,
    /// Bytes kept.
    kept: u64,
    /// Values read.
    read: u64,
}

impl<B: Backend> Loader<'_, B> {
    /// The rows of the named tensors, one below the other.
    fn matrix(&mut self, names: &[String], format: WeightsFormat) -> Result<HostMatrix> {
        let parts =
            names.iter().map(|name| self.file.tensor(name)).collect::<std::result::Result<Vec<_>, _>>()?;
        let matrix = HostMatrix::read(&parts, format)?;
        parts.iter().for_each(|part| self.count(part));
        Ok(matrix)
    }

    fn linear(&mut self, names: &[String], format: WeightsFormat, spec: &LinearSpec) -> Result<B::Packed> {
        let matrix = self.matrix(names, format)?;
        self.pack(&matrix, spec)
    }

    fn pack(&mut self, matrix: &HostMatrix, spec: &LinearSpec) -> Result<B::Packed> {
        self.device.linear_supports(spec).require("linear", self.device, spec)?;
        self.kept += matrix.bytes();
        Ok(self.device.linear_pack(self.stream, matrix.weights().check(spec)?)?)
    }

    /// A vector of F32, whatever the other weights are.
    fn vector(&mut self, name: &str) -> Result<Tensor<B>> {
        let view = self.file.tensor(name)?;
        let values = view.to_f32()?;
        if !values.iter().all(|value| value.is_finite()) {
            return Err(ModelError::NotFinite { tensor: name.to_owned(), row: 0 }.into());
        }
        self.kept += (values.len() * DType::F32.size()) as u64;
        self.count(&view);
        Ok(Tensor::from_slice(self.stream, &values, &[values.len()])?)
    }

    fn count(&mut self, tensor: &TensorView<'_>) {
        self.done += tensor.data().len() as u64;
        self.read += (tensor.rows() * tensor.row_len()) as u64;
        (self.progress)(LoadProgress { tensor: tensor.name(), done: self.done, total: self.total });
    }
}
