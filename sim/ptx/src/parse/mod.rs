//! Reads PTX: the text becomes tokens, these become what it says ([`syntax`]), and with every name looked up that
//! becomes a [`Module`].

mod cursor;
mod declaration;
mod error;
mod function;
mod lexer;
mod number;
mod operand;
mod resolve;
mod syntax;
mod text;
mod types;

pub use error::ParseError;

use crate::ir::Module;

impl Module {
    /// The module that a PTX text describes.
    ///
    /// Functions are put in where kernels call them, so that a module has kernels only.
    ///
    /// # Errors
    /// Where the text is not PTX, or names an instruction, a modifier or a directive that this crate does not execute.
    /// Nothing is guessed, and nothing is skipped but what tells debuggers something.
    pub fn parse(text: &str) -> Result<Module, ParseError> {
        parse(text, true)
    }
}

/// A module; `share`: whether registers that are never in use at the same time become one.
fn parse(text: &str, share: bool) -> Result<Module, ParseError> {
    let read = || {
        let tokens = lexer::tokens(text)?;
        resolve::module(&text::read(&tokens)?, share)
    };
    read().map_err(|problem: error::Problem| problem.locate(text))
}

#[cfg(test)]
mod tests;
