//! Tokenizers and chat templates of published models, against the Python packages `tokenizers` and `transformers`.
//!
//! `tests/peers/texts.py` makes what is expected here; `cargo xtask setup` fetches the tokenizers and runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use halite_engine::text::{
    ChatInput, ChatMessage, ChatTemplate, FolderTexts, SpecialTokens, TextError, TokenKind, Tokenizer,
    TokenizerFiles, encode_chat, read_folder,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

const NAMES: [&str; 3] = ["qwen3", "llama3", "deepseek_v3"];

#[derive(Deserialize)]
struct Ids {
    /// `encode(text, add_special_tokens=False)`.
    ids: Vec<u32>,
    /// The same without any added token.
    as_text: Vec<u32>,
    /// `decode(ids, skip_special_tokens=True)`.
    decoded: String,
    /// `encode(text, add_special_tokens=True)`, by the tokenizer's file alone.
    prompt: Vec<u32>,
    /// The same by `transformers`, which reads the configuration too.
    framed: Vec<u32>,
}

#[derive(Deserialize)]
struct Chat {
    name: String,
    messages: Vec<Map<String, Value>>,
    tools: Option<Value>,
    add_generation_prompt: bool,
    #[serde(default)]
    variables: Map<String, Value>,
    expected: Outcome,
    ids: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct Templates {
    messages: Vec<Map<String, Value>>,
    tools: Value,
    now: u64,
    cases: Vec<TemplateCase>,
}

#[derive(Deserialize)]
struct TemplateCase {
    template: String,
    expected: Outcome,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Text(String),
    Refused(String),
    #[allow(dead_code, reason = "shown where a test fails")]
    Failed(String),
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers")
}

fn expected<T: DeserializeOwned>(file: &str) -> T {
    let path = peers().join("expected").join(file);
    let json =
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; run `cargo xtask setup`", path.display()));
    serde_json::from_slice(&json)
        .unwrap_or_else(|e| panic!("{}: {e}; run `cargo xtask setup`", path.display()))
}

fn folder(name: &str) -> FolderTexts {
    let path = peers().join("tokenizers").join(name);
    read_folder(&path).unwrap_or_else(|e| panic!("{}: {e}; run `cargo xtask setup`", path.display()))
}

fn messages(objects: &[Map<String, Value>]) -> Vec<ChatMessage> {
    let message = |object: &Map<String, Value>| {
        let mut fields = object.clone();
        let role = fields.remove("role").unwrap();
        let mut message = ChatMessage::new(role.as_str().unwrap(), "");
        message.content = fields.remove("content").unwrap();
        message.fields = fields;
        message
    };
    objects.iter().map(message).collect()
}

/// Compares what a template did with what Python did.
fn check(what: &str, found: Result<String, TextError>, expected: &Outcome) {
    match (found, expected) {
        (Ok(found), Outcome::Text(text)) => assert_eq!(&found, text, "{what}"),
        (Err(TextError::TemplateRefused { message }), Outcome::Refused(text)) => {
            assert_eq!(&message, text, "{what}");
        }
        (Err(TextError::Template { .. }), Outcome::Failed(_)) => {}
        (found, expected) => panic!("{what}: expected {expected:?}, got {found:?}"),
    }
}

#[test]
fn ids_and_texts_of_a_thousand_strings() {
    let strings: Vec<String> = expected("strings.json");
    assert_eq!(strings.len(), 1000);
    for name in NAMES {
        let tokenizer = folder(name).tokenizer;
        let file = std::fs::read(peers().join("tokenizers").join(name).join("tokenizer.json")).unwrap();
        let alone = Tokenizer::from_files(TokenizerFiles::new(&file)).unwrap();
        let cases: Vec<Ids> = expected(&format!("{name}/ids.json"));
        assert_eq!(cases.len(), strings.len());
        for (text, case) in strings.iter().zip(&cases) {
            let what = format!("{name}: {text:?}");
            assert_eq!(tokenizer.encode(text, SpecialTokens::Parse).unwrap(), case.ids, "{what}");
            let as_text = tokenizer.encode(text, SpecialTokens::AsText).unwrap();
            assert_eq!(as_text, case.as_text, "{what} as text");
            assert!(as_text.iter().all(|&id| tokenizer.token_kind(id) != Some(TokenKind::Control)), "{what}");
            assert_eq!(alone.encode_prompt(text, SpecialTokens::Parse).unwrap(), case.prompt, "{what}");
            assert_eq!(tokenizer.encode_prompt(text, SpecialTokens::Parse).unwrap(), case.framed, "{what}");

            assert_eq!(tokenizer.decode(&case.ids).unwrap(), case.decoded, "{what} decoded");
            let mut decoder = tokenizer.stream_decoder();
            let mut streamed: String = case.ids.iter().map(|&id| decoder.push(id).unwrap()).collect();
            streamed += &decoder.finish();
            assert_eq!(streamed, case.decoded, "{what} streamed");
        }
    }
}

#[test]
fn chats_of_published_templates() {
    for name in NAMES {
        let FolderTexts { tokenizer, template, .. } = folder(name);
        let template = template.unwrap();
        let text = |id: Option<u32>| id.and_then(|id| tokenizer.token(id)).unwrap_or_default().to_owned();
        for case in expected::<Vec<Chat>>(&format!("{name}/chats.json")) {
            let what = format!("{name}: {}", case.name);
            let mut input = ChatInput::new(messages(&case.messages));
            (input.bos_token, input.eos_token) = (text(tokenizer.bos()), text(tokenizer.eos()));
            input.tools = case.tools;
            input.add_generation_prompt = case.add_generation_prompt;
            input.variables = case.variables;
            let rendered = template.render(&input);
            if matches!(case.expected, Outcome::Failed(_)) {
                // Python drops `"content": null` before its template runs, which then fails to add to it.
                assert!(case.messages[1]["content"].is_null() && rendered.is_ok(), "{what}: {rendered:?}");
                continue;
            }
            check(&what, rendered, &case.expected);
            if let Some(ids) = case.ids {
                assert_eq!(encode_chat(&tokenizer, &template, &input).unwrap(), ids, "{what}");
            }
        }
    }
}

#[test]
fn no_message_forges_a_token() {
    for name in NAMES {
        let FolderTexts { tokenizer, template, .. } = folder(name);
        let kind = |id: u32| tokenizer.token_kind(id);
        let added =
            (0..tokenizer.vocab_size() as u32).filter(|&id| kind(id).is_some_and(TokenKind::is_added));
        let attack: String = added.map(|id| tokenizer.token(id).unwrap()).collect();
        let added_in_chat = |content: &str| -> Vec<u32> {
            let message = |role| ChatMessage::new(role, content);
            let messages = vec![message("system"), message("user"), message("tool")];
            let ids = encode_chat(&tokenizer, template.as_ref().unwrap(), &ChatInput::new(messages)).unwrap();
            ids.into_iter().filter(|&id| kind(id).is_some_and(TokenKind::is_added)).collect()
        };
        assert!(attack.len() > 300);
        assert_eq!(added_in_chat(&attack), added_in_chat("honest"), "{name}");
    }
}

#[test]
fn the_language_of_templates() {
    let Templates { messages: objects, tools, now, cases } = expected("templates.json");
    let mut input = ChatInput::new(messages(&objects));
    input.tools = Some(tools);
    (input.bos_token, input.eos_token) = ("<s>".into(), "</s>".into());
    input.now = Some(UNIX_EPOCH + Duration::from_secs(now));
    for TemplateCase { template, expected } in cases {
        let found = ChatTemplate::new(&template).and_then(|template| template.render(&input));
        check(&template, found, &expected);
    }
}
