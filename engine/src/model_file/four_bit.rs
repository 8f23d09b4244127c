//! Which matrices a file has in blocks of 4 bits, that linear layers use as they are.

use super::matrix_format::LayerMatrix;
use super::{ExpertPart, LayerPart, ModelConfig, Part, SourceTensor, Tensors};
use crate::Result;
use halite_kernels::linear::WeightFormat;

/// How the matrix of a linear layer is kept with [`WeightsFormat::W4a8`](crate::WeightsFormat::W4a8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FourBit {
    /// As blocks of this format, [`WeightFormat::Q4_0`], [`WeightFormat::Q4_1`] or [`WeightFormat::Q4K`]: the file has it
    /// so.
    Stored(WeightFormat),
    /// As symmetric groups of 32, quantised here: nothing of it has 4 bits in the file.
    #[default]
    Quantized,
    /// As INT8: a linear layer has one format, and the file has one part of the matrix in blocks of 4 bits and another
    /// part otherwise. Rounding the first to 4 bits once more would lose twice.
    Int8,
}

/// How the matrices of a layer are kept with 4-bit weights. Experts have one format for all of them, in all layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FourBitLayer {
    /// Query, key and value.
    pub qkv: FourBit,
    /// After attention.
    pub attention_out: FourBit,
    /// Gate and up, of one network or of all experts.
    pub gate_up: FourBit,
    /// Down, of one network or of all experts.
    pub down: FourBit,
}

impl FourBit {
    /// Of a matrix whose parts the file has in these blocks, or otherwise.
    fn of(parts: impl IntoIterator<Item = Option<WeightFormat>>) -> Self {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Self::Quantized };
        let mut mixed = false;
        let mut blocks = first.is_some();
        for part in parts {
            mixed |= part != first;
            blocks |= part.is_some();
        }
        match first {
            _ if mixed && blocks => Self::Int8,
            Some(format) => Self::Stored(format),
            None => Self::Quantized,
        }
    }
}

impl FourBitLayer {
    pub(super) fn of(&self, matrix: LayerMatrix) -> FourBit {
        match matrix {
            LayerMatrix::Qkv => self.qkv,
            LayerMatrix::AttentionOut => self.attention_out,
            LayerMatrix::GateUp => self.gate_up,
            LayerMatrix::Down => self.down,
        }
    }
}

/// How the file has the matrices of all layers; every tensor is there.
pub(super) fn layers<F: Tensors + ?Sized>(file: &F, config: &ModelConfig) -> Result<Vec<FourBitLayer>> {
    let format = |tensor: &SourceTensor<'_>| tensor.blocks().map(|(format, _)| format);
    let of = |layer: usize, parts: &[LayerPart]| -> Result<FourBit> {
        let parts = parts.iter().map(|&part| Ok(format(&file.tensor(Part::Layer(layer, part))?)));
        Ok(FourBit::of(parts.collect::<Result<Vec<_>>>()?))
    };
    let dense = |layer: usize| -> Result<FourBitLayer> {
        use LayerPart::*;
        let (gate_up, down) = match config.experts {
            None => (of(layer, &[Gate, Up])?, of(layer, &[Down])?),
            Some(_) => Default::default(),
        };
        Ok(FourBitLayer {
            qkv: of(layer, &[Query, Key, Value])?,
            attention_out: of(layer, &[AttentionOut])?,
            gate_up,
            down,
        })
    };
    let mut layers = (0..config.layers).map(dense).collect::<Result<Vec<_>>>()?;
    if let Some(routing) = &config.experts {
        let all = |parts: &[ExpertPart]| -> Result<FourBit> {
            let mut found = Vec::new();
            for layer in 0..config.layers {
                for expert in 0..routing.experts {
                    for &part in parts {
                        let part = Part::Layer(layer, LayerPart::Expert(expert, part));
                        found.push(format(&file.tensor(part)?));
                    }
                }
            }
            Ok(FourBit::of(found))
        };
        let (gate_up, down) = (all(&[ExpertPart::Gate, ExpertPart::Up])?, all(&[ExpertPart::Down])?);
        layers.iter_mut().for_each(|layer| (layer.gate_up, layer.down) = (gate_up, down));
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_of_several_kinds_of_parts_is_int8() {
        let (a, b) = (Some(WeightFormat::Q4_0), Some(WeightFormat::Q4K));
        assert_eq!(FourBit::of([a, a, a]), FourBit::Stored(WeightFormat::Q4_0));
        assert_eq!(FourBit::of([None, None]), FourBit::Quantized);
        for mixed in [[a, b, a], [a, a, None], [None, None, b]] {
            assert_eq!(FourBit::of(mixed), FourBit::Int8, "{mixed:?}");
        }
    }
}
