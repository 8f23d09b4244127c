//! The texts of a model, apart from what computes.

use crate::text::{ChatInput, ChatMessage, ChatTemplate, SpecialTokens, Tokenizer, encode_chat};
use crate::{EngineError, Result};
use std::sync::Arc;

/// What a model says with: its tokenizer, with all tokens that end an answer, and the template that lays conversations out
/// where it has one. Clones share them.
#[derive(Clone, Debug)]
pub struct ModelTexts {
    tokenizer: Arc<Tokenizer>,
    template: Option<Arc<ChatTemplate>>,
}

impl ModelTexts {
    /// A tokenizer, and the template where the model has one.
    pub fn new(tokenizer: Tokenizer, template: Option<ChatTemplate>) -> Self {
        Self { tokenizer: Arc::new(tokenizer), template: template.map(Arc::new) }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The chat template, if the model has one.
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_deref()
    }

    /// The prompt that continues `text`; what looks like a control token in it is only text.
    ///
    /// # Errors
    /// Text that the vocabulary cannot write.
    pub fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.tokenizer.encode_prompt(text, SpecialTokens::AsText)?)
    }

    /// A conversation with the model's own control tokens and the assistant to speak next, for
    /// [`chat_prompt`](Self::chat_prompt).
    pub fn chat_input(&self, messages: Vec<ChatMessage>) -> ChatInput {
        let mut input = ChatInput::new(messages);
        let text =
            |id: Option<u32>| id.and_then(|id| self.tokenizer.token(id)).unwrap_or_default().to_owned();
        (input.bos_token, input.eos_token) = (text(self.tokenizer.bos()), text(self.tokenizer.eos()));
        input
    }

    /// The prompt that answers a conversation, by the model's own chat template.
    ///
    /// # Errors
    /// The model has no template, or the template refuses the messages.
    pub fn chat_prompt(&self, input: &ChatInput) -> Result<Vec<u32>> {
        let template = self.template.as_ref().ok_or(EngineError::NoChatTemplate)?;
        Ok(encode_chat(&self.tokenizer, template, input)?)
    }
}
