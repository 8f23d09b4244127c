//! Incremental decoding and stop strings: nothing lost, nothing early, however the text is cut.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "fixtures/text/byte_vocabulary.rs"]
mod byte_vocabulary;

use byte_vocabulary::byte_vocabulary;
use halite_engine::text::{AnswerText, SpecialTokens, StopMatcher, TextError, Tokenizer};
use proptest::prelude::*;

const TEXTS: &[&str] = &[
    "안녕하세요, 세계! 한국어 문장입니다.",
    "こんにちは世界。日本語の文章です。",
    "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 tone, 🇰🇷 pair",
    "a\u{0}b\u{7}c\u{1b}[0m\u{7f}\r\n",
    "e\u{301}\u{323} combining, \u{FFFD} replacement, \u{10FFFF} last",
    "",
];

fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> (Vec<String>, String) {
    let mut decoder = tokenizer.stream_decoder();
    let mut pieces: Vec<String> = ids.iter().map(|&id| decoder.push(id).unwrap()).collect();
    pieces.push(decoder.finish());
    let all = pieces.concat();
    (pieces, all)
}

#[test]
fn pieces_equal_the_whole_wherever_it_is_cut() {
    let tokenizer = Tokenizer::new(byte_vocabulary(&[])).unwrap();
    for text in TEXTS {
        let ids = tokenizer.encode(text, SpecialTokens::AsText).unwrap();
        for end in 0..=ids.len() {
            let (pieces, all) = streamed(&tokenizer, &ids[..end]);
            assert_eq!(all, tokenizer.decode(&ids[..end]).unwrap(), "{text:?} cut at token {end}");
            // Valid text so far: only the very end may be a replacement.
            let before_end = pieces[..end].concat();
            assert!(text.starts_with(&before_end), "{before_end:?} is no beginning of {text:?}");
        }
        assert_eq!(streamed(&tokenizer, &ids).1, *text);
    }
}

#[test]
fn a_character_appears_with_its_last_byte() {
    let tokenizer = Tokenizer::new(byte_vocabulary(&[])).unwrap();
    let ids: Vec<u32> = "🙂"
        .bytes()
        .map(|b| tokenizer.token_id(&byte_vocabulary::char_of_byte(b).to_string()).unwrap())
        .collect();
    assert_eq!(streamed(&tokenizer, &ids).0, ["", "", "", "🙂", ""]);
    assert_eq!(streamed(&tokenizer, &ids[..3]).0, ["", "", "", "\u{FFFD}"]);
    // A broken character is replaced as soon as that is certain.
    assert_eq!(streamed(&tokenizer, &[ids[0], ids[1], tokenizer.token_id("a").unwrap()]).0[2], "\u{FFFD}a");
}

proptest! {
    #[test]
    fn any_tokens_stream_as_they_decode(ids in prop::collection::vec(0u32..269, 0..80)) {
        let tokenizer = Tokenizer::new(byte_vocabulary(&[])).unwrap();
        prop_assert_eq!(streamed(&tokenizer, &ids).1, tokenizer.decode(&ids).unwrap());
    }

    #[test]
    fn any_bytes_stream_as_the_standard_library_decodes(bytes in prop::collection::vec(
        prop_oneof![any::<u8>(), prop::sample::select(vec![0xED, 0xA0, 0x80, 0xF0, 0x9F, 0x99, 0x82, 0xC0, 0xF4, 0x90])],
        0..40,
    )) {
        let tokenizer = Tokenizer::new(byte_vocabulary(&[])).unwrap();
        let ids: Vec<u32> = bytes.iter().map(|&b| u32::from(b) + 3).collect();
        prop_assert_eq!(streamed(&tokenizer, &ids).1, String::from_utf8_lossy(&bytes));
    }
}

/// The definition, directly: the answer ends where a stop string is first complete, the longest of those that are.
fn cut(text: &str, stops: &[String]) -> (String, Option<usize>) {
    for end in 1..=text.len() {
        let complete = |stop: &String| text.as_bytes()[..end].ends_with(stop.as_bytes());
        let longest = (0..stops.len())
            .filter(|&i| complete(&stops[i]))
            .max_by_key(|&i| (stops[i].len(), usize::MAX - i));
        if let Some(index) = longest {
            return (text[..end - stops[index].len()].to_owned(), Some(index));
        }
    }
    (text.to_owned(), None)
}

