//! `.entry` and `.func`: heads and bodies.

use super::cursor::Cursor;
use super::error::{Problem, Result};
use super::lexer::Kind;
use super::syntax::{Function, Instruction, Name, Statement};
use super::{declaration, operand, resolve, text, types};
use crate::ir::{SourceLine, Space};

/// Scopes within each other, at most.
const DEPTH: u32 = 64;

/// A function after `.entry` or `.func`.
pub(super) fn read<'t>(cursor: &mut Cursor<'_, 't>, entry: bool) -> Result<Function<'t>> {
    let results = if !entry && cursor.peek().kind == Kind::Mark(b'(') {
        declaration::params(cursor)?
    } else {
        Vec::new()
    };
    let name = cursor.expect_word("the function's name")?;
    let mut function = Function {
        name: Name { text: name.text, at: name.at },
        entry,
        results,
        params: Vec::new(),
        max_threads: None,
        required_threads: None,
        body: None,
    };
    if cursor.peek().kind == Kind::Mark(b'(') {
        function.params = declaration::params(cursor)?;
    }
    while let Some(directive) = cursor.take_if(Kind::Dot) {
        match directive.text {
            "maxntid" => function.max_threads = Some(shape(cursor)?),
            "reqntid" => function.required_threads = Some(shape(cursor)?),
            // Advice to the compiler that makes machine code.
            "minnctapersm" | "maxnreg" | "maxnctapersm" => {
                cursor.expect_count::<u32>("a count")?;
            }
            "noreturn" => {}
            "pragma" => text::pragma(cursor)?,
            other => {
                let expected = "a directive of a function (clusters are not supported)";
                return Err(Problem::quoted(directive.at, expected, format_args!(".{other}")));
            }
        }
    }
    if !cursor.mark(b';') {
        cursor.expect_mark(b'{')?;
        function.body = Some(body(cursor)?);
    }
    Ok(function)
}

/// `256, 1, 1`; axes that are left out are 1.
fn shape(cursor: &mut Cursor<'_, '_>) -> Result<[u32; 3]> {
    let mut shape = [1; 3];
    for (axis, threads) in shape.iter_mut().enumerate() {
        if axis > 0 && !cursor.mark(b',') {
            break;
        }
        *threads = cursor.expect_count("threads along an axis")?;
    }
    Ok(shape)
}

/// A body after its `{`, to the `}` that closes it.
fn body<'t>(cursor: &mut Cursor<'_, 't>) -> Result<Vec<Statement<'t>>> {
    let mut statements = Vec::new();
    let mut depth = 0;
    loop {
        let token = cursor.peek();
        match token.kind {
            Kind::Mark(b'{') => {
                cursor.take();
                depth += 1;
                if depth > DEPTH {
                    return Err(Problem::quoted(token.at, "at most 64 scopes within each other", "{"));
                }
                statements.push(Statement::Open);
            }
            Kind::Mark(b'}') => {
                cursor.take();
                if depth == 0 {
                    return Ok(statements);
                }
                depth -= 1;
                statements.push(Statement::Close);
            }
            Kind::Mark(b';') => {
                cursor.take();
            }
            Kind::Dot => directive(cursor, &mut statements)?,
            Kind::Word if cursor.peek_after(1).kind == Kind::Mark(b':') => {
                let name = Name { text: token.text, at: token.at };
                cursor.take();
                cursor.take();
                match labels_of_table(cursor)? {
                    Some(labels) => statements.push(Statement::Targets { name, labels }),
                    None => statements.push(Statement::Label(name)),
                }
            }
            Kind::Word | Kind::Mark(b'@') => statements.push(Statement::Instruction(instruction(cursor)?)),
            _ => return Err(cursor.unexpected("an instruction, a directive or `}`")),
        }
    }
}

fn directive<'t>(cursor: &mut Cursor<'_, 't>, statements: &mut Vec<Statement<'t>>) -> Result<()> {
    let token = cursor.take();
    match token.text {
        "reg" => statements.extend(declaration::registers(cursor)?.into_iter().map(Statement::Registers)),
        "loc" => statements.push(Statement::Source(location(cursor)?)),
        "pragma" => text::pragma(cursor)?,
        space => {
            let Some(space) = types::declared_space(space)
                .filter(|space| matches!(space, Space::Shared | Space::Local | Space::Param))
            else {
                return Err(Problem::quoted(
                    token.at,
                    "a directive of a function's body",
                    format_args!(".{space}"),
                ));
            };
            let declared = declaration::variables(cursor, space, false)?;
            statements.extend(declared.into_iter().map(Statement::Variable));
        }
    }
    Ok(())
}

/// `.branchtargets a, b;` after its label.
fn labels_of_table<'t>(cursor: &mut Cursor<'_, 't>) -> Result<Option<Vec<Name<'t>>>> {
    for unsupported in ["calltargets", "callprototype"] {
        if cursor.peek().kind == Kind::Dot && cursor.peek().text == unsupported {
            return Err(cursor.unexpected("`.branchtargets`: calls through pointers are not supported"));
        }
    }
    if !cursor.dot("branchtargets") {
        return Ok(None);
    }
    let mut labels = Vec::new();
    loop {
        let label = cursor.expect_word("a label")?;
        labels.push(Name { text: label.text, at: label.at });
        if !cursor.mark(b',') {
            cursor.expect_mark(b';')?;
            return Ok(Some(labels));
        }
    }
}

/// `1 4 5, function_name $L__info_string0 + 8, inlined_at 1 16 13` after `.loc`: the innermost line counts.
fn location(cursor: &mut Cursor<'_, '_>) -> Result<Option<SourceLine>> {
    let mut place = || -> Result<SourceLine> {
        let file = cursor.expect_count("a file's number")?;
        let line = cursor.expect_count("a line")?;
        cursor.expect_count::<u32>("a column")?;
        Ok(SourceLine { file, line })
    };
    let found = place()?;
    while cursor.mark(b',') {
        let word = cursor.expect_word("`function_name` or `inlined_at`")?;
        match word.text {
            "function_name" => {
                cursor.expect_word("a label of the names")?;
                operand::addend(cursor)?;
            }
            "inlined_at" => {
                for what in ["a file's number", "a line", "a column"] {
                    cursor.expect_count::<u32>(what)?;
                }
            }
            other => return Err(Problem::quoted(word.at, "`function_name` or `inlined_at`", other)),
        }
    }
    // Line 0: what the compiler made of nothing.
    Ok((found.line > 0).then_some(found))
}

fn instruction<'t>(cursor: &mut Cursor<'_, 't>) -> Result<Instruction<'t>> {
    let line = cursor.peek().line;
    let guard = if cursor.mark(b'@') {
        let negated = cursor.mark(b'!');
        let name = cursor.expect_word("a predicate")?;
        Some((Name { text: name.text, at: name.at }, negated))
    } else {
        None
    };
    let mnemonic = cursor.expect_word("an instruction")?;
    let mut modifiers = Vec::new();
    while let Some(modifier) = cursor.take_if(Kind::Dot) {
        modifiers.push(Name { text: modifier.text, at: modifier.at });
    }
    if !resolve::is_known(mnemonic.text) {
        // Its operands may have forms of their own.
        let name =
            modifiers.iter().fold(mnemonic.text.to_owned(), |name, modifier| name + "." + modifier.text);
        return Err(Problem::quoted(mnemonic.at, resolve::KNOWN, name));
    }
    let (operands, end) = operand::list(cursor)?;
    let mnemonic = Name { text: mnemonic.text, at: mnemonic.at };
    Ok(Instruction { guard, line, mnemonic, modifiers, operands, end })
}
