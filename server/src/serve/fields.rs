//! The fields of a JSON object, taken out one by one; what is wrong with one is said with its path.

use super::error::{ApiError, echo};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Fields not taken yet. A field that is null counts as absent, as clients send either.
#[derive(Debug)]
pub(super) struct Fields {
    fields: Map<String, Value>,
    /// What comes before a field's name in messages: empty, or `messages[2].`.
    at: String,
}

impl Fields {
    /// The fields of a whole body.
    pub(super) fn of_body(bytes: &[u8]) -> Result<Self, ApiError> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(ApiError::invalid("the body is empty; expected a JSON object"));
        }
        let value = serde_json::from_slice(bytes).map_err(|error| {
            ApiError::invalid(format!("the body is not JSON that can be read: {error}")).code("invalid_json")
        })?;
        match value {
            Value::Object(fields) => Ok(Self { fields, at: String::new() }),
            other => Err(ApiError::invalid(format!("the body is {}; expected a JSON object", kind(&other)))),
        }
    }

    /// The fields of a value that should be an object.
    pub(super) fn of(value: Value, path: &str) -> Result<Self, ApiError> {
        match value {
            Value::Object(fields) => Ok(Self { fields, at: format!("{path}.") }),
            other => Err(wrong(path, "an object", &other)),
        }
    }

    /// The full name of a field.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.at)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// A field without which nothing can be done.
    pub(super) fn required(&mut self, name: &str) -> Result<Value, ApiError> {
        self.take(name).ok_or_else(|| {
            let path = self.path(name);
            ApiError::parameter(&*path, format!("`{path}` is missing")).code("missing_required_parameter")
        })
    }

    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let path = self.path(name);
        self.take(name).map(|value| string(value, &path)).transpose()
    }

    pub(super) fn required_string(&mut self, name: &str) -> Result<String, ApiError> {
        let path = self.path(name);
        string(self.required(name)?, &path)
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong(&self.path(name), "true or false", &other)),
        }
    }

    /// An integer within a range.
    pub(super) fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let (least, most) = (range.start(), range.end());
        let expected = if *most == i64::MAX {
            format!("an integer, {least} or more")
        } else {
            format!("an integer from {least} to {most}")
        };
        match value.as_i64().filter(|value| range.contains(value)) {
            Some(value) => Ok(Some(value)),
            // Beyond every limit is still a number without a bound.
            None if *most == i64::MAX && value.as_u64().is_some_and(|value| value > i64::MAX as u64) => {
                Ok(Some(i64::MAX))
            }
            None => Err(wrong(&path, &expected, &value)),
        }
    }

    /// A number within a range.
    pub(super) fn number(&mut self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f32>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_f64().filter(|value| range.contains(value)) {
            Some(value) => Ok(Some(value as f32)),
            None => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                Err(wrong(&self.path(name), &expected, &value))
            }
        }
    }

    /// Takes fields that have no effect here and need none.
    pub(super) fn ignore(&mut self, names: &[&str]) {
        names.iter().for_each(|name| drop(self.take(name)));
    }

    /// Takes a field that would have an effect, were it supported: only a value that means "off" passes.
    pub(super) fn off(&mut self, name: &str, off: &[Value]) -> Result<(), ApiError> {
        let same = |a: &Value, b: &Value| a == b || (a.is_number() && a.as_f64() == b.as_f64());
        match self.take(name) {
            Some(value) if !off.iter().any(|off| same(off, &value)) => {
                let path = self.path(name);
                let message = format!("`{path}` is not supported; leave it out");
                Err(ApiError::unsupported(path, message))
            }
            _ => Ok(()),
        }
    }

    /// Whatever was not taken is unknown, and may have been meant to change the answer.
    pub(super) fn done(self) -> Result<(), ApiError> {
        match self.fields.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => {
                let shown = echo(name);
                let message = format!("unknown parameter {}{}", self.at, shown.trim_matches('"'));
                Err(ApiError::parameter(shown.trim_matches('"'), message).code("unknown_parameter"))
            }
        }
    }
}

pub(super) fn string(value: Value, path: &str) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong(path, "a string", &other)),
    }
}

/// A value of another type, or out of range.
pub(super) fn wrong(path: &str, expected: &str, got: &Value) -> ApiError {
    let got = match got {
        Value::Null | Value::Bool(_) | Value::Number(_) => got.to_string(),
        Value::String(text) => echo(text),
        other => kind(other).to_owned(),
    };
    ApiError::parameter(path, format!("`{path}` is {got}; expected {expected}"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::of_body(text.as_bytes()).unwrap()
    }

    #[test]
    fn null_is_absent_and_numbers_have_their_ranges() {
        let mut of = fields(r#"{"a": null, "n": 3, "big": 18446744073709551615, "x": 1.5, "f": 2.0}"#);
        assert_eq!(of.integer("a", 0..=5).unwrap(), None);
        assert_eq!(of.integer("n", 0..=5).unwrap(), Some(3));
        assert_eq!(of.integer("big", 1..=i64::MAX).unwrap(), Some(i64::MAX));
        assert_eq!(of.number("x", 0.0..=2.0).unwrap(), Some(1.5));
        assert!(fields(r#"{"m": 0}"#).integer("m", 1..=i64::MAX).is_err());
        let error = of.integer("f", 0..=5).unwrap_err();
        assert_eq!(error.message, "`f` is 2.0; expected an integer from 0 to 5");
        of.done().unwrap();
    }

    #[test]
    fn off_is_off_however_it_is_written() {
        let mut of = fields(r#"{"p": 0.0, "q": 0, "r": 0.5}"#);
        of.off("p", &[0.into()]).unwrap();
        of.off("q", &[0.0.into()]).unwrap();
        let error = of.off("r", &[0.into()]).unwrap_err();
        assert_eq!((error.param.as_deref(), error.code), (Some("r"), Some("unsupported_parameter")));
    }

    #[test]
    fn a_name_of_a_megabyte_is_not_sent_back() {
        let name = "x".repeat(1 << 20);
        let error = fields(&format!(r#"{{"{name}": 1}}"#)).done().unwrap_err();
        assert!(error.body().to_string().len() < 1000);
    }
}
