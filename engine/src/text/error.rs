//! What can go wrong between text and token ids. Text out of a model file stands in the errors quoted and shortened.

use std::path::PathBuf;

/// An error of the text layer. Its message names the thing, what was expected, and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The model file names a kind of tokenizer that is not built in.
    #[error("unsupported tokenizer model {found} (tokenizer.ggml.model); supported: {supported}")]
    UnsupportedModel {
        /// Value of `tokenizer.ggml.model`.
        found: String,
        /// Comma-separated names.
        supported: &'static str,
    },
    /// The model file names a way of splitting words that is not built in.
    #[error("unsupported pre-tokenizer {found} (tokenizer.ggml.pre); supported: {supported}")]
    UnsupportedPreTokenizer {
        /// Value of `tokenizer.ggml.pre`.
        found: String,
        /// Comma-separated names.
        supported: String,
    },
    /// A file of a model folder is not of the expected form.
    #[error("{file} is not as expected: {reason}")]
    File {
        /// The file's name.
        file: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// A model folder's tokenizer is of a kind that is not built in.
    #[error(
        "unsupported {what} {found} (tokenizer.json); supported: {supported}, byte-level or with byte fallback; \
         use a GGUF file of the model instead"
    )]
    UnsupportedTokenizer {
        /// The field.
        what: &'static str,
        /// Its value.
        found: String,
        /// Comma-separated names.
        supported: &'static str,
    },
    /// A model folder has no `tokenizer.json`.
    #[error(
        "{} has no tokenizer.json (a tokenizer.model alone is not read; the `transformers` package makes one of the \
         other with save_pretrained)",
        folder.display()
    )]
    NoTokenizer {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is larger than accepted.
    #[error("{} has more than the limit of {limit} bytes", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Most bytes accepted.
        limit: u64,
    },
    /// A pattern of the tokenizer's file cannot be used, or not on this text.
    #[error("the tokenizer's pattern {pattern} failed: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// The vocabulary contradicts itself or exceeds a limit.
    #[error("bad vocabulary: {0}")]
    Vocabulary(#[from] VocabularyFault),
    /// A character cannot be written with this vocabulary, nor can the replacement character.
    #[error(
        "this vocabulary has no token for byte {byte:#04x} of {character:?}, nor for the replacement character \
         U+FFFD; remove the character from the text"
    )]
    Unencodable {
        /// The character in the text.
        character: char,
        /// Its first byte without a token.
        byte: u8,
    },
    /// A token id lies outside the vocabulary.
    #[error("token id {id} is outside the vocabulary of {vocabulary} tokens")]
    UnknownToken {
        /// The id given.
        id: u32,
        /// Number of tokens.
        vocabulary: usize,
    },
    /// The text is longer than the tokenizer accepts in one call.
    #[error("the text has {found} bytes, more than the {limit} bytes accepted in one call")]
    TextTooLong {
        /// Length given, in bytes.
        found: usize,
        /// Longest accepted, in bytes.
        limit: usize,
    },
    /// The `tokenizers` crate refused.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// A stop string is empty, too long, or there are too many.
    #[error("bad stop strings: {0}")]
    StopStrings(String),
    /// The chat template is longer than accepted.
    #[error("the chat template has {found} bytes, more than the limit of {limit} bytes")]
    TemplateTooLong {
        /// Length of the template, in bytes.
        found: usize,
        /// Longest accepted, in bytes.
        limit: usize,
    },
    /// The chat template itself refused its input with `raise_exception`. A fault of the request, not of the model.
    #[error("the chat template refused the messages: {message}")]
    TemplateRefused {
        /// What the template said.
        message: String,
    },
    /// The chat template used up its budget of work: an endless loop, or far too much data.
    #[error(
        "the chat template did not finish within {fuel} steps (endless loop?); check the model's chat template \
         or pass another one"
    )]
    TemplateOutOfFuel {
        /// The budget.
        fuel: u64,
    },
    /// The chat template ran for too long, or an earlier run of it still goes on.
    #[error(
        "the chat template did not finish within {limit:?}; check the model's chat template or pass another one"
    )]
    TemplateTooSlow {
        /// The longest time.
        limit: std::time::Duration,
    },
    /// The chat template wrote more than accepted.
    #[error("the chat template wrote more than the limit of {limit} bytes")]
    TemplateOutputTooLong {
        /// Most bytes accepted.
        limit: usize,
    },
    /// The chat template has a syntax error, or met data it cannot handle.
    #[error("the chat template failed: {message}")]
    Template {
        /// The template engine's message, with the line.
        message: String,
    },
}

