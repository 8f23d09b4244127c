//! In which format the matrix of each linear layer is kept.

use super::four_bit::FourBit;
use super::{ExpertPart, LayerPart, ModelConfig};
use crate::WeightsFormat;
use halite_kernels::linear::{GroupOffset, LinearSpec, WeightFormat};

/// Values of a group of 4-bit weights that are quantised here: as many as GGUF's blocks of 4 bits have, and the finest that
/// activations quantised per group could go with.
pub(crate) const GROUP: usize = 32;

/// The matrix of one linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerMatrix {
    /// Query, key and value rows, one below the other.
    Qkv,
    AttentionOut,
    /// Gate rows above up rows.
    GateUp,
    Down,
}

/// How a matrix is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixFormat {
    F32,
    Bf16,
    /// INT8 with a scale a row, quantised here.
    Int8,
    /// The same, for activations that stay floats.
    Int8ForFloats,
    /// INT8 with a scale a row, as the file has it.
    StoredInt8,
    /// 4 bits in symmetric groups of [`GROUP`], quantised here.
    Int4,
    /// Blocks of 4 bits, as the file has them.
    Blocks(WeightFormat),
}

impl LayerPart {
    /// The matrix that a part belongs to; none for vectors and routers.
    pub(super) fn matrix(self) -> Option<LayerMatrix> {
        match self {
            Self::Query | Self::Key | Self::Value => Some(LayerMatrix::Qkv),
            Self::AttentionOut => Some(LayerMatrix::AttentionOut),
            Self::Gate | Self::Up | Self::Expert(_, ExpertPart::Gate | ExpertPart::Up) => {
                Some(LayerMatrix::GateUp)
            }
            Self::Down | Self::Expert(_, ExpertPart::Down) => Some(LayerMatrix::Down),
            _ => None,
        }
    }
}

impl ModelConfig {
    /// The format of a layer's matrix in a model's weights.
    pub(crate) fn matrix_format(
        &self,
        weights: WeightsFormat,
        layer: usize,
        matrix: LayerMatrix,
    ) -> MatrixFormat {
        match weights {
            WeightsFormat::W8a8 if self.stored_w8a8 => MatrixFormat::StoredInt8,
            WeightsFormat::W4a8 => match self.four_bit.get(layer).map(|layer| layer.of(matrix)) {
                Some(FourBit::Stored(format)) => MatrixFormat::Blocks(format),
                Some(FourBit::Int8) => MatrixFormat::Int8,
                Some(FourBit::Quantized) | None => MatrixFormat::Int4,
            },
            _ => MatrixFormat::of(weights),
        }
    }

    /// The format of the output layer's matrix: [`WeightsFormat::output_layer`] says why. A checkpoint that has its layers in
    /// INT8 says itself which it left as floats.
    pub(crate) fn output_format(&self, weights: WeightsFormat) -> MatrixFormat {
        match weights {
            WeightsFormat::W8a8 if self.stored_w8a8 => MatrixFormat::Bf16,
            WeightsFormat::W8a8 => MatrixFormat::Int8ForFloats,
            other => MatrixFormat::of(other.output_layer()),
        }
    }
}

impl MatrixFormat {
    /// The format that a matrix of floats takes.
    pub(crate) fn of(weights: WeightsFormat) -> Self {
        match weights {
            WeightsFormat::W8a8 => Self::Int8,
            WeightsFormat::W4a8 => Self::Int4,
            WeightsFormat::Bf16 => Self::Bf16,
            WeightsFormat::F32 => Self::F32,
        }
    }

    /// Whether activations are quantised for it.
    pub(crate) fn quantizes_activations(self) -> bool {
        match self {
            Self::F32 | Self::Bf16 | Self::Int8ForFloats => false,
            Self::Int8 | Self::StoredInt8 | Self::Int4 | Self::Blocks(_) => true,
        }
    }

    /// The linear layer that takes `in_features` to `out_features`.
    pub(crate) fn spec(self, in_features: usize, out_features: usize) -> LinearSpec {
        let int4 = WeightFormat::Int4PerGroup { group_size: GROUP, offset: GroupOffset::Symmetric };
        let w8a8 = LinearSpec::w8a8(in_features, out_features);
        match self {
            Self::F32 => LinearSpec::float(in_features, out_features, WeightFormat::F32),
            Self::Bf16 => LinearSpec::float(in_features, out_features, WeightFormat::Bf16),
            Self::Int8 | Self::StoredInt8 => w8a8,
            Self::Int8ForFloats => LinearSpec::float(in_features, out_features, WeightFormat::Int8PerChannel),
            Self::Int4 => w8a8.with_weights(int4),
            Self::Blocks(format) => w8a8.with_weights(format),
        }
    }

    /// Bytes of a matrix. Scales and minima are counted as F32, which backends keep them in.
    pub(crate) fn bytes(self, rows: u64, columns: u64) -> u64 {
        let factors = |each: u64| 4 * each * columns.div_ceil(GROUP as u64);
        let row = match self {
            Self::F32 => 4 * columns,
            Self::Bf16 => 2 * columns,
            Self::Int8 | Self::Int8ForFloats | Self::StoredInt8 => columns + 4,
            Self::Int4 => columns.div_ceil(2) + factors(1),
            Self::Blocks(format) => {
                columns.div_ceil(2) + factors(if format.offset() == GroupOffset::Min { 2 } else { 1 })
            }
        };
        rows * row
    }
}
