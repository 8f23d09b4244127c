//! Methods of Python's strings, lists and maps that chat templates call. The `pycompat` of `minijinja-contrib` lacks some
//! (`rsplit`, `partition`, `removeprefix`), charges no fuel for texts that are searched, and strips less white space than
//! CPython.

use minijinja::value::{Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};

use super::python_strings::layout_method;

/// Called by the template engine for a method it does not know.
pub(crate) fn python_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => match value.as_str() {
            Some(text) => string_method(state, text, method, args),
            None => Err(unknown()),
        },
        ValueKind::Map => map_method(value, method, args),
        ValueKind::Seq => list_method(value, method, args),
        _ => Err(unknown()),
    }
}

fn unknown() -> Error {
    Error::from(ErrorKind::UnknownMethod)
}

fn string_method(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    // What reads the whole text pays for it, as the engine's own filters do.
    state.consume_fuel(text.len() as u64 / 64)?;
    let none = || from_args::<()>(args);
    let all = |is: fn(char) -> bool| none().map(|()| Value::from(!text.is_empty() && text.chars().all(is)));
    Ok(match method {
        "strip" | "lstrip" | "rstrip" => {
            let (set,): (Option<&str>,) = from_args(args)?;
            let strips = |c: char| set.map_or_else(|| is_space(c), |set| set.contains(c));
            let text = if method == "rstrip" { text } else { text.trim_start_matches(strips) };
            Value::from(if method == "lstrip" { text } else { text.trim_end_matches(strips) })
        }
        "split" | "rsplit" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
            let most = most.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
            Value::from(split(text, separator, most, method == "rsplit")?)
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            let line = |line: &str| -> Value {
                let bare =
                    line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
                Value::from(if keep_ends == Some(true) { line } else { bare })
            };
            text.split_inclusive('\n').map(line).collect()
        }
        "startswith" | "endswith" => {
            let (affix,): (Value,) = from_args(args)?;
            let matches = |affix: &Value| match affix.as_str() {
                Some(affix) if method == "startswith" => Ok(text.starts_with(affix)),
                Some(affix) => Ok(text.ends_with(affix)),
                None => Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("{method} takes text, or a list of it"),
                )),
            };
            let mut found = false;
            match affix.kind() {
                ValueKind::Seq => {
                    for affix in affix.try_iter()? {
                        found |= matches(&affix)?;
                    }
                }
                _ => found = matches(&affix)?,
            }
            Value::from(found)
        }
        "removeprefix" => from_args(args).map(|(p,): (&str,)| text.strip_prefix(p).unwrap_or(text).into())?,
        "removesuffix" => from_args(args).map(|(s,): (&str,)| text.strip_suffix(s).unwrap_or(text).into())?,
        "upper" => none().map(|()| text.to_uppercase().into())?,
        "lower" => none().map(|()| text.to_lowercase().into())?,
        "capitalize" => none().map(|()| capitalize(text).into())?,
        "title" => none().map(|()| title(text).into())?,
        "replace" => {
            let (old, new, most): (&str, &str, Option<i64>) = from_args(args)?;
            Value::from(replaced(state, text, old, new, most)?)
        }
        "find" | "rfind" | "index" | "rindex" => {
            let (part,): (&str,) = from_args(args)?;
            let at = if matches!(method, "find" | "index") { text.find(part) } else { text.rfind(part) };
            if at.is_none() && method.ends_with("index") {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("{method}: the text has no such part"),
                ));
            }
            // Python counts characters, not bytes.
            let at = at.and_then(|at| text.get(..at)).map(|before| before.chars().count() as i64);
            Value::from(at.unwrap_or(-1))
        }
        "count" => from_args(args).map(|(part,): (&str,)| text.matches(part).count().into())?,
        "join" => {
            let (items,): (Value,) = from_args(args)?;
            let mut joined = String::new();
            for (at, item) in items.try_iter()?.enumerate() {
                let item = item.as_str().ok_or_else(|| {
                    Error::new(
                        ErrorKind::InvalidOperation,
                        format!("join: item {at} is no text but {}", item.kind()),
                    )
                })?;
                state.consume_fuel(1 + (text.len() + item.len()) as u64 / 64)?;
                if at > 0 {
                    joined.push_str(text);
                }
                joined.push_str(item);
            }
            Value::from(joined)
        }
        "isdigit" | "isnumeric" | "isdecimal" => all(char::is_numeric)?,
        "isalpha" => all(char::is_alphabetic)?,
        "isalnum" => all(char::is_alphanumeric)?,
        "isspace" => all(is_space)?,
        "isascii" => none().map(|()| text.is_ascii().into())?,
        "isupper" => none().map(|()| has_only_case(text, char::is_uppercase, char::is_lowercase).into())?,
        "islower" => none().map(|()| has_only_case(text, char::is_lowercase, char::is_uppercase).into())?,
        _ => return layout_method(state, text, method, args)?.ok_or_else(unknown),
    })
}

