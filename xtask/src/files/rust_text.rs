//! Just enough of Rust's lexical rules to tell code from comments and literals.

/// The text with every comment, string and character literal turned into spaces; lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        let length =
            if after_word { None } else { literal(rest) }.or_else(|| comment(rest)).or_else(|| quoted(rest));
        match length.and_then(|length| rest.split_at_checked(length)) {
            Some((hidden, following)) => {
                code.extend(hidden.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
                rest = following;
                after_word = false;
            }
            None => {
                code.push(first);
                after_word = is_word(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    code
}

/// Words (identifiers, keywords, numbers) and single punctuation marks, each with its line from 1.
pub(super) fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (token, following) = rest.split_at(word.max(first.len_utf8()));
            found.push((index + 1, token));
            rest = following.trim_start();
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of the comment that `rest` starts with. Block comments nest.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") if depth == 1 => return Some(at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    Some(rest.len())
}

/// Length of the prefixed literal that `rest` starts with: `r"..."`, `br#"..."#`, `b"..."`, `c"..."`, `b'.'`.
fn literal(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|&prefix| (1..=2).contains(&prefix))?;
    let (letters, body) = rest.split_at(prefix);
    if !letters.ends_with('r') {
        return quoted(body).map(|length| prefix + length);
    }
    let hashes = body.find(|c| c != '#').unwrap_or(body.len());
    let inner = body.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(prefix + hashes + 1 + length)
}

/// Length of the string or character literal that `rest` starts with; a lifetime is none.
fn quoted(rest: &str) -> Option<usize> {
    let mut characters = rest.char_indices();
    let (_, mark) = characters.next()?;
    if mark == '\'' {
        let (_, inner) = characters.next()?;
        let (after, closing) = characters.clone().next()?;
        if inner != '\\' {
            return (closing == '\'').then_some(after + 1);
        }
        // The escaped character itself may be a quote.
        characters.next();
        return characters.find(|&(_, c)| c == '\'').map(|(at, _)| at + 1);
    }
    if mark != '"' {
        return None;
    }
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_vanish_and_code_stays() {
        let cases = [
            ("a // unsafe", "a"),
            ("a /* x /* unsafe */ y */ b", "a b"),
            (r#"a "unsafe \" unsafe" b"#, "a b"),
            (r##"a r#"unsafe " unsafe"# b"##, "a b"),
            (r#"a br"unsafe \" b"#, "a b"),
            (r#"a b"unsafe" c"unsafe" d"#, "a d"),
            (r"a '\'' b '\\' c '\u{41}' d b'\'' e", "a b c d e"),
            ("fn f<'a>(x: &'a str) -> &'static str", "fn f<'a>(x: &'a str) -> &'static str"),
            (r#"match c { '"' => unsafe_call(), '/' => {} }"#, "match c { => unsafe_call(), => {} }"),
            (r#"number"x" r#type"#, "number r#type"),
            ("\"open to the end", ""),
            ("/* open to the end", ""),
        ];
        for (text, expected) in cases {
            let code = code_only(text);
            let words: Vec<&str> = code.split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "of {text}");
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let code = code_only("a /* 1\n2 */ b\n\"3\n4\" c");
        assert_eq!(tokens(&code), [(1, "a"), (2, "b"), (4, "c")]);
    }

    #[test]
    fn words_and_marks_are_tokens() {
        let found: Vec<&str> = tokens("#[ignore = 1] todo!(é)").into_iter().map(|(_, token)| token).collect();
        assert_eq!(found, ["#", "[", "ignore", "=", "1", "]", "todo", "!", "(", "é", ")"]);
    }
}
