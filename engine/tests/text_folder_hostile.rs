//! Files of model folders that are wrong or hostile: an error that says why, never a panic or endless work.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "fixtures/text/folders.rs"]
mod folders;

use folders::{changed, file, from_value, path};
use halite_engine::text::{
    SpecialTokens, TextError, TokenKind, Tokenizer, TokenizerFiles, VocabularyFault, read_folder,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn fault(found: Result<Tokenizer, TextError>) -> VocabularyFault {
    match found {
        Err(TextError::Vocabulary(fault)) => fault,
        other => panic!("expected a fault of the vocabulary, got {other:?}"),
    }
}

#[test]
fn wrong_vocabularies_are_refused_by_name() {
    use VocabularyFault as F;
    let with = |change: &dyn Fn(&mut Value)| fault(changed("plain", change));
    let added = |text: &str, id: u32| json!({"id": id, "content": text, "special": true});
    let size = read_folder(&path("plain")).unwrap().tokenizer.vocab_size() as u32;
    let push = |file: &mut Value, token: Value| file["added_tokens"].as_array_mut().unwrap().push(token);
    assert!(matches!(with(&|f| f["model"]["vocab"]["the"] = 5.into()), F::DuplicateId { id: 5, .. }));
    assert!(matches!(with(&|f| push(f, added("<x>", size + 9))), F::AddedTokenId { .. }));
    assert!(matches!(with(&|f| push(f, added("<x>", 0))), F::AddedTokenId { found: 0, .. }));
    assert!(matches!(with(&|f| push(f, added("", size))), F::EmptySpecialToken { .. }));
    assert!(matches!(with(&|f| push(f, added(&"x".repeat(600), size))), F::TokenTooLong { limit: 512, .. }));
    let with = |change: &dyn Fn(&mut Value)| {
        fault(changed("plain", |file| {
            // Without those that are numbered after the vocabulary.
            file["added_tokens"].as_array_mut().unwrap().truncate(3);
            change(file);
        }))
    };
    let long = "x".repeat(5000);
    assert!(matches!(
        with(&|f| f["model"]["vocab"][&long] = 900.into()),
        F::TokenTooLong { limit: 4096, .. }
    ));
    assert!(matches!(
        with(&|f| f["model"]["vocab"]["xyz"] = u32::MAX.into()),
        F::TooMany { what: "ids", .. }
    ));
    assert!(matches!(
        with(&|f| f["model"]["vocab"]["xyz"] = 4_000_000.into()),
        F::TooMany { what: "unused ids", .. }
    ));
    assert!(matches!(
        with(&|f| f["model"]["merges"][0] = json!(["the", "qq"])),
        F::MergeToken { rank: 0, .. }
    ));
    assert!(matches!(with(&|f| f["model"]["merges"][0] = json!("q the")), F::MergeToken { rank: 0, .. }));
    let unknown = |f: &mut Value| {
        f["model"]["unk_token"] = Value::Null;
        f["model"]["byte_fallback"] = false.into();
    };
    assert!(matches!(with(&unknown), F::NoByteFallback));
    let processor = json!({"type": "RobertaProcessing", "sep": ["</s>", 1_000_000], "cls": ["<s>", 0]});
    assert!(matches!(with(&|f| f["post_processor"] = processor.clone()), F::SpecialId { .. }));
    let empty = json!({"decoder": {"type": "ByteLevel"}, "model": {"unk_token": null, "vocab": {}},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}});
    assert!(matches!(fault(from_value(&empty, None)), F::Empty));
    let twice = br#"{"model": {"vocab": {"a": 0, "a": 1}}}"#;
    assert!(matches!(fault(Tokenizer::from_files(TokenizerFiles::new(twice))), F::DuplicateToken { .. }));

    // A hole is no token, and no end either.
    let t = changed("plain", |f| f["model"]["vocab"]["xyz"] = 600.into());
    assert!(
        matches!(fault(t), F::AddedTokenId { .. }),
        "added tokens follow the number of tokens, not the last"
    );
    let t = changed("plain", |f| {
        f["added_tokens"].as_array_mut().unwrap().truncate(3);
        f["model"]["vocab"]["xyz"] = 600.into();
    })
    .unwrap();
    assert_eq!((t.vocab_size(), t.token(599), t.token(600)), (601, None, Some("xyz")));
    assert_eq!((t.token_kind(599), t.decode(&[599]).unwrap()), (Some(TokenKind::Unused), String::new()));
}

