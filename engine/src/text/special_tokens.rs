//! Finding control and user-defined tokens in text.

use std::sync::LazyLock;

use fancy_regex::Regex;

use super::special_token::{Matching, SpecialToken, is_space};
use super::spellings::Spellings;

/// Whether the text of a special token becomes that token.
///
/// Text written by a person or a tool is encoded [`AsText`](Self::AsText): what looks like a control token there is
/// only characters, so nobody can end a turn or forge one by typing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecialTokens {
    /// Control and user-defined tokens are recognised. For text made by a template or by the program itself.
    Parse,
    /// Nothing is recognised but white space, of which some vocabularies (Gemma's) have user-defined runs. For text
    /// from outside.
    AsText,
}

/// A stretch of a text, in bytes: a token, or what lies between tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) token: Option<&'t SpecialToken>,
}

/// The control and user-defined tokens of a vocabulary, for search.
#[derive(Debug, Default)]
pub(crate) struct SpecialTable {
    raw: Spellings,
    normalized: Spellings,
    /// All of them, by the text a person would write.
    written: Spellings,
}

impl SpecialTable {
    /// A table of tokens, each with the text it has once it is normalised.
    pub(crate) fn new(tokens: impl IntoIterator<Item = (SpecialToken, Option<String>)>) -> Self {
        let (mut raw, mut normalized, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for (token, normal) in tokens {
            written.push((token.text.clone(), token.clone()));
            match token.matching {
                Matching::Raw => raw.push((token.text.clone(), token)),
                Matching::Normalized => {
                    let text = normal.map_or_else(|| token.text.clone(), String::into_boxed_str);
                    normalized.push((text, token));
                }
            }
        }
        Self {
            raw: Spellings::new(raw),
            normalized: Spellings::new(normalized),
            written: Spellings::new(written),
        }
    }

    /// Of such tokens only those that are white space and no control token. They are text like any other, kept whole.
    pub(crate) fn spaces(tokens: impl IntoIterator<Item = (SpecialToken, Option<String>)>) -> Self {
        Self::new(tokens.into_iter().filter(|(token, _)| token.is_user_space()))
    }

    /// Whether any token is matched like this.
    pub(crate) fn has(&self, matching: Matching) -> bool {
        !self.spellings(matching).is_empty()
    }

    fn spellings(&self, matching: Matching) -> &Spellings {
        match matching {
            Matching::Raw => &self.raw,
            Matching::Normalized => &self.normalized,
        }
    }

    /// The token with this text.
    pub(crate) fn get(&self, text: &str) -> Option<&SpecialToken> {
        self.written
            .longest_at_start(text)
            .filter(|(spelling, _)| spelling.len() == text.len())
            .map(|(_, t)| t)
    }

    /// The longest special token at the start of `text`.
    pub(crate) fn at_start(&self, text: &str) -> Option<&SpecialToken> {
        self.written.longest_at_start(text).map(|(_, token)| token)
    }

    /// Whether `text` is a proper beginning of a special token of a kind that `matches`.
    pub(crate) fn is_beginning_of_one(&self, text: &str, matches: impl Fn(&SpecialToken) -> bool) -> bool {
        self.written.begins_one(text, &matches)
    }

    /// Whether normalised `text` ends with a proper beginning of a token that `matches`.
    pub(crate) fn ends_with_beginning(&self, text: &str, matches: impl Fn(&SpecialToken) -> bool) -> bool {
        let tail = text.len().saturating_sub(self.normalized.longest());
        let tails = text.char_indices().map(|(at, _)| at).filter(|&at| at >= tail);
        // White space, which a normalizer may put in front of a token, makes no token of what follows it.
        let tails = tails.filter_map(|at| text.get(at..)).filter(|tail| !is_space(tail));
        tails.into_iter().any(|tail| self.normalized.begins_one(tail, &matches))
    }

    /// Length in bytes of the longest special token.
    pub(crate) fn longest(&self) -> usize {
        self.written.longest()
    }

    /// Cuts `text` at its special tokens: leftmost first, and of those that begin at one place the longest.
    pub(crate) fn find(&self, text: &str, matching: Matching) -> Vec<Stretch<'_>> {
        let spellings = self.spellings(matching);
        let mut found = Vec::new();
        let (mut done, mut at) = (0, 0);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some((spelling, token)) = spellings.longest_at_start(rest) else {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            let (mut start, mut end) = (at, at + spelling.len());
            at = end;
            let (before, after) = (&text[..start], &text[end..]);
            let touches_word =
                before.chars().next_back().is_some_and(is_word) || after.chars().next().is_some_and(is_word);
            if token.single_word && touches_word {
                continue;
            }
            if token.lstrip {
                // White space that the token before has taken in stays with it.
                start = before.trim_end().len().max(done);
            }
            if token.rstrip {
                end += after.len() - after.trim_start().len();
            }
            if done < start {
                found.push(Stretch { start: done, end: start, token: None });
            }
            found.push(Stretch { start: start.min(end), end, token: Some(token) });
            done = end;
        }
        if done < text.len() {
            found.push(Stretch { start: done, end: text.len(), token: None });
        }
        found
    }
}

