//! A sorted list of the texts of special tokens, for search.

use super::special_token::SpecialToken;

/// Texts of tokens in order, so that all with a common beginning are neighbours.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    sorted: Vec<(Box<str>, SpecialToken)>,
    /// First and last place for every first byte. Few bytes begin a special token, so most places cost one lookup.
    by_first: Vec<(usize, usize)>,
}

impl Spellings {
    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(crate) fn new(mut spellings: Vec<(Box<str>, SpecialToken)>) -> Self {
        spellings.retain(|(text, _)| !text.is_empty());
        spellings.sort_by(|(a, _), (b, _)| a.cmp(b));
        spellings.dedup_by(|(a, _), (b, _)| a == b);
        let first = |text: &str| text.as_bytes().first().copied().unwrap_or(0);
        let place = |byte: usize| spellings.partition_point(|(text, _)| usize::from(first(text)) < byte);
        let by_first = (0..=255).map(|byte| (place(byte), place(byte + 1))).collect();
        Self { sorted: spellings, by_first }
    }

    fn range(&self, first: u8) -> &[(Box<str>, SpecialToken)] {
        let (from, to) = self.by_first.get(usize::from(first)).copied().unwrap_or((0, 0));
        self.sorted.get(from..to).unwrap_or_default()
    }

    fn beginning_with(&self, text: &str) -> &[(Box<str>, SpecialToken)] {
        let Some(&first) = text.as_bytes().first() else { return &[] };
        let range = self.range(first);
        let from = range.partition_point(|(spelling, _)| &**spelling < text);
        let until = range.partition_point(|(spelling, _)| &**spelling < text || spelling.starts_with(text));
        range.get(from..until).unwrap_or_default()
    }

    /// Whether `text` is a proper beginning of one that `matches`.
    pub(crate) fn begins_one(&self, text: &str, matches: &impl Fn(&SpecialToken) -> bool) -> bool {
        self.beginning_with(text).iter().any(|(spelling, t)| spelling.len() > text.len() && matches(t))
    }

    /// Length in bytes of the longest.
    pub(crate) fn longest(&self) -> usize {
        self.sorted.iter().map(|(spelling, _)| spelling.len()).max().unwrap_or(0)
    }

    /// The longest at the start of `text`.
    pub(crate) fn longest_at_start(&self, text: &str) -> Option<(&str, &SpecialToken)> {
        let bytes = text.as_bytes();
        let mut range = self.range(*bytes.first()?);
        let mut longest = None;
        for length in 1.. {
            // Here all of `range` begin with the text's first `length` bytes; the shortest comes first.
            let Some((spelling, token)) = range.first() else { break };
            if spelling.len() == length {
                longest = Some((&**spelling, token));
                range = range.get(1..).unwrap_or_default();
            }
            let Some(next) = bytes.get(length) else { break };
            let byte = |spelling: &str| spelling.as_bytes().get(length).copied();
            let from = range.partition_point(|(spelling, _)| byte(spelling) < Some(*next));
            let until = range.partition_point(|(spelling, _)| byte(spelling) <= Some(*next));
            range = range.get(from..until).unwrap_or_default();
        }
        longest
    }
}
