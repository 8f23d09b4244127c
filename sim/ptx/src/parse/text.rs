//! A module's directives.

use super::cursor::Cursor;
use super::error::{Problem, Result};
use super::lexer::{Kind, Token};
use super::syntax::Text;
use super::{declaration, function, types};
use crate::ir::Space;

/// What the tokens of a text say.
pub(super) fn read<'t>(tokens: &[Token<'t>]) -> Result<Text<'t>> {
    let mut cursor = Cursor::new(tokens);
    let mut text = Text { version: version(&mut cursor)?, ..Text::default() };
    while cursor.peek().kind != Kind::End {
        // Who sees a symbol matters to a linker only, except that external shared memory is the launch's.
        let start = cursor.peek().at;
        let mut external = false;
        loop {
            match (cursor.peek().kind, cursor.peek().text) {
                (Kind::Dot, "visible" | "weak" | "common") => {}
                (Kind::Dot, "extern") => external = true,
                _ => break,
            }
            cursor.take();
        }
        let token = cursor.take_if(Kind::Dot).ok_or_else(|| cursor.unexpected("a directive"))?;
        match token.text {
            "target" => text.target = target(&mut cursor)?,
            "address_size" => {
                let bits = cursor.peek();
                if cursor.expect_count::<u32>("the addresses' bits")? != 64 {
                    return Err(Problem::quoted(
                        bits.at,
                        "64: other address sizes are not supported",
                        bits.text,
                    ));
                }
            }
            "entry" => text.functions.push(function::read(&mut cursor, true)?),
            "func" => text.functions.push(function::read(&mut cursor, false)?),
            "file" => text.files.push(file(&mut cursor)?),
            "section" => skip_section(&mut cursor)?,
            "pragma" => pragma(&mut cursor)?,
            "alias" => {
                return Err(Problem::new(token.at, "a directive that is supported", "`.alias`"));
            }
            space => {
                let Some(space) = types::declared_space(space).filter(|&space| space != Space::Param) else {
                    return Err(Problem::quoted(
                        token.at,
                        "a directive of a module",
                        format_args!(".{space}"),
                    ));
                };
                let mut declared = declaration::variables(&mut cursor, space, external)?;
                if external && space != Space::Shared {
                    let expected = "a definition: variables of other modules are not supported";
                    return Err(Problem::quoted(start, expected, ".extern"));
                }
                if space == Space::Local {
                    return Err(Problem::quoted(token.at, "local variables within functions", ".local"));
                }
                text.variables.append(&mut declared);
            }
        }
    }
    Ok(text)
}

/// `.version 9.5`
fn version(cursor: &mut Cursor<'_, '_>) -> Result<(u32, u32)> {
    if !cursor.dot("version") {
        return Err(cursor.unexpected("`.version`, with which every PTX text begins"));
    }
    let token = cursor.take_if(Kind::Number).ok_or_else(|| cursor.unexpected("a version, as in `8.0`"))?;
    token
        .text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| Problem::quoted(token.at, "a version, as in `8.0`", token.text))
}

/// `.target sm_90a, debug`
fn target<'t>(cursor: &mut Cursor<'_, 't>) -> Result<&'t str> {
    let target = cursor.expect_word("an architecture, as in `sm_80`")?;
    if !target.text.starts_with("sm_") {
        return Err(Problem::quoted(target.at, "an architecture, as in `sm_80`", target.text));
    }
    while cursor.mark(b',') {
        cursor.expect_word("an option of the target")?;
    }
    Ok(target.text)
}

/// `.file 1 "kernel.cu", 1700000000, 2048`
fn file(cursor: &mut Cursor<'_, '_>) -> Result<(u32, String)> {
    let number = cursor.expect_count("the file's number")?;
    let name = cursor.take_if(Kind::Text).ok_or_else(|| cursor.unexpected("the file's name in quotes"))?;
    while cursor.mark(b',') {
        cursor.expect_count::<u64>("the file's time or size")?;
    }
    Ok((number, name.text.to_owned()))
}

/// `.pragma "nounroll";`: advice to a compiler.
pub(super) fn pragma(cursor: &mut Cursor<'_, '_>) -> Result<()> {
    loop {
        cursor.take_if(Kind::Text).ok_or_else(|| cursor.unexpected("a string"))?;
        if !cursor.mark(b',') {
            cursor.expect_mark(b';')?;
            return Ok(());
        }
    }
}

/// `.section .debug_str { … }`: for debuggers.
fn skip_section(cursor: &mut Cursor<'_, '_>) -> Result<()> {
    let name = cursor.take();
    if name.kind != Kind::Dot || !name.text.starts_with("debug_") {
        return Err(Problem::quoted(name.at, "the name of a section for debuggers", name.text));
    }
    cursor.expect_mark(b'{')?;
    loop {
        match cursor.peek().kind {
            Kind::Mark(b'}') => break,
            Kind::End => return Err(cursor.unexpected("`}` at the section's end")),
            _ => cursor.take(),
        };
    }
    cursor.expect_mark(b'}').map(|_| ())
}
