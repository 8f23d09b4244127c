//! Methods of Python's strings that lay text out: padding, parting, filling in.

use minijinja::value::{Kwargs, Rest, Tuple, Value, from_args};
use minijinja::{Error, ErrorKind, State};

use super::bounded_printing::printable;

/// `None` for a method that is not one of these.
pub(crate) fn layout_method(
    state: &State,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            if separator.is_empty() {
                return Err(invalid(format!("{method}: the separator is empty")));
            }
            let parts = if method == "partition" {
                text.split_once(separator).map_or([text, "", ""], |(a, b)| [a, separator, b])
            } else {
                text.rsplit_once(separator).map_or(["", "", text], |(a, b)| [a, separator, b])
            };
            Value::from(Tuple::from(parts.map(Value::from).to_vec()))
        }
        "ljust" | "rjust" | "center" | "zfill" => {
            let (width, fill): (i64, Option<&str>) = from_args(args)?;
            let width = usize::try_from(width).unwrap_or(0);
            state.consume_fuel(width as u64 / 64)?;
            let mut fill = fill.unwrap_or(if method == "zfill" { "0" } else { " " }).chars();
            let (Some(fill), None) = (fill.next(), fill.next()) else {
                return Err(invalid(format!("{method}: expected one character to fill with")));
            };
            Value::from(pad(text, method, width, fill))
        }
        "swapcase" => {
            from_args::<()>(args)?;
            let swap = |c: char| -> Vec<char> {
                if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
            };
            Value::from(text.chars().flat_map(swap).collect::<String>())
        }
        "format" => Value::from(fill_in(state, text, args)?),
        _ => return Ok(None),
    }))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn pad(text: &str, method: &str, width: usize, fill: char) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let fill = |count: usize| fill.to_string().repeat(count);
    match method {
        "ljust" => text.to_owned() + &fill(missing),
        // The odd one goes to the left where the width is odd, as in Python.
        "center" => {
            let left = missing / 2 + (missing & width & 1);
            fill(left) + text + &fill(missing - left)
        }
        "zfill" => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let (sign, _) = text.split_at(text.len() - digits.len());
            [sign, &fill(missing), digits].concat()
        }
        _ => fill(missing) + text,
    }
}

/// `str.format`, of which templates use fields by place and by name.
fn fill_in(state: &State, text: &str, args: &[Value]) -> Result<String, Error> {
    let (values, named): (Rest<Value>, Kwargs) = from_args(args)?;
    let mut out = String::new();
    let mut rest = text;
    let mut next = 0;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            out.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let field = from.strip_prefix('{').and_then(|from| from.split_once('}'));
        let (field, after) = field.ok_or_else(|| invalid("format: a brace is alone".into()))?;
        let value = if field.is_empty() || field.bytes().all(|byte| byte.is_ascii_digit()) {
            let place = field.parse().unwrap_or(next);
            next += usize::from(field.is_empty());
            values.get(place).cloned()
        } else if field.chars().all(|c| c.is_alphanumeric() || c == '_') {
            named.get::<Option<Value>>(field)?
        } else {
            return Err(invalid(format!("format: the field {{{field}}} is more than a place or a name")));
        };
        let value = value.ok_or_else(|| invalid(format!("format: no value for {{{field}}}")))?;
        printable(state, &value)?;
        let value = value.to_string();
        state.consume_fuel(1 + value.len() as u64 / 64)?;
        out.push_str(&value);
        rest = after;
    }
    Ok(out + rest)
}
