//! The vocabulary of a `tokenizer.json`: tokens, added tokens, and the checks both must pass.

use std::collections::HashMap;

use super::error::{TextError, VocabularyFault as Fault};
use super::tokenizer_config::TokenizerConfig;
use super::tokenizer_file::{AddedTokenSource, TokenizerFile};
use super::vocabulary::{MAX_TOKEN_BYTES, MAX_TOKENS, MAX_TOTAL_BYTES, limit};
use crate::quoted::quoted;

/// Longest added token, in bytes. The longest in use have about 60.
const MAX_ADDED_BYTES: usize = 512;
/// Unused ids that are accepted below the highest one, besides one for every token.
const MAX_HOLES: usize = 1 << 12;

/// A vocabulary that passed the checks.
#[derive(Debug)]
pub(crate) struct FileVocabulary {
    /// By id; a hole is empty.
    pub(crate) tokens: Vec<String>,
    /// The model's tokens.
    pub(crate) ids: HashMap<String, u32>,
    /// In the order of the file.
    pub(crate) added: Vec<AddedTokenSource>,
    /// Where in `added` a text is.
    places: HashMap<String, usize>,
}

impl FileVocabulary {
    /// Takes the vocabulary out of the file and adds what the configuration says about it.
    pub(crate) fn new(file: &mut TokenizerFile, config: &TokenizerConfig) -> Result<Self, TextError> {
        let entries = std::mem::take(&mut file.model.vocab.0);
        let added = std::mem::take(&mut file.added_tokens);
        limit("tokens", entries.len() + added.len(), MAX_TOKENS)?;
        let mut ids = HashMap::with_capacity(entries.len());
        for (text, id) in entries {
            if let Some(first) = ids.insert(text.clone(), id) {
                return Err(Fault::DuplicateToken { first, second: id, text: quoted(&text) }.into());
            }
        }
        let mut vocabulary = Self { tokens: Vec::new(), ids, added: Vec::new(), places: HashMap::new() };
        let mut next = vocabulary.ids.len();
        for token in added {
            vocabulary.add(token, &mut next)?;
        }
        for token in config.added_tokens() {
            vocabulary.override_with(token, &mut next)?;
        }
        vocabulary.mark_special(config);
        vocabulary.place()?;
        Ok(vocabulary)
    }

    /// Adds a token. The `tokenizers` package numbers those that are not in the vocabulary itself, one after the
    /// other, whatever the file says; a file that says something else is not the one that the model was trained with.
    fn add(&mut self, token: AddedTokenSource, next: &mut usize) -> Result<(), TextError> {
        if token.content.is_empty() {
            return Err(Fault::EmptySpecialToken { id: token.id }.into());
        }
        if token.content.len() > MAX_ADDED_BYTES {
            let (id, found) = (token.id as usize, token.content.len());
            return Err(Fault::TokenTooLong { id, found, limit: MAX_ADDED_BYTES }.into());
        }
        let expected = self.ids.get(&token.content).map_or(*next, |&id| id as usize);
        if token.id as usize != expected {
            let text = quoted(&token.content);
            return Err(Fault::AddedTokenId { text, found: token.id, expected }.into());
        }
        *next += usize::from(expected == *next);
        self.push(token);
        Ok(())
    }

    fn push(&mut self, token: AddedTokenSource) {
        self.places.insert(token.content.clone(), self.added.len());
        self.added.push(token);
    }

    fn known(&mut self, text: &str) -> Option<&mut AddedTokenSource> {
        self.places.get(text).and_then(|&place| self.added.get_mut(place))
    }

    fn override_with(&mut self, token: AddedTokenSource, next: &mut usize) -> Result<(), TextError> {
        match self.known(&token.content) {
            // Same text, other flags: `transformers` adds the token anew, under its old id.
            Some(known) => *known = AddedTokenSource { id: known.id, ..token },
            None => self.add(token, next)?,
        }
        Ok(())
    }

    /// Makes the tokens that the configuration names special, where the vocabulary has them.
    fn mark_special(&mut self, config: &TokenizerConfig) {
        for text in config.special().filter(|text| !text.is_empty() && text.len() <= MAX_ADDED_BYTES) {
            if let Some(known) = self.known(text) {
                known.special = true;
            } else if let Some(&id) = self.ids.get(text) {
                let content = text.to_owned();
                let (single_word, lstrip, rstrip, normalized) = (false, false, false, false);
                let special = true;
                self.push(AddedTokenSource { id, content, single_word, lstrip, rstrip, normalized, special });
            }
        }
    }

    /// Puts every token at its id.
    fn place(&mut self) -> Result<(), TextError> {
        let all = || {
            let own = self.ids.iter().map(|(text, &id)| (text.as_str(), id));
            own.chain(self.added.iter().map(|token| (token.content.as_str(), token.id)))
        };
        let Some(last) = all().map(|(_, id)| id as usize).max() else { return Err(Fault::Empty.into()) };
        limit("ids", last.saturating_add(1), MAX_TOKENS)?;
        let count = self.ids.len() + self.added.len();
        let holes = (last + 1).saturating_sub(count);
        limit("unused ids", holes, count.saturating_add(MAX_HOLES))?;
        let mut tokens = vec![""; last + 1];
        let mut bytes = 0usize;
        for (text, id) in all() {
            if text.len() > MAX_TOKEN_BYTES {
                let (id, found) = (id as usize, text.len());
                return Err(Fault::TokenTooLong { id, found, limit: MAX_TOKEN_BYTES }.into());
            }
            bytes = bytes.saturating_add(text.len());
            limit("bytes of token text", bytes, MAX_TOTAL_BYTES)?;
            // No id lies beyond the last.
            if let Some(slot) = tokens.get_mut(id as usize) {
                if !slot.is_empty() && *slot != text {
                    let (first, second) = (quoted(slot), quoted(text));
                    return Err(Fault::DuplicateId { id, first, second }.into());
                }
                *slot = text;
            }
        }
        self.tokens = tokens.into_iter().map(String::from).collect();
        Ok(())
    }
}