#[test]
fn unsupported_and_malformed_parts_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Value), parts: &[&str]| {
        let message = changed("byte_level", change).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)) && message.len() < 1000, "{message}");
    };
    let unigram = json!({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0]]});
    refused(&|f| f["model"] = unigram.clone(), &["Unigram", "BPE", "GGUF"]);
    refused(&|f| f["model"]["type"] = "WordPiece".into(), &["WordPiece"]);
    refused(&|f| f["model"]["dropout"] = 0.1.into(), &["dropout"]);
    refused(&|f| f["model"]["end_of_word_suffix"] = "</w>".into(), &["suffix", "</w>"]);
    refused(&|f| f["model"]["unk_token"] = "<nope>".into(), &["unk_token", "<nope>"]);
    refused(&|f| f["model"]["merges"] = json!(["a b c"]), &["merges", "a b c"].map(|_| "space between"));
    refused(&|f| f["model"]["merges"] = json!([["a", "b", "c"]]), &["two tokens"]);
    refused(
        &|f| f["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": "AA=="}),
        &["Precompiled"],
    );
    refused(
        &|f| f["normalizer"] = json!({"type": "Prepend", "prepend": "x".repeat(100)}),
        &["normalizer", "64"],
    );
    refused(&|f| f["pre_tokenizer"] = json!({"type": "UnicodeScripts"}), &["UnicodeScripts", "Split"]);
    refused(
        &|f| f["pre_tokenizer"]["pretokenizers"][0]["pattern"] = json!({"Regex": "("}),
        &["pattern", "("],
    );
    refused(&|f| f["decoder"] = Value::Null, &["decoder"]);
    refused(
        &|f| f["decoder"] = json!({"type": "WordPiece", "prefix": "##", "cleanup": true}),
        &["WordPiece"],
    );
    let strip = json!({"type": "Strip", "content": " ", "start": 2, "stop": 0});
    refused(&|f| f["decoder"] = strip.clone(), &["decoder", "Strip"]);
    let template = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<q>"}}], "special_tokens": {}});
    refused(&|f| f["post_processor"] = template.clone(), &["post_processor", "<q>"]);
    refused(&|f| f["added_tokens"] = json!([{"id": 0}]), &["content"]);
    let many = vec![json!({"type": "Digits", "individual_digits": true}); 100];
    refused(
        &|f| f["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": many}),
        &["pre_tokenizer", "64"],
    );
    let mut deep = json!({"type": "NFC"});
    for _ in 0..200 {
        deep = json!({"type": "Sequence", "normalizers": [deep]});
    }
    refused(&|f| f["normalizer"] = deep.clone(), &["recursion"]);
    for text in ["", "null", "[]", "{}", "{\"model\": {}}", "{\"model\": {\"vocab\": 1}}", "\u{feff}{}"] {
        let error = Tokenizer::from_files(TokenizerFiles::new(text.as_bytes())).unwrap_err();
        assert!(matches!(error, TextError::File { file: "tokenizer.json", .. }), "{text}: {error}");
    }
    let config = from_value(&file("plain"), Some(&json!({"bos_token": 5}))).unwrap_err();
    assert!(matches!(config, TextError::File { file: "tokenizer_config.json", .. }), "{config}");
}

#[test]
fn hostile_patterns_and_texts_that_grow_are_errors() {
    let t = changed("byte_level", |f| {
        f["pre_tokenizer"]["pretokenizers"][0]["pattern"] = json!({"Regex": "(?:a+)+(?!a)b"});
    });
    let t = t.unwrap();
    assert_eq!(t.decode(&t.encode("aab", SpecialTokens::AsText).unwrap()).unwrap(), "aab");
    let error = t.encode(&"a".repeat(100), SpecialTokens::AsText).unwrap_err();
    assert!(matches!(error, TextError::Pattern { .. }), "{error}");

    let t = changed("plain", |f| {
        let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(60)});
        f["normalizer"] = json!({"type": "Sequence", "normalizers": vec![double; 8]});
    });
    let error = t.unwrap().encode("aa", SpecialTokens::AsText).unwrap_err();
    assert!(matches!(error, TextError::TextTooLong { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_parts_are_an_error_or_work(
        normalizers in prop::collection::vec(prop::sample::select(vec![
            json!({"type": "NFC"}), json!({"type": "NFKD"}), json!({"type": "Lowercase"}),
            json!({"type": "Strip", "strip_left": true, "strip_right": false}),
            json!({"type": "Prepend", "prepend": "▁é"}),
            json!({"type": "Replace", "pattern": {"Regex": "a*"}, "content": "é"}),
            json!({"type": "Replace", "pattern": {"Regex": "\\s+|[^a]"}, "content": ""}),
        ]), 0..4),
        steps in prop::collection::vec(prop::sample::select(vec![
            json!({"type": "Split", "pattern": {"Regex": "x*|\\b"}, "behavior": "Removed", "invert": true}),
            json!({"type": "Split", "pattern": {"Regex": "."}, "behavior": "MergedWithNext", "invert": false}),
            json!({"type": "Split", "pattern": {"String": ""}, "behavior": "Contiguous", "invert": false}),
            json!({"type": "ByteLevel", "add_prefix_space": true}),
            json!({"type": "Digits", "individual_digits": false}),
            json!({"type": "Punctuation", "behavior": "MergedWithPrevious"}),
            json!({"type": "Metaspace", "replacement": "é", "prepend_scheme": "first"}),
        ]), 0..4),
        tokens in prop::collection::vec(("[ab <>é▁]{1,3}", any::<[bool; 5]>()), 0..4),
        text in "[ab <>é▁1x\u{301}한]{0,20}|.{0,20}",
    ) {
        for kind in ["byte_level", "plain"] {
            let mut file = file(kind);
            file["normalizer"] = json!({"type": "Sequence", "normalizers": normalizers});
            file["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps});
            let added = file["added_tokens"].as_array_mut().unwrap();
            for (text, [single_word, lstrip, rstrip, normalized, special]) in &tokens {
                let id = added.last().map_or(0, |token| token["id"].as_u64().unwrap()) + 1;
                added.push(json!({"id": id, "content": text, "single_word": single_word, "lstrip": lstrip,
                    "rstrip": rstrip, "normalized": normalized, "special": special}));
            }
            let Ok(t) = from_value(&file, None) else { continue };
            for special in [SpecialTokens::Parse, SpecialTokens::AsText] {
                if let Ok(ids) = t.encode(&text, special) {
                    t.decode(&ids).unwrap();
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_an_error_or_work(at in 0usize..8000, byte in any::<u8>(), cut in any::<bool>()) {
        let mut json = std::fs::read(path("prefix").join("tokenizer.json")).unwrap();
        let at = at % json.len();
        if cut { json.truncate(at) } else { json[at] = byte }
        if let Ok(t) = Tokenizer::from_files(TokenizerFiles::new(&json)) {
            t.encode("Hello <s> 한", SpecialTokens::Parse).unwrap();
        }
    }
}
