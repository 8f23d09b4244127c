//! SentencePiece vocabularies ("llama"): merges are not listed but follow from the tokens' scores.
//!
//! Kudo and Richardson, "SentencePiece", 2018: of all neighbouring pieces whose union is a token, the one with the
//! highest score is joined first. As byte-pair encoding this is a list of merges sorted by the score of the result;
//! among splits of one token, and tokens of one score, longer left parts come first.

use std::collections::HashMap;

use super::error::{TextError, VocabularyFault as Fault};
use super::vocabulary::{TokenKind, Vocabulary};

/// What a space is written as.
pub(crate) const SPACE: char = '\u{2581}';

/// Longest token whose splits are tried, in bytes: the work grows with the square of the length.
const MAX_PIECE_BYTES: usize = 256;

/// Every way to split a token in two tokens, best first.
pub(crate) fn merges_from_scores(vocabulary: &Vocabulary) -> Result<Vec<(String, String)>, TextError> {
    let source = &vocabulary.source;
    if source.scores.len() != source.tokens.len() {
        let (found, tokens) = (source.scores.len(), source.tokens.len());
        return Err(Fault::LengthMismatch { what: "scores", found, tokens }.into());
    }
    if let Some((id, &found)) = source.scores.iter().enumerate().find(|(_, score)| !score.is_finite()) {
        return Err(Fault::Score { id, found }.into());
    }

    let normal = |text: &str| {
        let id = *vocabulary.ids.get(text)?;
        (vocabulary.kinds.get(id as usize) == Some(&TokenKind::Normal)).then_some(id)
    };
    let mut splits: Vec<(f32, u32, u32)> = Vec::new();
    for ((text, kind), &score) in source.tokens.iter().zip(&vocabulary.kinds).zip(&source.scores) {
        if *kind != TokenKind::Normal || text.len() > MAX_PIECE_BYTES {
            continue;
        }
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if let (Some(left), Some(right)) = (normal(left), normal(right)) {
                splits.push((score, left, right));
            }
        }
    }

    let text = |id: u32| source.tokens.get(id as usize).map_or("", String::as_str);
    splits.sort_by(|a, b| {
        let lengths = |&(_, l, r): &(f32, u32, u32)| (text(l).chars().count(), text(r).chars().count());
        b.0.total_cmp(&a.0)
            .then_with(|| lengths(b).cmp(&lengths(a)))
            .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
    });
    Ok(splits.into_iter().map(|(_, left, right)| (text(left).to_owned(), text(right).to_owned())).collect())
}

/// The byte that a token of the form `<0x41>` stands for.
pub(crate) fn byte_of_token(text: &str) -> Option<u8> {
    let hex = text.strip_prefix("<0x")?.strip_suffix('>')?;
    // `from_str_radix` takes a sign, which no byte token has.
    if hex.len() == 2 && hex.bytes().all(|c| c.is_ascii_hexdigit()) {
        u8::from_str_radix(hex, 16).ok()
    } else {
        None
    }
}

/// Whether all 256 byte tokens are there, in the spelling the `tokenizers` crate looks for.
pub(crate) fn has_all_bytes(ids: &HashMap<String, u32>) -> bool {
    (0..=u8::MAX).all(|byte| ids.contains_key(&format!("<0x{byte:02X}>")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_tokens() {
        assert_eq!(byte_of_token("<0x0A>"), Some(10));
        for other in ["<0x0A", "0x0A>", "<0xA>", "<0x+1>", "<0x00A>", "<0x>", "<0xé>"] {
            assert_eq!(byte_of_token(other), None, "{other}");
        }
    }
}
