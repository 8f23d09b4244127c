//! What keeps the printing of a template's values within bounds.

use std::io::{self, Write};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// Deepest nesting that is printed.
const MAX_DEPTH: usize = 64;
/// Largest value that is printed, in the unit of [`printed_size`].
const MAX_SIZE: u64 = 1 << 20;
/// Bytes of text that count as much as one more value: what the engine gives for one unit of fuel.
const BYTES_PER_UNIT: usize = 64;

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

/// Refuses values that cannot be printed in reasonable time and space, and charges for the others. A list can contain
/// one list twice, which contains another twice, and so on: a few steps make something too large to print.
pub(crate) fn printable(state: &State, value: &Value) -> Result<(), Error> {
    // The engine itself charges for a text.
    if is_container(value) { state.consume_fuel(printed_size(value)?) } else { Ok(()) }
}

/// The size of a value once printed: its parts, with one more for each 64 bytes of their texts.
pub(crate) fn printed_size(value: &Value) -> Result<u64, Error> {
    let mut size = 0;
    add_size(value, 0, &mut size)?;
    Ok(size)
}

fn is_container(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map)
}

fn add_size(value: &Value, depth: usize, size: &mut u64) -> Result<(), Error> {
    *size += 1 + (value.as_str().map_or(0, str::len) / BYTES_PER_UNIT) as u64;
    if !is_container(value) {
        return Ok(());
    }
    for item in value.try_iter()? {
        // Here, as a list may be long without having been made: `[1] * 10**12`.
        if depth >= MAX_DEPTH || *size > MAX_SIZE {
            let message = format!("a value nests deeper than {MAX_DEPTH}, or is too large to be printed");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        if value.kind() == ValueKind::Map {
            add_size(&value.get_item(&item)?, depth + 1, size)?;
        }
        add_size(&item, depth + 1, size)?;
    }
    Ok(())
}
