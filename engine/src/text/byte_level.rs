//! The byte-level alphabet: how a vocabulary writes each of the 256 bytes as one printable character.
//!
//! Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (GPT-2), 2019. Bytes that are
//! printable in Latin-1 stand for themselves; the other 68 take the characters from U+0100 on, in order.

use std::sync::LazyLock;

/// Highest character of the alphabet: 68 bytes are written as U+0100 to U+0143.
const LAST: usize = 0x143;

static CHAR_OF_BYTE: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next = 0x100u32;
    std::array::from_fn(|byte| {
        // `byte` is below 256 here, so both conversions are exact.
        let byte = byte as u8;
        if is_printable(byte) {
            return char::from(byte);
        }
        let c = char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER);
        next += 1;
        c
    })
});

static BYTE_OF_CHAR: LazyLock<[Option<u8>; LAST + 1]> = LazyLock::new(|| {
    let mut table = [None; LAST + 1];
    for (byte, &c) in (0..=u8::MAX).zip(CHAR_OF_BYTE.iter()) {
        table[c as usize] = Some(byte);
    }
    table
});

fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character that stands for `byte` in a byte-level vocabulary.
pub(crate) fn char_of_byte(byte: u8) -> char {
    CHAR_OF_BYTE[usize::from(byte)]
}

/// The bytes a byte-level token stands for. A token with a character outside the alphabet stands for its own
/// text, as in the `tokenizers` crate.
pub(crate) fn bytes_of_token(token: &str) -> Vec<u8> {
    let byte_of = |c: char| BYTE_OF_CHAR.get(c as usize).copied().flatten();
    token.chars().map(byte_of).collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_alphabet_is_a_bijection() {
        let chars: HashSet<char> = (0..=u8::MAX).map(char_of_byte).collect();
        assert_eq!(chars.len(), 256);
        for byte in 0..=u8::MAX {
            assert_eq!(bytes_of_token(&char_of_byte(byte).to_string()), [byte]);
        }
        assert_eq!((char_of_byte(b' '), char_of_byte(b'\n'), char_of_byte(0)), ('Ġ', 'Ċ', 'Ā'));
    }

    #[test]
    fn tokens_outside_the_alphabet_are_their_own_text() {
        assert_eq!(bytes_of_token("한Ġ"), "한Ġ".as_bytes());
        assert_eq!(bytes_of_token(""), b"");
    }
}
