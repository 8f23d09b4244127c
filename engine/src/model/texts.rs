//! The tokenizer and the chat template that a model file brings.

use crate::Result;
use crate::gguf::Metadata;
use crate::text::{ChatTemplate, Tokenizer, VocabularySource};

/// The tokenizer, from the keys below `tokenizer.ggml.`.
///
/// # Errors
/// A missing key, or a vocabulary that contradicts itself.
pub fn tokenizer(metadata: &Metadata) -> Result<Tokenizer> {
    let strings = |key| Ok::<_, crate::EngineError>(metadata.opt_strings(key)?);
    let owned = |key| {
        Ok::<_, crate::EngineError>(
            strings(key)?.map(|list| list.iter().map(str::to_owned).collect()).unwrap_or_default(),
        )
    };
    let tokens = metadata.strings("tokenizer.ggml.tokens")?.iter().map(str::to_owned).collect();
    let mut source = VocabularySource::new(metadata.str("tokenizer.ggml.model")?, tokens);
    source.pre = metadata.opt_str("tokenizer.ggml.pre")?.map(str::to_owned);
    source.merges = owned("tokenizer.ggml.merges")?;
    source.scores = metadata.opt_f32s("tokenizer.ggml.scores")?.unwrap_or_default().to_vec();
    source.token_types = metadata.opt_i32s("tokenizer.ggml.token_type")?.unwrap_or_default().to_vec();
    source.bos = metadata.opt_u32("tokenizer.ggml.bos_token_id")?;
    source.eos = metadata.opt_u32("tokenizer.ggml.eos_token_id")?;
    source.eot = metadata.opt_u32("tokenizer.ggml.eot_token_id")?;
    source.unk = metadata.opt_u32("tokenizer.ggml.unknown_token_id")?;
    source.pad = metadata.opt_u32("tokenizer.ggml.padding_token_id")?;
    source.add_bos = metadata.opt_bool("tokenizer.ggml.add_bos_token")?;
    source.add_space_prefix = metadata.opt_bool("tokenizer.ggml.add_space_prefix")?;
    Ok(Tokenizer::new(source)?)
}

/// The chat template, where the file has one.
///
/// # Errors
/// A template that is no template.
pub fn chat_template(metadata: &Metadata) -> Result<Option<ChatTemplate>> {
    let Some(source) = metadata.opt_str("tokenizer.chat_template")? else { return Ok(None) };
    Ok(Some(ChatTemplate::new(source)?))
}
