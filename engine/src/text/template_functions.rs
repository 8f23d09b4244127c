//! Functions and filters of chat templates.

use std::fmt;
use std::time::SystemTime;

use super::bounded_printing::printable;
use super::printing_filters;
use super::python_float::python_float;
use super::python_json::to_json;
use super::template_date;
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

/// The error behind `raise_exception`: the template's own message.
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// Adds everything a chat template may call.
pub(crate) fn register(environment: &mut Environment<'static>, output_bytes: usize) {
    printing_filters::register(environment);
    environment.add_function("raise_exception", |state: &State, message: Value| -> Result<Value, Error> {
        printable(state, &message)?;
        let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    environment.add_filter("tojson", move |value: &Value, args: Rest<Value>, kwargs: Kwargs| {
        to_json(value, &args, &kwargs, output_bytes)
    });
    environment.add_filter("wordcount", |text: &str| text.split_whitespace().count());
    // Whatever has a length and places: texts and maps too.
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String) || value.is_undefined()
    });
    environment.add_filter("string", |state: &State, value: &Value| -> Result<Value, Error> {
        if value.kind() == ValueKind::String {
            return Ok(value.clone());
        }
        printable(state, value)?;
        Ok(Value::from(as_float(value).map_or_else(|| value.to_string(), python_float)))
    });
    environment.set_formatter(|output, state, value| {
        printable(state, value)?;
        match as_float(value) {
            Some(value) => output.write_str(&python_float(value)).map_err(Error::from),
            None => minijinja::escape_formatter(output, state, value),
        }
    });
}

fn as_float(value: &Value) -> Option<f64> {
    if value.is_number() && !value.is_integer() { f64::try_from(value.clone()).ok() } else { None }
}

/// The function `strftime_now(format)` at a given time, in UTC.
pub(crate) fn strftime_now(now: SystemTime) -> Value {
    Value::from_function(move |format: &str| {
        template_date::format(now, format).map_err(|m| Error::new(ErrorKind::InvalidOperation, m))
    })
}
