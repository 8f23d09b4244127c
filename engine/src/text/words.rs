//! How text is cut into words before tokens are merged.

use serde::Deserialize;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::tokenizer::pattern::Invert;
use tokenizers::{PreTokenizedString, PreTokenizer as _, SplitDelimiterBehavior};

use super::error::TextError;
use super::pattern::{Clock, Found, Pattern, PatternSource};
use super::pre_tokenizer::GPT2_PATTERN;
use super::sentence_piece::SPACE;

/// Most steps.
const MAX_STEPS: usize = 64;

/// The pre-tokenizer as `tokenizer.json` describes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum WordsSource {
    Sequence {
        pretokenizers: Vec<WordsSource>,
    },
    Split {
        pattern: PatternSource,
        behavior: SplitDelimiterBehavior,
        #[serde(default)]
        invert: bool,
    },
    ByteLevel {
        add_prefix_space: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    Digits {
        individual_digits: bool,
    },
    Metaspace {
        #[serde(default = "space")]
        replacement: char,
        add_prefix_space: Option<bool>,
        prepend_scheme: Option<PrependScheme>,
        split: Option<bool>,
    },
    Punctuation {
        #[serde(default = "isolated")]
        behavior: SplitDelimiterBehavior,
    },
}

fn yes() -> bool {
    true
}

fn space() -> char {
    SPACE
}

fn isolated() -> SplitDelimiterBehavior {
    SplitDelimiterBehavior::Isolated
}

/// The steps, in order.
#[derive(Debug, Default)]
pub(crate) struct Words {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Crate(PreTokenizerWrapper),
    PrefixSpace,
    Split { pattern: Pattern, behavior: SplitDelimiterBehavior, invert: bool },
}

impl Words {
    pub(crate) fn new(source: Option<&WordsSource>) -> Result<Self, TextError> {
        let mut words = Self::default();
        if let Some(source) = source {
            words.add(source)?;
        }
        Ok(words)
    }

    /// Whether words are written in the byte-level alphabet.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Crate(PreTokenizerWrapper::ByteLevel(_))))
    }

    /// Cuts at every match of a regular expression.
    pub(crate) fn split(mut self, pattern: &str) -> Result<Self, TextError> {
        let behavior = SplitDelimiterBehavior::Isolated;
        self.push(Step::Split { pattern: Pattern::regex(pattern)?, behavior, invert: false })?;
        Ok(self)
    }

    /// Makes a word of every digit.
    pub(crate) fn digits(mut self) -> Result<Self, TextError> {
        self.push(Step::Crate(Digits::new(true).into()))?;
        Ok(self)
    }

    /// Writes words in the byte-level alphabet.
    pub(crate) fn bytes(mut self) -> Result<Self, TextError> {
        self.push(Step::Crate(ByteLevel::new(false, false, false).into()))?;
        Ok(self)
    }

    fn push(&mut self, step: Step) -> Result<(), TextError> {
        if self.steps.len() == MAX_STEPS {
            return Err(TextError::file(format!("pre_tokenizer: more than {MAX_STEPS} steps")));
        }
        self.steps.push(step);
        Ok(())
    }

    fn add(&mut self, source: &WordsSource) -> Result<(), TextError> {
        use WordsSource as Source;
        match source {
            Source::Sequence { pretokenizers } => pretokenizers.iter().try_for_each(|p| self.add(p)),
            Source::Split { pattern, behavior, invert } => {
                let pattern = Pattern::new(pattern)?;
                self.push(Step::Split { pattern, behavior: *behavior, invert: *invert })
            }
            Source::ByteLevel { add_prefix_space, use_regex } => {
                if *add_prefix_space {
                    self.push(Step::PrefixSpace)?;
                }
                let words = std::mem::take(self);
                *self = if *use_regex { words.split(GPT2_PATTERN)?.bytes()? } else { words.bytes()? };
                Ok(())
            }
            Source::Digits { individual_digits } => {
                self.push(Step::Crate(Digits::new(*individual_digits).into()))
            }
            Source::Metaspace { replacement, add_prefix_space, prepend_scheme, split } => {
                let scheme = match (add_prefix_space, prepend_scheme) {
                    (Some(false), _) => PrependScheme::Never,
                    (_, scheme) => scheme.unwrap_or(PrependScheme::Always),
                };
                self.push(Step::Crate(Metaspace::new(*replacement, scheme, split.unwrap_or(true)).into()))
            }
            Source::Punctuation { behavior } => self.push(Step::Crate(Punctuation::new(*behavior).into())),
        }
    }

    pub(crate) fn cut(&self, text: &mut PreTokenizedString, clock: Clock) -> tokenizers::Result<()> {
        for step in &self.steps {
            match step {
                Step::Crate(pre_tokenizer) => pre_tokenizer.pre_tokenize(text)?,
                Step::PrefixSpace => text.normalize(|word| {
                    if !word.get().starts_with(' ') {
                        word.prepend(" ");
                    }
                    Ok(())
                })?,
                Step::Split { pattern, behavior, invert } => text.split(|_, word| {
                    let found = Found(pattern.find(word.get(), clock)?);
                    if *invert {
                        word.split(Invert(&found), *behavior)
                    } else {
                        word.split(&found, *behavior)
                    }
                })?,
            }
        }
        Ok(())
    }
}
