//! What is wrong with a PTX text, and where.

use std::fmt::Display;

/// Why a PTX text cannot be executed: it is not PTX, or it says something that this crate does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}\n    {text}")]
#[non_exhaustive]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
    /// The line's text, without the spaces around it.
    pub text: String,
    /// What could have stood there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

/// An error before its line is looked up: most texts have none, so that lines are counted only then.
#[derive(Debug)]
pub(super) struct Problem {
    /// The byte that it is about.
    pub at: usize,
    pub expected: String,
    pub found: String,
}

impl Problem {
    pub(super) fn new(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Problem {
        Problem { at, expected: expected.into(), found: found.into() }
    }

    /// With the found text in quotes.
    pub(super) fn quoted(at: usize, expected: impl Into<String>, found: impl Display) -> Problem {
        Problem::new(at, expected, format!("`{found}`"))
    }

    /// With its line in `text`.
    pub(super) fn locate(self, text: &str) -> ParseError {
        let at = self.at.min(text.len());
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |length| at + length);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        ParseError {
            line: count(before.matches('\n').count() + 1),
            column: count(before.get(start..).map_or(0, |line| line.chars().count()) + 1),
            text: text.get(start..end).unwrap_or_default().trim().chars().take(200).collect(),
            expected: self.expected,
            found: self.found,
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, Problem>;