impl TextError {
    /// An error in a `tokenizer.json`.
    pub(crate) fn file(reason: String) -> Self {
        Self::File { file: "tokenizer.json", reason }
    }
}

/// What is wrong with a vocabulary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VocabularyFault {
    /// No tokens at all.
    #[error("it has no tokens")]
    Empty,
    /// More entries than accepted.
    #[error("{found} {what}, more than the limit of {limit}")]
    TooMany {
        /// "tokens", "merges", "ids", "unused ids", "bytes of token text".
        what: &'static str,
        /// Number given.
        found: usize,
        /// Most accepted.
        limit: usize,
    },
    /// Parallel lists differ in length.
    #[error("{found} {what} for {tokens} tokens")]
    LengthMismatch {
        /// "token types" or "scores".
        what: &'static str,
        /// Entries given.
        found: usize,
        /// Number of tokens.
        tokens: usize,
    },
    /// A token's text is longer than accepted.
    #[error("token {id} has {found} bytes, more than the limit of {limit}")]
    TokenTooLong {
        /// The token.
        id: usize,
        /// Its length in bytes.
        found: usize,
        /// Most accepted.
        limit: usize,
    },
    /// Two tokens have the same text.
    #[error("tokens {first} and {second} are both {text}")]
    DuplicateToken {
        /// Id of the first.
        first: u32,
        /// Id of the second.
        second: u32,
        /// The text they share.
        text: String,
    },
    /// One id for two tokens.
    #[error("the id {id} belongs to both {first} and {second}")]
    DuplicateId {
        /// The id.
        id: u32,
        /// A token.
        first: String,
        /// Another token.
        second: String,
    },
    /// An added token with an id that the `tokenizers` package would not give it.
    #[error("the added token {text} has the id {found}; the `tokenizers` package numbers it {expected}")]
    AddedTokenId {
        /// Its text.
        text: String,
        /// The id given.
        found: u32,
        /// The id it should have.
        expected: usize,
    },
    /// A control or user-defined token has no text.
    #[error("special token {id} has no text")]
    EmptySpecialToken {
        /// The token.
        id: u32,
    },
    /// A token type outside 1..=6.
    #[error("token {id} has the unknown type {found}; types are 1 to 6")]
    TokenType {
        /// The token.
        id: usize,
        /// The type given.
        found: i32,
    },
    /// A special id outside the vocabulary.
    #[error("{what} token id {id} is outside the vocabulary of {tokens} tokens")]
    SpecialId {
        /// "bos", "eos", "eot", "unk" or "post-processor".
        what: &'static str,
        /// The id given.
        id: u32,
        /// Number of tokens.
        tokens: usize,
    },
    /// A merge is not two tokens with a space between.
    #[error("merge {rank} is {text}; expected two tokens separated by a space")]
    MergeForm {
        /// Position in the list.
        rank: usize,
        /// The text given.
        text: String,
    },
    /// A merge of, or into, something that is no token.
    #[error("merge {rank} needs the token {token}, which the vocabulary lacks")]
    MergeToken {
        /// Position in the list.
        rank: usize,
        /// The missing text.
        token: String,
    },
    /// The same merge twice.
    #[error("merge {rank} ({text}) is there twice")]
    DuplicateMerge {
        /// Position of the second.
        rank: usize,
        /// The text given.
        text: String,
    },
    /// A score that is not a number.
    #[error("token {id} has the score {found}, which is not finite")]
    Score {
        /// The token.
        id: usize,
        /// The score given.
        found: f32,
    },
    /// Nothing to write bytes outside the vocabulary with.
    #[error("it has neither the 256 byte tokens nor an unknown token, so some text could not be written")]
    NoByteFallback,
}
