//! Saved weights: a line that says what they were packed for, and bytes that only its writer understands.

use halite_hal::{Error, Result};

/// What stands behind `header` in `saved`, `len` bytes: for backends that take back what they saved.
///
/// # Errors
/// [`Error::Layout`]: other weights, of another backend, version or spec, or not all of them.
pub fn saved_weights<'s>(
    operator: &'static str,
    header: &str,
    len: u64,
    saved: &'s [u8],
) -> Result<&'s [u8]> {
    let wrong = |expected: String, got: String| Err(Error::Layout { operator, expected, got });
    let Some(rest) = saved.strip_prefix(header.as_bytes()) else {
        // Whatever was saved: some of its first line says what it is.
        let line = saved.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = &line[..line.len().min(header.len() + 200)];
        return wrong(header.trim_end().to_owned(), line.escape_ascii().to_string());
    };
    if rest.len() as u64 != len {
        return wrong(format!("{len} bytes after the header"), format!("{} bytes", rest.len()));
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_weights_of_the_same_header_are_taken_back() {
        let taken = |saved: &[u8]| saved_weights("linear", "layout v1\n", 2, saved).map(<[u8]>::to_vec);
        assert_eq!(taken(b"layout v1\nab"), Ok(b"ab".to_vec()));
        for (saved, said) in [
            (&b"layout v2\nab"[..], "layout v2"),
            (b"", "layout v1"),
            (b"\xff\x00", "\\xff\\x00"),
            (b"layout v1\na", "1 bytes"),
            (b"layout v1\nabc", "3 bytes"),
        ] {
            let error = taken(saved).unwrap_err().to_string();
            assert!(error.contains("linear") && error.contains(said), "{error}");
        }
    }
}
