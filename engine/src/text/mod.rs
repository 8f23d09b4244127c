//! Text in and out of a model: tokenizers, incremental decoding, stop strings and chat templates.
//!
//! A model folder's texts come from [`read_folder`]; a GGUF file's from [`VocabularySource::from_gguf`] and its metadata.
//! Everything here is made from data found in model files, so nothing here trusts that data: vocabularies
//! are checked when they are loaded, and templates run with a budget of work, output and recursion.
//!
//! ```
//! use halite_engine::text::{SpecialTokens, Tokenizer, VocabularySource};
//!
//! // A byte-level vocabulary of five tokens; a GGUF file has tens of thousands in the same form.
//! let mut source = VocabularySource::new("gpt2", ["<end>", "h", "i", "hi", "!"].map(String::from).to_vec());
//! source.pre = Some("gpt-2".into());
//! source.merges = vec!["h i".into()];
//! source.token_types = vec![3, 1, 1, 1, 1];
//! let tokenizer = Tokenizer::new(source)?;
//!
//! assert_eq!(tokenizer.encode("hi!<end>", SpecialTokens::Parse)?, [3, 4, 0]);
//! assert_eq!(tokenizer.decode(&[3, 4])?, "hi!");
//! # Ok::<(), halite_engine::text::TextError>(())
//! ```

mod answer_text;
mod bounded_printing;
mod byte_level;
mod chat_input;
mod chat_prompt;
mod chat_template;
mod decoder;
mod delimiters;
mod error;
mod file_tokenizer;
mod file_vocabulary;
mod folder;
mod gguf_vocabulary;
mod namespace_use;
mod normalize;
mod pattern;
mod pipeline;
mod post_processor;
mod pre_tokenizer;
mod printing_filters;
mod python_float;
mod python_json;
mod python_methods;
mod python_strings;
mod sentence_piece;
mod special_token;
mod special_tokens;
mod spellings;
mod stop_strings;
mod stream_decoder;
mod template_date;
mod template_functions;
mod token_texts;
mod tokenizer;
mod tokenizer_config;
mod tokenizer_file;
mod vocabulary;
mod word_splitter;

pub use answer_text::AnswerText;
pub use chat_input::{ChatInput, ChatMessage};
pub use chat_prompt::encode_chat;
pub use chat_template::{ChatTemplate, TemplateLimits};
pub use error::{TextError, VocabularyFault};
pub use file_tokenizer::TokenizerFiles;
pub use folder::{FolderTexts, read_folder};
pub use pre_tokenizer::PreTokenizer;
pub use special_tokens::SpecialTokens;
pub use stop_strings::{StopMatcher, StopProgress};
pub use stream_decoder::StreamDecoder;
pub use tokenizer::Tokenizer;
pub use vocabulary::{TokenKind, VocabularySource};
