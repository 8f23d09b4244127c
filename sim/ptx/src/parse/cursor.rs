//! A place among the tokens.

use super::error::{Problem, Result};
use super::lexer::{Kind, Token};

/// Reads tokens one after another.
pub(super) struct Cursor<'c, 't> {
    tokens: &'c [Token<'t>],
    next: usize,
}

impl<'c, 't> Cursor<'c, 't> {
    pub(super) fn new(tokens: &'c [Token<'t>]) -> Cursor<'c, 't> {
        Cursor { tokens, next: 0 }
    }

    /// The next token, which is not taken.
    pub(super) fn peek(&self) -> Token<'t> {
        self.peek_after(0)
    }

    /// The token that comes after so many others.
    pub(super) fn peek_after(&self, others: usize) -> Token<'t> {
        const NONE: Token<'static> = Token { kind: Kind::End, at: 0, line: 1, text: "" };
        self.tokens.get(self.next + others).or(self.tokens.last()).copied().unwrap_or(NONE)
    }

    /// The next token.
    pub(super) fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// The next token, if it is of a kind.
    pub(super) fn take_if(&mut self, kind: Kind) -> Option<Token<'t>> {
        (self.peek().kind == kind).then(|| self.take())
    }

    /// Whether the next token was this mark, which has been taken then.
    pub(super) fn mark(&mut self, mark: u8) -> bool {
        self.take_if(Kind::Mark(mark)).is_some()
    }

    /// Whether the next token was this directive or modifier, which has been taken then.
    pub(super) fn dot(&mut self, name: &str) -> bool {
        let is_it = self.peek().kind == Kind::Dot && self.peek().text == name;
        self.next += usize::from(is_it);
        is_it
    }

    pub(super) fn expect_mark(&mut self, mark: u8) -> Result<Token<'t>> {
        match self.take_if(Kind::Mark(mark)) {
            Some(token) => Ok(token),
            None => Err(self.unexpected(format!("`{}`", char::from(mark)))),
        }
    }

    pub(super) fn expect_word(&mut self, what: &str) -> Result<Token<'t>> {
        self.take_if(Kind::Word).ok_or_else(|| self.unexpected(what))
    }

    /// A count: a number without a sign that fits.
    pub(super) fn expect_count<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T> {
        let token = self.take_if(Kind::Number).ok_or_else(|| self.unexpected(what))?;
        super::number::integer(token.text)
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| Problem::quoted(token.at, what, token.text))
    }

    /// The error that the next token is not `expected`.
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> Problem {
        let token = self.peek();
        match token.kind {
            Kind::End => Problem::new(token.at, expected, "the text's end"),
            Kind::Dot => Problem::quoted(token.at, expected, format_args!(".{}", token.text)),
            _ => Problem::quoted(token.at, expected, token.text),
        }
    }
}
