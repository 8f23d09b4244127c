//! Pre-tokenization: how text is cut into words before tokens are merged.

use std::borrow::Cow;

use serde::Deserialize;
use tokenizers::SplitDelimiterBehavior;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;

use super::byte_level::char_of_byte;
use super::delimiters::{delimited, flip};
use super::error::TextError;
use super::pattern::{Clock, Cuts, Pattern, PatternSource};
use super::sentence_piece::SPACE;

/// Letters, digits and other signs apart, each with one leading space: GPT-2's (OpenAI's `encoder.py`).
pub(crate) const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// Signs that are no letters or digits: those of Unicode's punctuation, and all such of ASCII.
const PUNCTUATION_PATTERN: &str = r"[\p{P}!-/:-@\[-`{-~]";

/// Most steps.
const MAX_STEPS: usize = 64;

/// The pre-tokenizer as `tokenizer.json` describes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum PreTokenizerSource {
    Sequence {
        pretokenizers: Vec<PreTokenizerSource>,
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
pub(crate) struct WordSplitter {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    /// A space in front of every word that has none.
    PrefixSpace,
    Split {
        delimiter: Delimiter,
        behavior: SplitDelimiterBehavior,
        invert: bool,
    },
    Metaspace {
        replacement: char,
        scheme: PrependScheme,
        split: bool,
    },
    /// Every byte as a character.
    Bytes,
}

#[derive(Debug)]
enum Delimiter {
    Pattern(Pattern),
    Digit,
}

impl Delimiter {
    fn find(&self, text: &str, clock: Clock) -> Result<Cuts, TextError> {
        match self {
            Self::Pattern(pattern) => pattern.find(text, clock),
            Self::Digit => {
                let chars = text.char_indices().map(|(at, c)| ((at, at + c.len_utf8()), c.is_numeric()));
                Ok(join_others(chars))
            }
        }
    }
}

/// Joins neighbours that are no matches.
fn join_others(cuts: impl Iterator<Item = ((usize, usize), bool)>) -> Cuts {
    cuts.fold(Cuts::new(), |mut joined, ((start, end), is_match)| {
        match joined.last_mut() {
            Some(((_, last), false)) if !is_match => *last = end,
            _ => joined.push(((start, end), is_match)),
        }
        joined
    })
}

/// A word, and whether the whole text begins with it.
pub(crate) type Word<'t> = (Cow<'t, str>, bool);

impl WordSplitter {
    pub(crate) fn new(source: Option<&PreTokenizerSource>) -> Result<Self, TextError> {
        let mut splitter = Self::default();
        if let Some(source) = source {
            splitter.add(source)?;
        }
        Ok(splitter)
    }

