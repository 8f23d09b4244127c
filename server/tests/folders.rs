//! Every command that takes a model, with a folder of safetensors.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use support::serving::Serving;
use support::{Outcome, Place, fixture_folder, json as parsed};

/// No answer to it ends early.
const PROMPT: &str = "hello there";
const FOLDERS: [&str; 3] = ["llama2", "gemma3", "w8a8"];

#[test]
fn run_chat_and_serve_give_the_same_answer() {
    let place = Place::new();
    for name in FOLDERS {
        let folder = fixture_folder(name);
        let answer = place.halite(&["run", "-m", &folder, "-n", "8", PROMPT]).said(&["generated 8 tokens"]);

        let mut chat = place.command(&["chat", "-m", &folder, "-n", "8"]);
        chat.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut chat = chat.spawn().unwrap();
        chat.stdin.take().unwrap().write_all(format!("{PROMPT}\n").as_bytes()).unwrap();
        let chat = Outcome::of(chat.wait_with_output().unwrap());
        assert_eq!(chat.success(), answer, "{name}");

        let server = Serving::run(place.command(&["serve", "-m", &folder]));
        assert!(server.greeting.contains(&format!("model {name}: ")), "{}", server.greeting);
        let messages = json!([{ "role": "user", "content": PROMPT }]);
        let body = json!({ "model": name, "messages": messages, "max_tokens": 8, "temperature": 0 });
        let served = server.post("/v1/chat/completions", &body).ok();
        let content = served["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(content.trim_end_matches('\n'), answer.trim_end_matches('\n'), "{name}");
    }
}

#[test]
fn tokenize_bench_and_perplexity_take_folders() {
    let place = Place::new();
    let text = place.file("text", "hello there\n");
    for name in FOLDERS {
        let folder = fixture_folder(name);
        let ids = place.halite(&["tokenize", "-m", &folder, "--lines", "--file", &text]).success();
        let tokens = place.file("tokens.jsonl", &ids);
        assert!(parsed(&ids).as_array().unwrap().len() > 2, "{name}: {ids}");

        let eval = ["eval", "perplexity", &folder, "--tokens", &tokens, "--json"];
        let report = parsed(&place.halite(&eval).success());
        assert!(report["lines"][0]["mean_nll"].as_f64().unwrap() > 0.0, "{name}: {report}");

        let bench = ["bench", "model", &folder, "--prompt", "8", "--generate", "4", "--runs", "1", "--json"];
        let report = parsed(&place.halite(&bench).success());
        assert_eq!(report["model"], folder.as_str());
        assert!(report["decode_tokens_per_s"].as_f64().unwrap() > 0.0, "{name}: {report}");
    }
}
