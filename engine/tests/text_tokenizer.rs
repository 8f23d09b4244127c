//! Tokenizers from vocabularies: right, careful with special tokens, and safe with any vocabulary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "fixtures/text/byte_vocabulary.rs"]
mod byte_vocabulary;

use byte_vocabulary::byte_vocabulary;
use halite_engine::text::{
    ChatInput, ChatMessage, ChatTemplate, PreTokenizer, SpecialTokens, TextError, TokenKind, Tokenizer,
    VocabularyFault, VocabularySource, encode_chat,
};
use proptest::prelude::*;

fn tokenizer() -> Tokenizer {
    Tokenizer::new(byte_vocabulary(&[])).unwrap()
}

fn tokens(tokenizer: &Tokenizer, text: &str, special: SpecialTokens) -> Vec<String> {
    let ids = tokenizer.encode(text, special).unwrap();
    ids.iter().map(|&id| tokenizer.token(id).unwrap().to_owned()).collect()
}

fn fault(source: VocabularySource) -> VocabularyFault {
    match Tokenizer::new(source) {
        Err(TextError::Vocabulary(fault)) => fault,
        other => panic!("expected a fault of the vocabulary, got {other:?}"),
    }
}

#[test]
fn merges_apply_in_order_and_digits_stand_alone() {
    let t = tokenizer();
    assert_eq!(tokens(&t, "hello world", SpecialTokens::AsText), ["hello", "Ġw", "o", "r", "l", "d"]);
    assert_eq!(tokens(&t, "hell12", SpecialTokens::AsText), ["hell", "1", "2"]);
    assert_eq!(tokens(&t, "한", SpecialTokens::AsText), ["íķľ"]);
    assert!(t.encode("", SpecialTokens::Parse).unwrap().is_empty());
}

#[test]
fn special_tokens_are_parsed_only_where_asked() {
    let t = tokenizer();
    let text = "<|start|>hello<think><|end|>";
    assert_eq!(tokens(&t, text, SpecialTokens::Parse), ["<|start|>", "hello", "<think>", "<|end|>"]);
    let as_text = t.encode(text, SpecialTokens::AsText).unwrap();
    assert!(as_text.iter().all(|&id| t.token_kind(id) == Some(TokenKind::Normal)));
    assert_eq!(t.decode(&as_text).unwrap(), text);
    // Control tokens are no part of the answer's text; user-defined ones are.
    assert_eq!(t.decode(&[1, 2, 0]).unwrap(), "<think>");
    assert_eq!(t.token(1), Some("<|start|>"));
    assert!(t.end_tokens().eq([0]));
}

#[test]
fn the_begin_token_is_added_once() {
    let mut source = byte_vocabulary(&[]);
    source.add_bos = Some(true);
    let t = Tokenizer::new(source).unwrap();
    assert_eq!(t.encode_prompt("", SpecialTokens::Parse).unwrap(), [1]);
    assert_eq!(t.encode_prompt("<|start|>", SpecialTokens::Parse).unwrap(), [1]);
    assert_eq!(t.encode_prompt("<|start|>", SpecialTokens::AsText).unwrap().first(), Some(&1));
    assert!(t.encode_prompt("<|start|>", SpecialTokens::AsText).unwrap().len() > 1);
    assert!(tokenizer().encode_prompt("", SpecialTokens::Parse).unwrap().is_empty());
}

#[test]
fn bytes_without_a_token_become_the_replacement_character() {
    // U+0004 and, as in SmolLM2, the first byte of planes 4 to 7.
    let t = Tokenizer::new(byte_vocabulary(&[4, 0xF1])).unwrap();
    for (text, expected) in
        [("a\u{4}b", "a\u{FFFD}b"), ("\u{40000}", "\u{FFFD}"), ("\u{5}\u{4}", "\u{5}\u{FFFD}")]
    {
        let ids = t.encode(text, SpecialTokens::AsText).unwrap();
        assert_eq!(t.decode(&ids).unwrap(), expected);
        assert!(ids.iter().all(|&id| t.token_kind(id) == Some(TokenKind::Normal)));
    }

    // The replacement itself cannot be written: an error that names the byte.
    let t = Tokenizer::new(byte_vocabulary(&[4, 0xBF])).unwrap();
    let error = t.encode("a\u{4}", SpecialTokens::AsText).unwrap_err();
    assert!(matches!(error, TextError::Unencodable { character: '\u{4}', byte: 4 }), "{error}");
}

