//! A GGUF file as a model file.

use super::{
    ExpertPart, GenerationDefaults, LayerPart, ModelConfig, ModelError, ModelFile, ModelTexts, Part,
    SourceTensor, StoredTensor, Tensors, gguf_config, rope_factors,
};
use crate::Result;
use crate::gguf::GgufFile;
use crate::text::{ChatTemplate, Tokenizer, VocabularySource};

impl ModelFile for GgufFile {
    fn texts(&self) -> Result<ModelTexts> {
        let metadata = self.metadata();
        let tokenizer = Tokenizer::new(VocabularySource::from_gguf(metadata)?)?;
        let template = metadata.opt_str("tokenizer.chat_template")?.map(ChatTemplate::new).transpose()?;
        Ok(ModelTexts::new(tokenizer, template))
    }

    /// The format has no place for it.
    fn generation(&self) -> Result<GenerationDefaults> {
        Ok(GenerationDefaults::default())
    }

    fn architecture(&self) -> Option<String> {
        self.metadata().str("general.architecture").ok().map(str::to_owned)
    }

    fn stored_tensors(&self) -> Vec<StoredTensor<'_>> {
        let tensors = self.tensors().map(|tensor| StoredTensor {
            name: tensor.name(),
            element_type: tensor.type_name().to_owned(),
            shape: tensor.shape(),
            bytes: tensor.byte_len().map(|bytes| bytes as u64),
        });
        tensors.collect()
    }
}

impl Tensors for GgufFile {
    fn read_config(&self) -> Result<ModelConfig> {
        gguf_config::read(self)
    }

    fn tensor_name(&self, part: Part) -> String {
        let layer_part = |part| match part {
            LayerPart::AttentionNorm => "attn_norm.weight",
            LayerPart::Query => "attn_q.weight",
            LayerPart::Key => "attn_k.weight",
            LayerPart::Value => "attn_v.weight",
            LayerPart::QueryBias => "attn_q.bias",
            LayerPart::KeyBias => "attn_k.bias",
            LayerPart::ValueBias => "attn_v.bias",
            LayerPart::QueryNorm => "attn_q_norm.weight",
            LayerPart::KeyNorm => "attn_k_norm.weight",
            LayerPart::AttentionOut => "attn_output.weight",
            LayerPart::PostAttentionNorm => "post_attention_norm.weight",
            LayerPart::FfnNorm => "ffn_norm.weight",
            LayerPart::Gate => "ffn_gate.weight",
            LayerPart::Up => "ffn_up.weight",
            LayerPart::Down => "ffn_down.weight",
            LayerPart::PostFfnNorm => "post_ffw_norm.weight",
            LayerPart::Router => "ffn_gate_inp.weight",
            // One tensor holds a matrix of every expert.
            LayerPart::Expert(_, ExpertPart::Gate) => "ffn_gate_exps.weight",
            LayerPart::Expert(_, ExpertPart::Up) => "ffn_up_exps.weight",
            LayerPart::Expert(_, ExpertPart::Down) => "ffn_down_exps.weight",
        };
        match part {
            Part::Embedding => "token_embd.weight".to_owned(),
            Part::FinalNorm => "output_norm.weight".to_owned(),
            Part::Output => "output.weight".to_owned(),
            Part::Layer(layer, part) => format!("blk.{layer}.{}", layer_part(part)),
        }
    }

    fn stored_shape(&self, part: Part, shape: &[usize], config: &ModelConfig) -> Vec<usize> {
        match (part, &config.experts) {
            (Part::Layer(_, LayerPart::Expert(..)), Some(routing)) => [&[routing.experts], shape].concat(),
            _ => shape.to_vec(),
        }
    }

    fn tensor(&self, part: Part) -> Result<SourceTensor<'_>> {
        let name = self.tensor_name(part);
        let view = GgufFile::tensor(self, &name)?;
        let Part::Layer(_, LayerPart::Expert(expert, _)) = part else { return Ok(SourceTensor::Gguf(view)) };
        match *view.shape() {
            [experts, rows, _] if expert < experts => {
                Ok(SourceTensor::GgufRows { view, rows: expert * rows..(expert + 1) * rows })
            }
            ref shape => {
                Err(ModelError::TensorShape { tensor: name, expected: vec![expert + 1], got: shape.to_vec() }
                    .into())
            }
        }
    }

    fn is_passed_over(&self, name: &str, _: &ModelConfig) -> bool {
        // Not passed over: read into the configuration.
        name == rope_factors::TENSOR
    }
}
