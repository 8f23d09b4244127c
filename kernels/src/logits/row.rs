//! What is asked of one row.

use super::{CHECK, LogitsSpec};
use halite_hal::Result;

/// How much less likely a token becomes that was there already.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Penalties {
    /// Above 0; 1 changes nothing. For tokens of the prompt and of the output.
    pub repetition: f32,
    /// Finite; 0 changes nothing. For tokens of the output, once.
    pub presence: f32,
    /// Finite; 0 changes nothing. For tokens of the output, each time they came.
    pub frequency: f32,
}

impl Penalties {
    /// No penalty.
    pub const NONE: Self = Penalties { repetition: 1.0, presence: 0.0, frequency: 0.0 };

    /// With a repetition penalty.
    pub fn with_repetition(mut self, repetition: f32) -> Self {
        self.repetition = repetition;
        self
    }

    /// With a presence penalty.
    pub fn with_presence(mut self, presence: f32) -> Self {
        self.presence = presence;
        self
    }

    /// With a frequency penalty.
    pub fn with_frequency(mut self, frequency: f32) -> Self {
        self.frequency = frequency;
        self
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A value outside the range that its field names.
    pub fn check(&self) -> Result<()> {
        let Penalties { repetition, presence, frequency } = *self;
        let usable = repetition.is_finite() && repetition > 0.0;
        CHECK.that(usable, "repetition", "a finite number above 0", repetition)?;
        CHECK.that(presence.is_finite(), "presence", "a finite number", presence)?;
        CHECK.that(frequency.is_finite(), "frequency", "a finite number", frequency)
    }
}

impl Default for Penalties {
    fn default() -> Self {
        Penalties::NONE
    }
}

/// What is asked of one row, on the host.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct LogitsRow<'a> {
    /// What tokens that were there already lose.
    pub penalties: Penalties,
    /// Tokens of the prompt; not read where there is no penalty.
    pub prompt: &'a [u32],
    /// Tokens drawn since; not read where there is no penalty.
    pub output: &'a [u32],
    /// What is added to a token's logit, finite; tokens strictly ascending.
    pub bias: &'a [(u32, f32)],
    /// The mask, [`LogitsSpec::mask_words`] words; `None` allows everything.
    pub allowed: Option<&'a [u32]>,
}

impl<'a> LogitsRow<'a> {
    /// A row that stays as it is.
    pub fn unchanged() -> Self {
        LogitsRow::default()
    }

    /// With penalties on the tokens of these.
    pub fn with_penalties(mut self, penalties: Penalties, prompt: &'a [u32], output: &'a [u32]) -> Self {
        (self.penalties, self.prompt, self.output) = (penalties, prompt, output);
        self
    }

    /// With biases.
    pub fn with_bias(mut self, bias: &'a [(u32, f32)]) -> Self {
        self.bias = bias;
        self
    }

    /// With a mask of allowed tokens.
    pub fn with_allowed(mut self, allowed: &'a [u32]) -> Self {
        self.allowed = Some(allowed);
        self
    }

    /// Tokens that the penalties read.
    pub fn history(&self) -> usize {
        if self.penalties == Penalties::NONE { 0 } else { self.prompt.len() + self.output.len() }
    }

