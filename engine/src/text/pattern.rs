//! Regular expressions from model files, run within bounds.
//!
//! A tokenizer file brings its own patterns, and a pattern with look-around is matched by trying one way after the
//! other: some patterns take exponentially long on some texts. The `tokenizers` crate stops quietly in that case and
//! leaves the rest of the text uncut, which changes the tokens. Here it is an error, as is running out of time.

use std::time::{Duration, Instant};

use fancy_regex::{Regex, RegexBuilder};

use super::error::TextError;
use crate::quoted::quoted;

/// Longest pattern, in bytes. The longest in use have about 1,000.
const MAX_PATTERN_BYTES: usize = 8 << 10;
/// Ways tried to match one word.
const MAX_BACKTRACKS: usize = 1_000_000;
/// Time for all words of one text. What the bound on one word cannot see: a text of very many slow words.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The time that one text may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

/// What a file means by a pattern.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) enum PatternSource {
    /// The characters themselves.
    String(String),
    /// A regular expression.
    Regex(String),
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
}

/// Places of matches (true) and of what lies between them, in bytes, covering the whole text.
pub(crate) type Cuts = Vec<((usize, usize), bool)>;

impl Pattern {
    pub(crate) fn new(source: &PatternSource) -> Result<Self, TextError> {
        let (PatternSource::String(text) | PatternSource::Regex(text)) = source;
        let failed = |reason: String| TextError::Pattern { pattern: quoted(text), reason };
        if text.len() > MAX_PATTERN_BYTES {
            return Err(failed(format!("it is longer than {MAX_PATTERN_BYTES} bytes")));
        }
        let pattern = match source {
            PatternSource::String(text) => fancy_regex::escape(text),
            PatternSource::Regex(text) => text.as_str().into(),
        };
        let regex = RegexBuilder::new(&pattern).backtrack_limit(MAX_BACKTRACKS).build();
        Ok(Self { regex: regex.map_err(|e| failed(e.to_string()))? })
    }

    pub(crate) fn regex(text: &str) -> Result<Self, TextError> {
        Self::new(&PatternSource::Regex(text.into()))
    }

    pub(crate) fn find(&self, text: &str, clock: Clock) -> Result<Cuts, TextError> {
        let failed = |reason: String| TextError::Pattern { pattern: quoted(self.regex.as_str()), reason };
        let mut cuts = Vec::new();
        let mut end = 0;
        for found in self.regex.find_iter(text) {
            let found = found.map_err(|e| failed(format!("it takes too many steps on this text ({e})")))?;
            if clock.0.elapsed() > MAX_TIME {
                return Err(failed(format!("it takes longer than {MAX_TIME:?} on this text")));
            }
            if end < found.start() {
                cuts.push(((end, found.start()), false));
            }
            cuts.push(((found.start(), found.end()), true));
            end = found.end();
        }
        if end < text.len() || text.is_empty() {
            cuts.push(((end, text.len()), false));
        }
        Ok(cuts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_the_text() {
        let digits = Pattern::regex(r"\d+").unwrap();
        let cuts = |text| digits.find(text, Clock::start()).unwrap();
        assert_eq!(cuts("a12é3"), [((0, 1), false), ((1, 3), true), ((3, 5), false), ((5, 6), true)]);
        assert_eq!(cuts(""), [((0, 0), false)]);
        let dot = Pattern::new(&PatternSource::String(".".into())).unwrap();
        assert_eq!(dot.find("a.", Clock::start()).unwrap(), [((0, 1), false), ((1, 2), true)]);
    }

    #[test]
    fn a_pattern_that_explodes_is_an_error() {
        // The look-ahead keeps it from the engine that never backtracks.
        let hostile = Pattern::regex(r"(?:a+)+(?!a)b").unwrap();
        let error = hostile.find(&"a".repeat(64), Clock::start()).unwrap_err();
        assert!(error.to_string().contains("too many steps"), "{error}");
        for wrong in ["(", &"a".repeat(10_000), r"(?:x{1000}){1000}"] {
            assert!(Pattern::regex(wrong).is_err());
        }
    }
}