#[test]
fn ids_outside_the_vocabulary_are_errors() {
    let t = tokenizer();
    let size = t.vocab_size() as u32;
    for id in [size, u32::MAX] {
        let error = t.decode(&[id]).unwrap_err();
        assert!(matches!(error, TextError::UnknownToken { .. }), "{error}");
        assert!(t.stream_decoder().push(id).is_err());
        assert_eq!((t.token(id), t.token_kind(id)), (None, None));
    }
}

#[test]
fn every_pre_tokenizer_name_builds_and_others_are_named() {
    for (name, _) in PreTokenizer::NAMES {
        let mut source = byte_vocabulary(&[]);
        source.pre = Some((*name).into());
        let t = Tokenizer::new(source).unwrap();
        let text = "It's 2024,\r\n\r\n  hello   한국어 e\u{301}! ";
        let decoded = t.decode(&t.encode(text, SpecialTokens::AsText).unwrap()).unwrap();
        let normalised = text.replace("e\u{301}", "é");
        assert_eq!(decoded, if *name == "qwen2" { normalised.as_str() } else { text });
    }
    let mut source = byte_vocabulary(&[]);
    source.pre = Some("klingon".into());
    let message = Tokenizer::new(source).unwrap_err().to_string();
    assert!(
        message.contains("klingon") && message.contains("smollm") && message.contains("qwen2"),
        "{message}"
    );
}

#[test]
fn pre_tokenizers_differ_where_they_should() {
    let split = |pre: &str, text: &str| {
        let mut source = byte_vocabulary(&[]);
        source.pre = Some(pre.into());
        // Merges that join digits, and a letter with a sign, wherever the words allow it.
        for (left, right) in [("1", "2"), ("12", "3"), ("123", "4"), ("!", "h"), ("!h", "e")] {
            source.merges.insert(0, format!("{left} {right}"));
            source.tokens.push([left, right].concat());
            source.token_types.push(1);
        }
        source.merges.sort_by_key(|merge| merge.contains("he"));
        tokens(&Tokenizer::new(source).unwrap(), text, SpecialTokens::AsText)
    };
    assert_eq!(split("gpt-2", "1234"), ["1234"]);
    assert_eq!(split("smollm", "1234"), ["1", "2", "3", "4"]);
    assert_eq!(split("qwen2", "1234"), ["1", "2", "3", "4"]);
    assert_eq!(split("llama-bpe", "1234"), ["123", "4"]);
    assert_eq!(split("gpt-2", "!he"), ["!", "he"]);
    assert_eq!(split("llama-bpe", "!he"), ["!he"]);
}

#[test]
fn wrong_vocabularies_are_refused_by_name() {
    use VocabularyFault as F;
    let with = |change: &dyn Fn(&mut VocabularySource)| {
        let mut source = byte_vocabulary(&[]);
        change(&mut source);
        fault(source)
    };
    assert!(matches!(fault(VocabularySource::new("gpt2", vec![])), F::Empty));
    assert!(matches!(
        with(&|s| s.tokens[9] = s.tokens[8].clone()),
        F::DuplicateToken { first: 8, second: 9, .. }
    ));
    assert!(matches!(with(&|s| s.tokens[0].clear()), F::EmptySpecialToken { id: 0 }));
    assert!(matches!(with(&|s| s.tokens[7] = "x".repeat(5000)), F::TokenTooLong { id: 7, .. }));
    assert!(matches!(
        with(&|s| s.token_types.truncate(5)),
        F::LengthMismatch { what: "token types", found: 5, .. }
    ));
    assert!(matches!(with(&|s| s.scores = vec![0.0]), F::LengthMismatch { what: "scores", .. }));
    assert!(matches!(with(&|s| s.token_types[5] = -1), F::TokenType { id: 5, found: -1 }));
    assert!(matches!(with(&|s| s.eos = Some(u32::MAX)), F::SpecialId { what: "eos", .. }));
    for form in ["he", "", " ", "h  e", " he", "h e l"] {
        assert!(matches!(with(&|s| s.merges[1] = form.into()), F::MergeForm { rank: 1, .. }), "{form:?}");
    }
    assert!(matches!(with(&|s| s.merges.push("h zz".into())), F::MergeToken { .. }));
    assert!(matches!(with(&|s| s.merges.push("h h".into())), F::MergeToken { .. }));
    assert!(matches!(with(&|s| s.merges.push("h e".into())), F::DuplicateMerge { rank: 10, .. }));

    let mut other = byte_vocabulary(&[]);
    other.model = "t5".into();
    let message = Tokenizer::new(other).unwrap_err().to_string();
    assert!(message.contains("t5") && message.contains("gpt2, llama"), "{message}");
}