    /// Whether words are written in the byte-level alphabet.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Bytes))
    }

    /// Cuts at every match of a regular expression.
    pub(crate) fn split(mut self, pattern: &str) -> Result<Self, TextError> {
        let delimiter = Delimiter::Pattern(Pattern::regex(pattern)?);
        self.push(Step::Split { delimiter, behavior: isolated(), invert: false })?;
        Ok(self)
    }

    /// Makes a word of every digit.
    pub(crate) fn digits(mut self) -> Result<Self, TextError> {
        self.push(Step::Split { delimiter: Delimiter::Digit, behavior: isolated(), invert: false })?;
        Ok(self)
    }

    /// Writes words in the byte-level alphabet.
    pub(crate) fn bytes(mut self) -> Result<Self, TextError> {
        self.push(Step::Bytes)?;
        Ok(self)
    }

    fn push(&mut self, step: Step) -> Result<(), TextError> {
        if self.steps.len() == MAX_STEPS {
            return Err(TextError::file(format!("pre_tokenizer: more than {MAX_STEPS} steps")));
        }
        self.steps.push(step);
        Ok(())
    }

    fn add(&mut self, source: &PreTokenizerSource) -> Result<(), TextError> {
        use PreTokenizerSource as Source;
        match source {
            Source::Sequence { pretokenizers } => pretokenizers.iter().try_for_each(|p| self.add(p)),
            Source::Split { pattern, behavior, invert } => {
                let delimiter = Delimiter::Pattern(Pattern::new(pattern)?);
                self.push(Step::Split { delimiter, behavior: *behavior, invert: *invert })
            }
            Source::ByteLevel { add_prefix_space, use_regex } => {
                if *add_prefix_space {
                    self.push(Step::PrefixSpace)?;
                }
                let splitter = std::mem::take(self);
                *self = if *use_regex { splitter.split(GPT2_PATTERN)?.bytes()? } else { splitter.bytes()? };
                Ok(())
            }
            Source::Digits { individual_digits } => {
                let behavior =
                    if *individual_digits { isolated() } else { SplitDelimiterBehavior::Contiguous };
                self.push(Step::Split { delimiter: Delimiter::Digit, behavior, invert: false })
            }
            Source::Metaspace { replacement, add_prefix_space, prepend_scheme, split } => {
                let scheme = match (add_prefix_space, prepend_scheme) {
                    (Some(false), _) => PrependScheme::Never,
                    (_, scheme) => scheme.unwrap_or(PrependScheme::Always),
                };
                self.push(Step::Metaspace { replacement: *replacement, scheme, split: split.unwrap_or(true) })
            }
            Source::Punctuation { behavior } => {
                let delimiter = Delimiter::Pattern(Pattern::regex(PUNCTUATION_PATTERN)?);
                self.push(Step::Split { delimiter, behavior: *behavior, invert: false })
            }
        }
    }

    /// Cuts a text that stands at the `first` place into words.
    pub(crate) fn cut<'t>(
        &self,
        text: Cow<'t, str>,
        first: bool,
        clock: Clock,
    ) -> Result<Vec<Word<'t>>, TextError> {
        let mut words = vec![(text, first)];
        for step in &self.steps {
            match step {
                Step::PrefixSpace => words.iter_mut().for_each(|(word, _)| prepend(' ', word)),
                Step::Split { delimiter, behavior, invert } => {
                    words = each_cut(words, |word| {
                        let cuts = delimiter.find(word, clock)?;
                        Ok(delimited(if *invert { flip(cuts) } else { cuts }, *behavior))
                    })?;
                }
                Step::Metaspace { replacement, scheme, split } => {
                    for (word, first) in &mut words {
                        if word.contains(' ') {
                            *word = Cow::Owned(word.replace(' ', replacement.encode_utf8(&mut [0; 4])));
                        }
                        match scheme {
                            PrependScheme::Always => prepend(*replacement, word),
                            PrependScheme::First if *first => prepend(*replacement, word),
                            PrependScheme::First | PrependScheme::Never => {}
                        }
                    }
                    if *split {
                        let is_delimiter = |c| c == *replacement;
                        words = each_cut(words, |word| {
                            let starts = word.match_indices(is_delimiter).map(|(at, _)| at);
                            let mut starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
                            starts.dedup();
                            let ends = starts.iter().skip(1).copied().chain([word.len()]);
                            Ok(starts.iter().copied().zip(ends).collect())
                        })?;
                    }
                }
                Step::Bytes => {
                    for (word, _) in &mut words {
                        *word = word.bytes().map(char_of_byte).collect();
                    }
                }
            }
        }
        Ok(words)
    }
}

fn prepend(first: char, word: &mut Cow<'_, str>) {
    if !word.is_empty() && !word.starts_with(first) {
        word.to_mut().insert(0, first);
    }
}

/// Cuts every word into the ranges that `cut` finds in it.
fn each_cut<'t>(
    words: Vec<Word<'t>>,
    cut: impl Fn(&str) -> Result<Vec<(usize, usize)>, TextError>,
) -> Result<Vec<Word<'t>>, TextError> {
    let mut parts = Vec::with_capacity(words.len());
    for (word, first) in words {
        for (start, end) in cut(&word)?.into_iter().filter(|(start, end)| start < end) {
            let part = match &word {
                Cow::Borrowed(word) => Cow::Borrowed(word.get(start..end).unwrap_or_default()),
                Cow::Owned(word) => Cow::Owned(word.get(start..end).unwrap_or_default().to_owned()),
            };
            parts.push((part, first && start == 0));
        }
    }
    Ok(parts)
}
