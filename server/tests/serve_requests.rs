//! The request parser on bytes that no client would send: it refuses or accepts, and what it accepts is within bounds.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

#[path = "../../engine/tests/support/tiny_model.rs"]
#[allow(dead_code, reason = "only its random numbers are used here")]
mod tiny_model;

use halite_server::serve::ApiError;
use halite_server::serve::request::{CompletionPrompt, Generation, parse_chat, parse_completion};
use tiny_model::Random;

const CHAT: &str = r#"{"model": "m", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content":
    [{"type": "text", "text": "é\ud83d\ude00"}]}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1",
    "type": "function", "function": {"name": "f", "arguments": "{\"x\": [1, 2.5e3, null]}"}}]}, {"role": "tool",
    "tool_call_id": "1", "content": "T"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "tool_choice": "auto", "n": 2, "max_tokens": 5, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1,
    "seed": -3, "stop": ["a", "b"], "stream": true, "stream_options": {"include_usage": true}, "user": "u",
    "response_format": {"type": "text"}, "logit_bias": {}, "chat_template_kwargs": {"enable_thinking": false}}"#;

const COMPLETION: &str = r#"{"model": "m", "prompt": [[1, 2, 3], "text", [4294967295]], "echo": true, "n": 3,
    "max_completion_tokens": 9007199254740993, "stop": "x", "seed": 18446744073709551615, "best_of": 3}"#;

fn bounded(generation: &Generation, prompts: usize) {
    let Generation { n, max_tokens, stop, temperature, top_p, min_p, .. } = generation;
    assert!((1..=64).contains(&(n * prompts)));
    assert!(max_tokens.is_none_or(|tokens| tokens > 0));
    assert!(stop.len() <= 16 && stop.iter().all(|stop| (1..=512).contains(&stop.len())));
    assert!(temperature.is_none_or(|t| (0.0..=2.0).contains(&t)));
    assert!(top_p.is_none_or(|p| (0.0..=1.0).contains(&p)) && min_p.is_none_or(|p| (0.0..=1.0).contains(&p)));
}

fn refused(error: &ApiError) {
    assert_eq!(error.status, 400);
    assert!(error.body().to_string().len() < 20_000);
}

/// Both parsers hold what they promise; whether either accepted it.
fn holds(bytes: &[u8]) -> bool {
    let chat = parse_chat(bytes);
    match &chat {
        Ok(request) => {
            bounded(&request.generation, 1);
            assert!(!request.messages.is_empty());
            assert!(request.messages.iter().all(|message| message.content.is_string()));
        }
        Err(error) => refused(error),
    }
    let completion = parse_completion(bytes);
    match &completion {
        Ok(request) => {
            bounded(&request.generation, request.prompts.len());
            assert!(request.prompts.iter().all(|prompt| match prompt {
                CompletionPrompt::Text(text) => !text.is_empty(),
                CompletionPrompt::Tokens(ids) => !ids.is_empty(),
                _ => false,
            }));
        }
        Err(error) => refused(error),
    }
    chat.is_ok() || completion.is_ok()
}

#[test]
fn whole_requests_are_read_whole() {
    let chat = parse_chat(CHAT.as_bytes()).unwrap();
    assert_eq!(chat.messages.len(), 4);
    assert_eq!(chat.messages[1].content, "é😀");
    assert_eq!(chat.messages[2].fields["tool_calls"][0]["function"]["arguments"]["x"][1], 2500.0);
    assert_eq!(chat.generation.seed, Some(3_u64.wrapping_neg()));
    assert!(chat.tools.is_some() && chat.generation.stream.unwrap().include_usage);
    let completion = parse_completion(COMPLETION.as_bytes()).unwrap();
    assert_eq!(completion.prompts[2], CompletionPrompt::Tokens(vec![u32::MAX]));
    assert_eq!(completion.generation.max_tokens, Some(9_007_199_254_740_993));
    assert_eq!(completion.generation.seed, Some(u64::MAX));
}

#[test]
fn every_beginning_of_a_request_is_refused() {
    for text in [CHAT, COMPLETION] {
        for end in 0..text.len() {
            assert!(!holds(&text.as_bytes()[..end]), "{end}");
        }
    }
}

#[test]
fn changed_bytes_are_refused_or_within_bounds() {
    let seed = 7;
    let mut random = Random(seed);
    let pieces = [
        "null",
        "-1",
        "1e400",
        "[]",
        "{}",
        "\"",
        "\\u0000",
        "[[[[",
        "\"\"",
        "18446744073709551616",
        ",",
        "\u{FDD0}",
    ];
    let mut accepted = 0;
    for _ in 0..30_000 {
        let mut below = |limit: usize| random.bits() as usize % limit;
        let mut bytes = [CHAT, COMPLETION][below(2)].as_bytes().to_vec();
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            match below(4) {
                0 => bytes[at] = below(256) as u8,
                1 => drop(bytes.drain(at..(at + below(12)).min(bytes.len()))),
                2 => {
                    let piece = pieces[below(pieces.len())].as_bytes();
                    bytes.splice(at..at, piece.iter().copied());
                }
                // A value where there was another.
                _ => {
                    let end = at + bytes[at..].iter().position(|byte| b",]}".contains(byte)).unwrap_or(0);
                    let piece = pieces[below(pieces.len())].as_bytes();
                    bytes.splice(at..end, piece.iter().copied());
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        accepted += usize::from(holds(&bytes));
    }
    assert!(accepted > 100, "too few are still requests: {accepted}");
}
