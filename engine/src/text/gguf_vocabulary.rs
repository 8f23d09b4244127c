//! The vocabulary in a GGUF file's metadata.

use super::vocabulary::VocabularySource;
use crate::gguf::{GgufError, Metadata};

impl VocabularySource {
    /// Reads the keys below `tokenizer.ggml.`. Nothing is checked here but their types.
    ///
    /// # Errors
    /// A [`GgufError`] naming the key, if `model` or `tokens` is missing or any key has another type.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, GgufError> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let id = |name: &str| metadata.opt_u32(&key(name));
        let strings = |list: &crate::gguf::Strings| list.iter().map(str::to_owned).collect::<Vec<_>>();
        Ok(Self {
            model: metadata.str(&key("model"))?.to_owned(),
            pre: metadata.opt_str(&key("pre"))?.map(str::to_owned),
            tokens: strings(metadata.strings(&key("tokens"))?),
            merges: metadata.opt_strings(&key("merges"))?.map(strings).unwrap_or_default(),
            scores: metadata.opt_f32s(&key("scores"))?.unwrap_or_default().to_vec(),
            token_types: metadata.opt_i32s(&key("token_type"))?.unwrap_or_default().to_vec(),
            bos: id("bos_token_id")?,
            eos: id("eos_token_id")?,
            eot: id("eot_token_id")?,
            unk: id("unknown_token_id")?,
            add_bos: metadata.opt_bool(&key("add_bos_token"))?,
            add_space_prefix: metadata.opt_bool(&key("add_space_prefix"))?,
        })
    }
}