/// `str.replace`; all places where `most` is none or negative.
pub(crate) fn replaced(
    state: &State,
    text: &str,
    old: &str,
    new: &str,
    most: Option<i64>,
) -> Result<String, Error> {
    let most = most.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let times = text.matches(old).take(most).count() as u64;
    state.consume_fuel(times.saturating_mul(new.len() as u64) / 64)?;
    Ok(text.replacen(old, new, most))
}

fn map_method(map: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if method == "get" {
        let (key, default): (&Value, Option<Value>) = from_args(args)?;
        let found = map.get_item(key)?;
        return Ok(if found.is_undefined() { default.unwrap_or(Value::from(())) } else { found });
    }
    let () = match method {
        "keys" | "values" | "items" => from_args(args)?,
        _ => return Err(unknown()),
    };
    let entry = |key: Value| {
        Ok(match method {
            "keys" => key,
            "values" => map.get_item(&key)?,
            _ => Value::from(Tuple::from(vec![key.clone(), map.get_item(&key)?])),
        })
    };
    map.try_iter()?.map(entry).collect::<Result<Vec<Value>, Error>>().map(Value::from)
}

fn list_method(list: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (wanted,): (&Value,) = match method {
        "count" | "index" => from_args(args)?,
        _ => return Err(unknown()),
    };
    let mut places = list.try_iter()?.enumerate().filter(|(_, item)| item == wanted).map(|(at, _)| at);
    if method == "count" {
        return Ok(Value::from(places.count()));
    }
    let missing = || Error::new(ErrorKind::InvalidOperation, "index: the list has no such item");
    places.next().map(Value::from).ok_or_else(missing)
}

/// White space as Python sees it: four separators more than Unicode's property.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

fn split(text: &str, separator: Option<&str>, most: usize, from_end: bool) -> Result<Vec<Value>, Error> {
    let parts = most.saturating_add(1);
    let mut found: Vec<Value> = match (separator, from_end) {
        (Some(""), _) => {
            return Err(Error::new(ErrorKind::InvalidOperation, "split: the separator is empty"));
        }
        (Some(separator), false) => text.splitn(parts, separator).map(Value::from).collect(),
        (Some(separator), true) => text.rsplitn(parts, separator).map(Value::from).collect(),
        (None, _) => split_at_space(text, most, from_end),
    };
    if from_end {
        found.reverse();
    }
    Ok(found)
}

/// Words between white space; what is left after `most` cuts stays whole. From the end, the last word comes first.
fn split_at_space(text: &str, most: usize, from_end: bool) -> Vec<Value> {
    let trim = |s: &str| -> usize {
        if from_end {
            s.trim_end_matches(is_space).len()
        } else {
            s.len() - s.trim_start_matches(is_space).len()
        }
    };
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = if from_end { &rest[..trim(rest)] } else { &rest[trim(rest)..] };
        if rest.is_empty() {
            return words;
        }
        let cut = if from_end { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(cut) = cut.filter(|_| words.len() < most) else {
            words.push(Value::from(rest));
            return words;
        };
        let space = rest[cut..].chars().next().map_or(0, char::len_utf8);
        let (word, left) = if from_end {
            (&rest[cut + space..], &rest[..cut])
        } else {
            (&rest[..cut], &rest[cut + space..])
        };
        words.push(Value::from(word));
        rest = left;
    }
}

fn has_only_case(text: &str, wanted: fn(char) -> bool, other: fn(char) -> bool) -> bool {
    text.chars().any(wanted) && !text.chars().any(other)
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + &chars.as_str().to_lowercase())
        .unwrap_or_default()
}

fn title(text: &str) -> String {
    let mut after_letter = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if after_letter {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        after_letter = c.is_alphabetic();
    }
    out
}
