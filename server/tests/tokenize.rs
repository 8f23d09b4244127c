//! `halite tokenize` on a tiny model: `!` is the token 0, and so on.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use std::io::Write;
use std::process::Stdio;
use support::tiny_model::{VOCABULARY, Value};
use support::{Place, json, model};

#[test]
fn ids_come_as_one_array_a_text() {
    let place = Place::new();
    let model = place.model();
    let tokenize = |more: &[&str]| place.halite(&[&["tokenize", "-m", &model], more].concat()).success();
    assert_eq!(tokenize(&["AB"]), "[32,33]\n");
    let file = place.file("text", "AB\n\nC\r\n");
    assert_eq!(tokenize(&["--lines", "--file", &file]), "[32,33]\n[34]\n");
    let end = VOCABULARY - 1;
    assert_eq!(tokenize(&["--special", "A<end>"]), format!("[32,{end}]\n"));
    let report = json(&tokenize(&["--special", "--json", "A<end>"]));
    assert_eq!(report, json(&format!(r#"[{{"ids": [32, {end}], "pieces": ["A", "<end>"]}}]"#)));
}

#[test]
fn a_dash_reads_standard_input() {
    let place = Place::new();
    let mut command = place.command(&["tokenize", "-m", &place.model(), "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"CBA").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"[34,33,32]\n");
}

#[test]
fn a_prompt_begins_as_the_model_wants_it() {
    let place = Place::new();
    let mut model = model();
    model.set("tokenizer.ggml.bos_token_id", Value::U32(VOCABULARY as u32 - 1));
    model.keys.insert("tokenizer.ggml.add_bos_token".to_owned(), Value::Bool(true));
    let file = place.file("bos.gguf", model.bytes());
    assert_eq!(place.halite(&["tokenize", "-m", &file, "A"]).success(), format!("[{},32]\n", VOCABULARY - 1));
}

#[test]
fn perplexity_reads_what_tokenize_writes() {
    let place = Place::new();
    let model = place.model();
    let text = place.file("text", "ABCDE\nFGH\n");
    let ids = place.halite(&["tokenize", "-m", &model, "--lines", "-f", &text]).success();
    let tokens = place.file("tokens.jsonl", ids);
    let report =
        json(&place.halite(&["eval", "perplexity", &model, "--tokens", &tokens, "--json"]).success());
    assert_eq!(report["predicted_tokens"], 6);
    let lines = report["lines"].as_array().unwrap();
    let of = |line: usize| lines[line]["mean_nll"].as_f64().unwrap();
    let mean = report["mean_nll"].as_f64().unwrap();
    assert!((mean - (4.0 * of(0) + 2.0 * of(1)) / 6.0).abs() < 1e-9);
    assert!((report["perplexity"].as_f64().unwrap() - mean.exp()).abs() < 1e-9 * mean.exp());
}

#[test]
fn what_cannot_be_tokenized_is_named() {
    let place = Place::new();
    let model = place.model();
    place.halite(&["tokenize", "-m", &model, ""]).failure(&["the text is empty"]);
    place.halite(&["tokenize", "-m", &model, "é"]).failure(&["no token for byte"]);
    place.halite(&["tokenize", "-m", &model, "-f", "/nowhere"]).failure(&["/nowhere"]);
    let latin = place.file("latin", b"A\xe9");
    place.halite(&["tokenize", "-m", &model, "-f", &latin]).failure(&["not UTF-8", &latin]);
    place.halite(&["tokenize", "-m", &model]).usage(&["TEXT"]);
    place.halite(&["tokenize", "-m", &model, "-f", &latin, "A"]).usage(&["--file"]);
}

#[test]
fn folders_are_models_too() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/fixtures/models/llama2");
    let report =
        json(&place.halite(&["tokenize", "-m", folder, "--json", "--special", "한 A<end>"]).success());
    let pieces = report[0]["pieces"].as_array().unwrap();
    assert_eq!(pieces.last().unwrap(), "<end>");
    let ids = place.halite(&["tokenize", "-m", folder, "--special", "한 A<end>"]).success();
    assert_eq!(json(&ids), report[0]["ids"]);
    // What the scorer reads.
    let tokens = place.file("tokens", ids);
    place.halite(&["eval", "perplexity", folder, "--tokens", &tokens]).success();
}
