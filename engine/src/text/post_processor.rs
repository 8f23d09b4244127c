//! Post-processors: the tokens that a tokenizer puts round a text to make a prompt of it.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::{TextError, VocabularyFault};

/// Most tokens on one side of a text.
const MAX_TOKENS: usize = 64;

/// The tokens round a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostProcessor {
    /// One at the beginning, unless the text brings it. GGUF files say no more than this.
    Begin(Option<u32>),
    /// Always these; a chat template writes its own. This is how the `tokenizers` package does it.
    Around { before: Vec<u32>, after: Vec<u32> },
}

impl PostProcessor {
    /// Completes a text that is a whole prompt.
    pub(crate) fn prompt(&self, mut ids: Vec<u32>) -> Vec<u32> {
        match self {
            Self::Begin(begin) => {
                if let Some(begin) = begin.filter(|begin| ids.first() != Some(begin)) {
                    ids.insert(0, begin);
                }
                ids
            }
            Self::Around { before, after } => [before.as_slice(), &ids, after].concat(),
        }
    }

    /// Completes what a chat template wrote.
    pub(crate) fn chat(&self, ids: Vec<u32>) -> Vec<u32> {
        match self {
            Self::Begin(_) => self.prompt(ids),
            Self::Around { .. } => ids,
        }
    }
}

/// The post-processor as `tokenizer.json` describes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum PostProcessorSource {
    Sequence { processors: Vec<PostProcessorSource> },
    ByteLevel {},
    TemplateProcessing { single: Vec<PieceSource>, special_tokens: Map<String, Value> },
    BertProcessing { sep: (String, u32), cls: (String, u32) },
    RobertaProcessing { sep: (String, u32), cls: (String, u32) },
}

/// A part of a template.
#[derive(Debug, Deserialize)]
pub(crate) enum PieceSource {
    SpecialToken { id: String },
    Sequence { id: String },
}

#[derive(Deserialize)]
struct Ids {
    ids: Vec<u32>,
}

impl PostProcessorSource {
    /// The tokens this puts round a text, checked against a vocabulary of `tokens` tokens.
    pub(crate) fn build(&self, tokens: usize) -> Result<PostProcessor, TextError> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.wrap(&mut before, &mut after)?;
        if before.len() > MAX_TOKENS || after.len() > MAX_TOKENS {
            return Err(wrong(&format!("more than {MAX_TOKENS} tokens on one side of the text")));
        }
        if let Some(&id) = before.iter().chain(&after).find(|&&id| id as usize >= tokens) {
            return Err(VocabularyFault::SpecialId { what: "post-processor", id, tokens }.into());
        }
        Ok(PostProcessor::Around { before, after })
    }

    fn wrap(&self, before: &mut Vec<u32>, after: &mut Vec<u32>) -> Result<(), TextError> {
        match self {
            Self::ByteLevel {} => {}
            Self::Sequence { processors } => processors.iter().try_for_each(|p| p.wrap(before, after))?,
            Self::BertProcessing { sep, cls } | Self::RobertaProcessing { sep, cls } => {
                before.insert(0, cls.1);
                after.push(sep.1);
            }
            Self::TemplateProcessing { single, special_tokens } => {
                let mut outer = [Vec::new(), Vec::new()];
                let mut side = 0;
                for piece in single {
                    match piece {
                        PieceSource::Sequence { id } if id == "A" && side == 0 => side = 1,
                        PieceSource::Sequence { .. } => return Err(wrong("expected the sequence A once")),
                        PieceSource::SpecialToken { id } => {
                            let ids = special_tokens.get(id).map(Ids::deserialize);
                            let ids = ids.ok_or_else(|| wrong(&format!("no special token {id:?}")))?;
                            outer[side].extend(ids.map_err(|e| wrong(&e.to_string()))?.ids);
                        }
                    }
                }
                if side == 0 {
                    return Err(wrong("expected the sequence A once"));
                }
                let [first, last] = outer;
                before.splice(0..0, first);
                after.extend(last);
            }
        }
        Ok(())
    }
}

fn wrong(reason: &str) -> TextError {
    TextError::file(format!("post_processor: {reason}"))
}
