//! Functions, filters and printing of chat templates, and what bounds them.

use std::fmt;
use std::io::{self, Write};
use std::time::SystemTime;

use super::python_float::python_float;
use super::python_json::to_json;
use super::template_date;
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

/// Deepest nesting that is printed.
const MAX_DEPTH: usize = 64;
/// Most values that are printed as one.
const MAX_PARTS: usize = 1 << 20;

/// The error behind `raise_exception`: the template's own message.
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// A writer that refuses what goes beyond a limit.
#[derive(Debug)]
pub(crate) struct BoundedOutput {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl BoundedOutput {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, full: false }
    }

    /// Whether something was refused.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.full = true;
            return Err(io::Error::other(format!("more than {} bytes", self.limit)));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds everything a chat template may call.
pub(crate) fn register(environment: &mut Environment<'static>, output_bytes: usize) {
    environment.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
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

/// Refuses values that cannot be printed in reasonable time and space. A list can contain one list twice, which
/// contains another twice, and so on: a few steps make something too large to print.
fn printable(state: &State, value: &Value) -> Result<(), Error> {
    let mut parts = 0;
    count_parts(value, 0, &mut parts)?;
    state.consume_fuel(parts as u64)
}

pub(crate) fn count_parts(value: &Value, depth: usize, parts: &mut usize) -> Result<(), Error> {
    *parts += 1;
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(());
    }
    if depth >= MAX_DEPTH || *parts > MAX_PARTS {
        let message = format!("a value nests deeper than {MAX_DEPTH} or has more than {MAX_PARTS} parts");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    for item in value.try_iter()? {
        if value.kind() == ValueKind::Map {
            count_parts(&value.get_item(&item)?, depth + 1, parts)?;
        }
        count_parts(&item, depth + 1, parts)?;
    }
    Ok(())
}

/// The function `strftime_now(format)` at a given time, in UTC.
pub(crate) fn strftime_now(now: SystemTime) -> Value {
    Value::from_function(move |format: &str| {
        template_date::format(now, format).map_err(|m| Error::new(ErrorKind::InvalidOperation, m))
    })
}
