//! What a tokenizer does to text before it is cut into words.

use std::borrow::Cow;

use serde::Deserialize;
use tokenizers::NormalizedString;

use super::error::TextError;
use super::pattern::{Clock, Pattern, PatternSource};

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
    Form(Form),
    Lowercase,
    Strip { left: bool, right: bool },
    Prepend(String),
    Replace(Pattern, String),
}

/// A Unicode normal form.
#[derive(Clone, Copy, Debug)]
enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
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
            Source::Nfc => Step::Form(Form::Nfc),
            Source::Nfd => Step::Form(Form::Nfd),
            Source::Nfkc => Step::Form(Form::Nfkc),
            Source::Nfkd => Step::Form(Form::Nfkd),
            Source::Lowercase => Step::Lowercase,
            Source::Strip { strip_left, strip_right } => {
                Step::Strip { left: *strip_left, right: *strip_right }
            }
            Source::Prepend { prepend } => Step::Prepend(short(prepend)?),
            Source::Replace { pattern, content } => Step::Replace(Pattern::new(pattern)?, short(content)?),
        };
        if self.steps.len() == MAX_STEPS {
            return Err(TextError::file(format!("normalizer: more than {MAX_STEPS} steps")));
        }
        self.steps.push(step);
        Ok(())
    }

    pub(crate) fn apply<'t>(&self, text: &'t str, clock: Clock) -> Result<Cow<'t, str>, TextError> {
        let mut text = Cow::Borrowed(text);
        for step in &self.steps {
            match step {
                // ASCII is in every form.
                Step::Form(_) if text.is_ascii() => {}
                Step::Form(form) => text = Cow::Owned(form.of(&text)),
                Step::Lowercase => text = text.chars().flat_map(char::to_lowercase).collect(),
                Step::Strip { left, right } => {
                    let stripped = if *left { text.trim_start() } else { &text };
                    let stripped = if *right { stripped.trim_end() } else { stripped };
                    text = Cow::Owned(stripped.to_owned());
                }
                Step::Prepend(_) if text.is_empty() => {}
                Step::Prepend(first) => text = Cow::Owned([first, &*text].concat()),
                Step::Replace(pattern, content) => {
                    let cuts = pattern.find(&text, clock)?;
                    let matches = cuts.iter().filter(|(_, is_match)| *is_match).count();
                    limit(matches.saturating_mul(content.len()))?;
                    if matches > 0 {
                        let part = |&((start, end), is_match): &((usize, usize), bool)| {
                            if is_match { content } else { text.get(start..end).unwrap_or_default() }
                        };
                        text = Cow::Owned(cuts.iter().map(part).collect());
                    }
                }
            }
            limit(text.len())?;
        }
        Ok(text)
    }
}

impl Form {
    fn of(self, text: &str) -> String {
        let mut text = NormalizedString::from(text);
        let text = match self {
            Self::Nfc => text.nfc(),
            Self::Nfd => text.nfd(),
            Self::Nfkc => text.nfkc(),
            Self::Nfkd => text.nfkd(),
        };
        text.get().to_owned()
    }
}

fn limit(found: usize) -> Result<(), TextError> {
    if found > MAX_BYTES { Err(TextError::TextTooLong { found, limit: MAX_BYTES }) } else { Ok(()) }
}
