//! JSON as Python's `json.dumps` writes it, for the filter `tojson`.

use std::io::{self, Write};

use minijinja::value::{Kwargs, Rest, Value};
use minijinja::{Error, ErrorKind};
use serde::Serialize as _;
use serde_json::ser::{Formatter, Serializer};

use super::bounded_printing::{BoundedOutput, printed_size};
use super::python_float::python_float;

/// Widest indentation, in characters.
const MAX_INDENT: usize = 16;

/// The filter: `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub(crate) fn to_json(
    value: &Value,
    args: &Rest<Value>,
    kwargs: &Kwargs,
    limit: usize,
) -> Result<Value, Error> {
    let option = |place: usize, name: &str| match args.get(place) {
        Some(value) => Ok(Some(value.clone())),
        None => kwargs.get::<Option<Value>>(name),
    };
    // Jinja's own filter has `indent` in the first place; `transformers` has `ensure_ascii` there.
    let (first, second) = (option(0, "ensure_ascii")?, option(1, "indent")?);
    let is_flag =
        first.as_ref().is_none_or(|first| matches!(first.kind(), minijinja::value::ValueKind::Bool));
    let (ascii, indent) = if is_flag { (first, second) } else { (None, first) };
    let separators = option(2, "separators")?;
    let sorted = option(3, "sort_keys")?.is_some_and(|sorted| sorted.is_true());
    kwargs.assert_all_used()?;
    if value.is_undefined() {
        return Err(invalid("tojson: the value is undefined"));
    }
    printed_size(value)?;

    let indent = indent.filter(|v| !v.is_none() && !v.is_undefined()).map(|v| indentation(&v)).transpose()?;
    let (item, key) = match separators.filter(|v| !v.is_none()) {
        Some(pair) => separator_pair(&pair)?,
        None => (if indent.is_some() { "," } else { ", " }.into(), ": ".into()),
    };
    let ascii = ascii.is_some_and(|ascii| ascii.is_true());
    let mut output = BoundedOutput::new(limit);
    let style = PythonStyle { indent, item, key, ascii, depth: 0, has_value: false };
    let mut serializer = Serializer::with_formatter(&mut output, style);
    let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::BadSerialization, e.to_string());
    if sorted {
        let mut value = serde_json::to_value(value).map_err(|e| failed(&e))?;
        value.sort_all_objects();
        value.serialize(&mut serializer).map_err(|e| failed(&e))?;
    } else {
        value.serialize(&mut serializer).map_err(|e| failed(&e))?;
    }
    Ok(Value::from(String::from_utf8(output.into_bytes()).map_err(|e| failed(&e))?))
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn indentation(value: &Value) -> Result<String, Error> {
    let indent = match value.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let width = usize::try_from(value.clone())?;
            " ".repeat(width.min(MAX_INDENT + 1))
        }
    };
    if indent.len() > MAX_INDENT { Err(invalid("indent is above 16")) } else { Ok(indent) }
}

fn separator_pair(pair: &Value) -> Result<(String, String), Error> {
    let texts: Vec<Value> = pair.try_iter()?.collect();
    match texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().as_slice() {
        [Some(item), Some(key)] if item.len() + key.len() <= MAX_INDENT => {
            Ok(((*item).into(), (*key).into()))
        }
        _ => Err(invalid("separators: expected two short texts")),
    }
}

struct PythonStyle {
    indent: Option<String>,
    item: String,
    key: String,
    ascii: bool,
    depth: usize,
    /// Whether the list or map that ends has something in it.
    has_value: bool,
}

impl PythonStyle {
    fn begin(&mut self, writer: &mut (impl Write + ?Sized), sign: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(sign)
    }

    fn end(&mut self, writer: &mut (impl Write + ?Sized), sign: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.has_value {
            self.new_line(writer)?;
        }
        // Whatever this is in has something in it now.
        self.has_value = true;
        writer.write_all(sign)
    }

    fn next(&mut self, writer: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(self.item.as_bytes())?;
        }
        self.has_value = true;
        self.new_line(writer)
    }

    fn new_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let Some(indent) = &self.indent else { return Ok(()) };
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(indent.as_bytes()))
    }
}

impl Formatter for PythonStyle {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(python_float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if !self.ascii || text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return writer.write_all(text.as_bytes());
        }
        for c in text.chars() {
            if (' '..='~').contains(&c) {
                writer.write_all(&[c as u8])?;
            } else {
                c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))?;
            }
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.key.as_bytes())
    }
}
