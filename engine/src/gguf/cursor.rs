//! Reading little-endian values out of bytes that may end anywhere.

use super::GgufError;
use super::error::What;

/// A position in the file's bytes. Every read checks what is left first.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes from the start of the file.
    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn take(&mut self, len: u64, what: What<'_>) -> Result<&'a [u8], GgufError> {
        let rest = self.rest();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len)).ok_or_else(|| {
            GgufError::Truncated {
                what: what.to_string(),
                offset: self.offset(),
                needed: len,
                available: rest.len() as u64,
            }
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, what: What<'_>) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64, what)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, what: What<'_>) -> Result<u32, GgufError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: What<'_>) -> Result<u64, GgufError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Refuses a count of things, each of `min_bytes` or more, that the rest of the file cannot hold. A count that
    /// passes is safe to allocate for.
    pub(super) fn check_count(&self, count: u64, min_bytes: u64, what: What<'_>) -> Result<usize, GgufError> {
        let available = self.rest().len() as u64;
        let fits = count.checked_mul(min_bytes).is_some_and(|bytes| bytes <= available);
        usize::try_from(count).ok().filter(|_| fits).ok_or_else(|| GgufError::CountTooLarge {
            what: what.to_string(),
            offset: self.offset(),
            count,
            min_bytes,
            available,
        })
    }

    pub(super) fn string(&mut self, what: What<'_>) -> Result<&'a str, GgufError> {
        let len = self.u64(what)?;
        self.text(len, what)
    }

    /// A string of at most `limit` bytes.
    pub(super) fn name(&mut self, limit: u64, what: What<'_>) -> Result<&'a str, GgufError> {
        let len = self.u64(what)?;
        if len > limit {
            return Err(GgufError::NameTooLong { what: what.to_string(), offset: self.offset(), len, limit });
        }
        self.text(len, what)
    }

    fn text(&mut self, len: u64, what: What<'_>) -> Result<&'a str, GgufError> {
        let offset = self.offset();
        std::str::from_utf8(self.take(len, what)?).map_err(|error| GgufError::InvalidUtf8 {
            what: what.to_string(),
            offset,
            bad_byte: offset + error.valid_up_to() as u64,
        })
    }
}