/// A letter, digit, mark or underscore: `\w` of the `regex` crate, by which the `tokenizers` crate finds words.
fn is_word(c: char) -> bool {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\w").ok());
    let mut buffer = [0; 4];
    WORD.as_ref().is_some_and(|word| word.is_match(c.encode_utf8(&mut buffer)).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::super::vocabulary::TokenKind;
    use super::*;

    fn table(tokens: &[&str], change: impl Fn(&mut SpecialToken)) -> SpecialTable {
        SpecialTable::new(tokens.iter().zip(0u32..).map(|(text, id)| {
            let mut token = SpecialToken::new(text, id, TokenKind::Control);
            change(&mut token);
            (token, None)
        }))
    }

    fn find<'t>(table: &SpecialTable, text: &'t str) -> Vec<(Option<u32>, &'t str)> {
        let found = table.find(text, Matching::Raw).into_iter();
        found.map(|f| (f.token.map(|t| t.id), &text[f.start..f.end])).collect()
    }

    #[test]
    fn leftmost_then_longest() {
        let table = table(&["<a", "<a>", "a>b", "한"], |_| ());
        assert_eq!(find(&table, "x<a>b"), [(None, "x"), (Some(1), "<a>"), (None, "b")]);
        assert_eq!(find(&table, "<a<a>"), [(Some(0), "<a"), (Some(1), "<a>")]);
        assert_eq!(find(&table, "글한글"), [(None, "글"), (Some(3), "한"), (None, "글")]);
        assert_eq!(find(&table, ""), []);
        assert_eq!(find(&table, "ha>"), [(None, "ha>")]);
        assert_eq!(table.get("<a").map(|t| t.id), Some(0));
        assert_eq!(table.get("<"), None);
        assert_eq!(table.get("<a>b"), None);
        assert!(table.is_beginning_of_one("<", |_| true) && table.is_beginning_of_one("<a", |_| true));
        assert!(!table.is_beginning_of_one("<a>", |_| true) && !table.is_beginning_of_one("b", |_| true));
        assert_eq!(table.longest(), 3);
    }

    #[test]
    fn a_token_may_end_inside_a_character_of_the_text() {
        // "<é" is three bytes; "<한" is four: the search at length three must not cut the character.
        assert_eq!(find(&table(&["<é"], |_| ()), "<한"), [(None, "<한")]);
    }

    #[test]
    fn white_space_and_words() {
        let left = table(&["<m>"], |token| token.lstrip = true);
        assert_eq!(find(&left, "a \n<m> b"), [(None, "a"), (Some(0), " \n<m>"), (None, " b")]);
        let right = table(&["<m>"], |token| token.rstrip = true);
        assert_eq!(find(&right, "a <m> \u{3000}b"), [(None, "a "), (Some(0), "<m> \u{3000}"), (None, "b")]);
        let both = table(&["<m>"], |token| (token.lstrip, token.rstrip) = (true, true));
        assert_eq!(find(&both, "<m>  <m>"), [(Some(0), "<m>  "), (Some(0), "<m>")]);
        let word = table(&["on"], |token| token.single_word = true);
        assert_eq!(find(&word, "on, on_ son ón"), [(Some(0), "on"), (None, ", on_ son ón")]);
    }
}