/// Feeds pieces; checks after each that what was shown cannot be part of a stop string to come.
fn matched(pieces: &[&str], stops: &[String]) -> (String, Option<usize>) {
    let mut matcher = StopMatcher::new(stops).unwrap();
    let (mut shown, mut given) = (String::new(), String::new());
    for piece in pieces {
        let progress = matcher.push(piece);
        shown += &progress.text;
        given += piece;
        if progress.stopped.is_some() {
            assert_eq!(matcher.push("more").text, "", "nothing follows a stop");
            assert_eq!(matcher.stopped(), progress.stopped);
            return (shown + &matcher.finish(), progress.stopped);
        }
        // Held back: exactly the longest end of the text that begins a stop string.
        let begins =
            |at: &usize| given.is_char_boundary(*at) && stops.iter().any(|s| s.starts_with(&given[*at..]));
        let safe = (0..given.len()).find(begins).unwrap_or(given.len());
        assert_eq!(shown, given[..safe], "after {given:?} with stops {stops:?}");
    }
    (shown + &matcher.finish(), None)
}

#[test]
fn stop_strings_at_every_pair_of_cuts() {
    let cases: &[(&str, &[&str])] = &[
        ("one two STOP three", &["STOP"]),
        ("aaaaab", &["aab"]),
        ("abcabcabd!", &["abcabd"]),
        ("<|im_<|im_end|>x", &["<|im_end|>"]),
        ("그만하세요 그만!", &["그만!", "세요 끝"]),
        ("abcd", &["abcde", "bc"]),
        ("xabc", &["c", "bc", "abc"]),
        ("no stop at all", &["stop!", "zzz"]),
        ("🙂🙃", &["🙃"]),
        ("èé", &["é"]),
        ("", &["a"]),
    ];
    for (text, stops) in cases {
        let stops: Vec<String> = stops.iter().map(|s| (*s).to_owned()).collect();
        let expected = cut(text, &stops);
        let boundaries: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
        for &first in &boundaries {
            for &second in boundaries.iter().filter(|&&second| second >= first) {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(matched(&pieces, &stops), expected, "{text:?} cut at {first} and {second}");
            }
        }
    }
}

proptest! {
    #[test]
    fn stop_strings_do_not_depend_on_the_cuts(
        text in "[ab한é]{0,24}",
        stops in prop::collection::vec("[ab한é]{1,5}", 0..4),
        cuts in prop::collection::vec(0usize..60, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|&at| text.is_char_boundary(at)).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([text.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let pieces: Vec<&str> = starts.zip(ends).map(|(start, end)| &text[start..end]).collect();
        prop_assert_eq!(matched(&pieces, &stops), cut(&text, &stops));
    }
}

#[test]
fn stop_strings_are_bounded() {
    let refused = |stops: &[String]| matches!(StopMatcher::new(stops), Err(TextError::StopStrings(_)));
    assert!(refused(&[String::new()]));
    assert!(refused(&["x".repeat(4097)]));
    assert!(refused(&vec!["x".to_owned(); 65]));
    assert!(!refused(&[]));
    assert!(!refused(&["x".repeat(4096)]));
}

#[test]
fn ids_of_a_padded_output_layer_spell_nothing() {
    let tokenizer = Tokenizer::new(byte_vocabulary(&[])).unwrap();
    let ids = tokenizer.encode("한 END", SpecialTokens::AsText).unwrap();
    let beyond = tokenizer.vocab_size() as u32;
    // In the middle of a character and of a stop string, too.
    let mut text = AnswerText::new(&tokenizer, &["END"]).unwrap();
    let pieces = ids.iter().flat_map(|&id| [beyond, id, u32::MAX]).map(|id| text.push(id).unwrap());
    assert_eq!(pieces.collect::<String>(), "한 ");
    assert!(text.is_stopped());
}