    /// Checks the row by itself: what a server asks before it lets a request into a batch.
    ///
    /// # Errors
    /// A vocabulary that [`LogitsSpec::check`] refuses, penalties out of range, tokens outside the vocabulary, biases that
    /// are not finite or not in ascending order of token, a mask of another length, or one that allows nothing.
    pub fn check(&self, spec: &LogitsSpec) -> Result<()> {
        spec.check()?;
        self.penalties.check()?;
        let known = |token: u32| (token as usize) < spec.vocabulary;
        let expected = || format!("tokens below {}", spec.vocabulary);
        if self.history() > 0 {
            for (argument, tokens) in [("prompt", self.prompt), ("output", self.output)] {
                let strange = tokens.iter().find(|&&token| !known(token));
                CHECK.none(argument, expected(), strange)?;
            }
            // Counts are exact in F32, and in I32 on a device.
            CHECK.limit("output", self.output.len(), 1 << 24)?;
        }
        let strange = self.bias.iter().find(|(token, bias)| !known(*token) || !bias.is_finite());
        CHECK.none("bias", format!("finite, for {}", expected()), strange)?;
        let disorder = self.bias.windows(2).find(|pair| pair[0].0 >= pair[1].0);
        CHECK.none("bias", "tokens strictly ascending", disorder)?;
        let Some(words) = self.allowed else { return Ok(()) };
        let (count, wanted) = (words.len(), spec.mask_words());
        CHECK.that(count == wanted, "allowed", format!("{wanted} words"), count)?;
        // The last word holds the tokens that are left over.
        let last = u32::MAX >> (31 - (spec.vocabulary - 1) % 32);
        let some = words
            .split_last()
            .is_some_and(|(end, words)| end & last != 0 || words.iter().any(|&word| word != 0));
        CHECK.none("allowed", "at least one token of the vocabulary", (!some).then_some(format_args!("none")))
    }

    /// Appends each token that the penalties touch, once, in ascending order, with how often it is in the output.
    pub fn seen(&self, seen: &mut Vec<SeenToken>) {
        let start = seen.len();
        if self.history() == 0 {
            return;
        }
        if self.penalties.repetition != 1.0 {
            seen.extend(self.prompt.iter().map(|&token| SeenToken { token, outputs: 0 }));
        }
        seen.extend(self.output.iter().map(|&token| SeenToken { token, outputs: 1 }));
        seen[start..].sort_unstable_by_key(|seen| seen.token);
        let mut end = start;
        for place in start..seen.len() {
            let next = seen[place];
            if end > start && seen[end - 1].token == next.token {
                seen[end - 1].outputs += next.outputs;
            } else {
                seen[end] = next;
                end += 1;
            }
        }
        seen.truncate(end);
    }
}

/// A token of a row's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenToken {
    /// Its id.
    pub token: u32,
    /// How often it is in the output: 0 for a token of the prompt alone.
    pub outputs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_tokens_are_distinct_and_counted_in_the_output() {
        let penalties = Penalties::NONE.with_repetition(1.1);
        let row = LogitsRow::unchanged().with_penalties(penalties, &[7, 3, 7, 9], &[9, 1, 9, 1, 1]);
        let mut seen = vec![SeenToken { token: 9, outputs: 5 }];
        row.seen(&mut seen);
        let pairs: Vec<(u32, u32)> = seen.iter().map(|seen| (seen.token, seen.outputs)).collect();
        assert_eq!(pairs, [(9, 5), (1, 3), (3, 0), (7, 0), (9, 2)], "the row before is left alone");
        let frequency = Penalties::NONE.with_frequency(0.5);
        seen.clear();
        row.with_penalties(frequency, &[7, 3], &[9]).seen(&mut seen);
        assert_eq!(seen, [SeenToken { token: 9, outputs: 1 }], "a prompt counts for repetition only");
        LogitsRow::unchanged().with_penalties(Penalties::NONE, &[1], &[2]).seen(&mut seen);
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn an_empty_vocabulary_is_refused() {
        let spec = LogitsSpec::new(0);
        for row in [LogitsRow::unchanged(), LogitsRow::unchanged().with_allowed(&[])] {
            let error = row.check(&spec).unwrap_err();
            assert!(matches!(error, crate::Error::Argument { argument: "vocabulary", .. }), "{error}");
        }
    }

    #[test]
    fn bits_beyond_the_vocabulary_allow_nothing() {
        for (vocabulary, words, fine) in [
            (32, &[1 << 31][..], true),
            (31, &[1 << 31], false),
            (33, &[0, 1], true),
            (33, &[0, 2], false),
            (64, &[0, 1 << 31], true),
            (1, &[1], true),
            (1, &[u32::MAX << 1], false),
        ] {
            let checked = LogitsRow::unchanged().with_allowed(words).check(&LogitsSpec::new(vocabulary));
            assert_eq!(checked.is_ok(), fine, "{vocabulary}: {words:?}");
        }
    }
}
