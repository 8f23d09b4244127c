//! The default model's real tokenizer and chat template, against the Python package `tokenizers`.
//!
//! `fixtures/text/make_fixtures.py` made the expected ids.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_engine::gguf::GgufFile;
use halite_engine::text::{
    ChatInput, ChatMessage, ChatTemplate, SpecialTokens, Tokenizer, VocabularySource, encode_chat,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    missing_bytes: Vec<u8>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    ids_as_text: Option<Vec<u32>>,
}

fn load() -> (Tokenizer, ChatTemplate) {
    let file = GgufFile::open(support::model_file()).unwrap();
    let tokenizer = Tokenizer::new(VocabularySource::from_gguf(file.metadata()).unwrap()).unwrap();
    (tokenizer, ChatTemplate::new(file.metadata().str("tokenizer.chat_template").unwrap()).unwrap())
}

#[test]
fn ids_equal_those_of_the_tokenizers_package() {
    let (tokenizer, _) = load();
    let fixture: Fixture =
        serde_json::from_str(include_str!("fixtures/text/default_model_ids.json")).unwrap();
    assert_eq!(fixture.cases.len(), 1000);
    assert_eq!(fixture.missing_bytes.len(), 21);
    assert_eq!(tokenizer.vocab_size(), 49_152);
    for Case { text, ids, ids_as_text } in &fixture.cases {
        assert_eq!(&tokenizer.encode(text, SpecialTokens::Parse).unwrap(), ids, "{text:?}");
        let as_text = tokenizer.encode(text, SpecialTokens::AsText).unwrap();
        assert_eq!(&as_text, ids_as_text.as_ref().unwrap_or(ids), "{text:?} as text");

        let lacks = |c: char| c.encode_utf8(&mut [0; 4]).bytes().any(|b| fixture.missing_bytes.contains(&b));
        let written: String = text.chars().map(|c| if lacks(c) { '\u{FFFD}' } else { c }).collect();
        assert_eq!(tokenizer.decode(&as_text).unwrap(), written);
        let mut decoder = tokenizer.stream_decoder();
        let mut streamed: String = as_text.iter().map(|&id| decoder.push(id).unwrap()).collect();
        streamed += &decoder.finish();
        assert_eq!(streamed, written);
    }
}

#[test]
fn the_chat_template_makes_the_prompt_the_model_was_trained_on() {
    let (tokenizer, template) = load();
    let question = "What is the capital of France?";
    let input = ChatInput::new(vec![ChatMessage::new("user", question)]);
    let expected = format!(
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
         <|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    );
    assert_eq!(template.render(&input).unwrap(), expected);
    let ids = encode_chat(&tokenizer, &template, &input).unwrap();
    assert_eq!(ids, tokenizer.encode(&expected, SpecialTokens::Parse).unwrap());
    let starts = ids.iter().filter(|&&id| Some(id) == tokenizer.bos()).count();
    assert_eq!((starts, tokenizer.token(ids[0])), (3, Some("<|im_start|>")));
    assert!(tokenizer.end_tokens().eq([0, 2]));
}