#[test]
fn a_hostile_name_is_shown_short_and_escaped() {
    let mut source = byte_vocabulary(&[]);
    source.pre = Some("\u{1b}[31m\n".repeat(100_000));
    let message = Tokenizer::new(source).unwrap_err().to_string();
    assert!(message.len() < 2000 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn too_many_tokens_are_refused() {
    // Empty strings take no memory of their own; the limit is checked before anything else is made.
    let source = VocabularySource::new("gpt2", vec![String::new(); (1 << 22) + 1]);
    assert!(matches!(fault(source), VocabularyFault::TooMany { what: "tokens", .. }));
}

/// `<s>`, `</s>`, `<unk>`, 256 byte tokens, then pieces with their scores.
fn sentence_piece() -> VocabularySource {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).to_vec();
    tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    let pieces = ["▁", "h", "e", "l", "o", "he", "ll", "▁he", "▁hell", "▁hello", "lo", "한"];
    let first = tokens.len();
    tokens.extend(pieces.map(String::from));
    let mut source = VocabularySource::new("llama", tokens);
    source.scores = (0..source.tokens.len()).map(|id| first as f32 - id as f32).collect();
    source.token_types = (0..source.tokens.len())
        .map(|id| match id {
            0 => 2,
            1 | 2 => 3,
            _ if id < first => 6,
            _ => 1,
        })
        .collect();
    (source.unk, source.bos, source.eos) = (Some(0), Some(1), Some(2));
    source
}

#[test]
fn sentence_pieces_join_by_score_and_fall_back_to_bytes() {
    let t = Tokenizer::new(sentence_piece()).unwrap();
    assert_eq!(tokens(&t, "hello", SpecialTokens::AsText), ["▁hello"]);
    // "ll" has the better score than "lo", so "lo" is not made.
    assert_eq!(tokens(&t, "llo", SpecialTokens::AsText), ["▁", "ll", "o"]);
    assert_eq!(tokens(&t, "한글", SpecialTokens::AsText), ["▁", "한", "<0xEA>", "<0xB8>", "<0x80>"]);
    assert_eq!(tokens(&t, "<s>h", SpecialTokens::Parse), ["<s>", "▁", "h"]);
    for text in ["hello hello", "  two", "한글 🙂", "a\tb\n"] {
        let ids = t.encode_prompt(text, SpecialTokens::AsText).unwrap();
        assert_eq!(ids[0], 1);
        assert_eq!(t.decode(&ids).unwrap(), text);
    }
}

/// As Gemma's files have it: no space before a text, and runs of white space as user-defined tokens.
#[test]
fn user_defined_white_space_is_whole_in_every_text() {
    let (control, user_defined) = (3, 4);
    for spaces in ["  ", "▁▁"] {
        let mut source = sentence_piece();
        source.add_space_prefix = Some(false);
        let first = source.tokens.len() as u32;
        let more = ["\n", "\n\n", "\n\n\n", "\t\t", spaces, "<b>", "\n<b>", "<turn>"];
        source.tokens.extend(more.map(String::from));
        source.scores.resize(source.tokens.len(), 0.0);
        source.token_types.resize(source.tokens.len(), user_defined);
        *source.token_types.last_mut().unwrap() = control;
        let t = Tokenizer::new(source).unwrap();
        let id = |place: u32| first + place;
        let [h, he] = ["h", "he"].map(|token| t.token_id(token).unwrap());

        let text = "he\n\nh\n\n\n\n\n  h\t\the\n";
        let ids = [he, id(1), h, id(2), id(1), id(4), h, id(3), he, id(0)];
        for special in [SpecialTokens::AsText, SpecialTokens::Parse] {
            assert_eq!(t.encode(text, special).unwrap(), ids, "{spaces:?} {special:?}");
        }
        assert_eq!(t.decode(&ids).unwrap(), text, "{spaces:?}");
        assert_eq!(t.encode_prompt(text, SpecialTokens::AsText).unwrap()[1..], ids);
        let template = ChatTemplate::new("{{ messages[0].content }}").unwrap();
        let input = ChatInput::new(vec![ChatMessage::new("user", text)]);
        assert_eq!(encode_chat(&t, &template, &input).unwrap()[1..], ids, "{spaces:?}");

        // Nothing else is found in text from outside, not even where it begins with white space.
        let text = "\n<b>h<turn><b>";
        assert_eq!(t.encode(text, SpecialTokens::Parse).unwrap(), [id(6), h, id(7), id(5)]);
        let as_text = t.encode(text, SpecialTokens::AsText).unwrap();
        assert_eq!(as_text[0], id(0));
        assert!(as_text[1..].iter().all(|&id| !t.token_kind(id).unwrap().is_added()), "{as_text:?}");
        assert_eq!(t.decode(&as_text).unwrap(), text);
    }
    // A byte-level vocabulary may have them too.
    let mut source = byte_vocabulary(&[]);
    source.tokens.push("    ".into());
    source.token_types.push(user_defined);
    let t = Tokenizer::new(source).unwrap();
    assert_eq!(tokens(&t, "h     h", SpecialTokens::AsText), ["h", "    ", "Ġ", "h"]);
}

#[test]
fn end_tokens_outside_the_vocabulary_do_no_harm() {
    let t = tokenizer();
    let beyond = t.vocab_size() as u32;
    let t = t.with_end_tokens([beyond, u32::MAX]);
    assert!(t.end_tokens().eq([0, beyond, u32::MAX]));
    assert_eq!((t.token(beyond), t.token_kind(u32::MAX)), (None, None));
    let ids = t.encode("hello<|end|>", SpecialTokens::Parse).unwrap();
    assert_eq!(t.decode(&ids).unwrap(), "hello");
}

#[test]
fn sentence_piece_vocabularies_are_checked() {
    let mut source = sentence_piece();
    source.scores[5] = f32::NAN;
    assert!(matches!(fault(source), VocabularyFault::Score { id: 5, .. }));
    let mut source = sentence_piece();
    source.scores.clear();
    assert!(matches!(fault(source), VocabularyFault::LengthMismatch { what: "scores", .. }));
    let mut source = sentence_piece();
    (source.unk, source.tokens[10]) = (None, "gap".into());
    assert!(matches!(fault(source), VocabularyFault::NoByteFallback));
}

#[test]
fn very_long_runs_are_cut_as_short_ones_are() {
    // A regular expression that gives up half way would leave the rest of the text in one word.
    let t = tokenizer();
    for unit in [" ", "a", "\n", "한", "1", "'", "\u{301}"] {
        let text = unit.repeat(300_000) + " hello 12";
        let ids = t.encode(&text, SpecialTokens::AsText).unwrap();
        assert_eq!(t.decode(&ids).unwrap(), text);
        let tail: Vec<_> = ids[ids.len() - 5..].iter().map(|&id| t.token(id).unwrap()).collect();
        assert_eq!(tail, ["Ġ", "hello", "Ġ", "1", "2"], "{unit:?}");
    }
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(text in ".{0,60}|[<|>a-z한🙂\u{200d}\u{0}-\u{1f} ]{0,60}") {
        for t in [tokenizer(), Tokenizer::new(sentence_piece()).unwrap()] {
            let ids = t.encode(&text, SpecialTokens::AsText).unwrap();
            prop_assert_eq!(t.decode(&ids).unwrap(), &*text);
            let parsed = t.encode(&text, SpecialTokens::Parse).unwrap();
            prop_assert!(parsed.iter().all(|&id| (id as usize) < t.vocab_size()));
        }
    }

    #[test]
    fn any_vocabulary_is_an_error_or_works(
        model in prop::sample::select(vec!["gpt2", "llama", "bert", ""]),
        tokens in prop::collection::vec(".{0,3}", 0..40),
        merges in prop::collection::vec(".{0,3} ?.{0,3}", 0..10),
        scores in prop::collection::vec(any::<f32>(), 0..40),
        types in prop::collection::vec(-1i32..8, 0..40),
        unk in proptest::option::of(0u32..50),
        text in ".{0,20}",
    ) {
        let mut source = VocabularySource::new(model, tokens);
        (source.merges, source.scores, source.token_types, source.unk) = (merges, scores, types, unk);
        if let Ok(tokenizer) = Tokenizer::new(source)
            && let Ok(ids) = tokenizer.encode(&text, SpecialTokens::Parse)
        {
            tokenizer.decode(&ids).unwrap();
        }
    }
}
