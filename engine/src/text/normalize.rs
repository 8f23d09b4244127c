//! What a tokenizer does to text before it is cut into words.

use serde::Deserialize;
use tokenizers::normalizers::{NFC, NFD, NFKC, NFKD, NormalizerWrapper, Prepend, Strip};
use tokenizers::{NormalizedString, Normalizer as _};

use super::error::TextError;
use super::pattern::{Clock, Found, Pattern, PatternSource};

/// Most steps.
const MAX_STEPS: usize = 32;
/// Longest text a step may make, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Longest text that replaces or precedes other text, in bytes. Those in use have three.
const MAX_CONTENT_BYTES: usize = 64;

/// The normalizer as `tokenizer.json` describes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum NormalizerSource {
    Sequence {
        normalizers: Vec<NormalizerSource>,
    },
    #[serde(rename = "NFC")]
    Nfc,
    #[serde(rename = "NFD")]
    Nfd,
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(rename = "NFKD")]
    Nfkd,
    Lowercase,
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    Prepend {
        prepend: String,
    },
    Replace {
        pattern: PatternSource,
        content: String,
    },
}

/// The steps, in order.
#[derive(Debug, Default)]
pub(crate) struct Normalizer {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Crate(NormalizerWrapper),
    Lowercase,
    Replace(Pattern, String),
}

impl Normalizer {
    pub(crate) fn new(source: Option<&NormalizerSource>) -> Result<Self, TextError> {
        let mut normalizer = Self::default();
        if let Some(source) = source {
            normalizer.add(source)?;
        }
        Ok(normalizer)
    }

    pub(crate) fn add(&mut self, source: &NormalizerSource) -> Result<(), TextError> {
        use NormalizerSource as Source;
        let short = |text: &String| {
            if text.len() <= MAX_CONTENT_BYTES {
                return Ok(text.clone());
            }
            Err(TextError::file(format!("normalizer: a text of {} bytes; the limit is 64", text.len())))
        };
        let step = match source {
            Source::Sequence { normalizers } => return normalizers.iter().try_for_each(|n| self.add(n)),
            Source::Nfc => Step::Crate(NFC.into()),
            Source::Nfd => Step::Crate(NFD.into()),
            Source::Nfkc => Step::Crate(NFKC.into()),
            Source::Nfkd => Step::Crate(NFKD.into()),
            Source::Lowercase => Step::Lowercase,
            Source::Strip { strip_left, strip_right } => {
                Step::Crate(Strip::new(*strip_left, *strip_right).into())
            }
            Source::Prepend { prepend } => Step::Crate(Prepend::new(short(prepend)?).into()),
            Source::Replace { pattern, content } => Step::Replace(Pattern::new(pattern)?, short(content)?),
        };
        if self.steps.len() == MAX_STEPS {
            return Err(TextError::file(format!("normalizer: more than {MAX_STEPS} steps")));
        }
        self.steps.push(step);
        Ok(())
    }

    pub(crate) fn apply(&self, text: &mut NormalizedString, clock: Clock) -> tokenizers::Result<()> {
        for step in &self.steps {
            match step {
                Step::Crate(normalizer) => normalizer.normalize(text)?,
                Step::Lowercase => drop(text.lowercase()),
                Step::Replace(pattern, content) => {
                    let found = Found(pattern.find(text.get(), clock)?);
                    let matches = found.0.iter().filter(|(_, is_match)| *is_match).count();
                    limit(matches.saturating_mul(content.len()))?;
                    if matches > 0 {
                        text.replace(&found, content)?;
                    }
                }
            }
            limit(text.len())?;
        }
        Ok(())
    }
}

fn limit(found: usize) -> Result<(), TextError> {
    if found > MAX_BYTES { Err(TextError::TextTooLong { found, limit: MAX_BYTES }) } else { Ok(()) }
}
