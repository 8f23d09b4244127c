//! The program with the default model, from the cache of whoever runs the tests. Without it these tests fail with the
//! command that fetches it.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use halite_engine::store::{self, Cache, DEFAULT_MODEL};
use std::io::Read;
use std::process::{Command, Stdio};
use support::{Place, halite, json, shown};

/// The default model's file, which the program must find too.
fn fetched() -> String {
    let path = Cache::open(None).and_then(|cache| store::cached(DEFAULT_MODEL, &cache));
    shown(&path.unwrap_or_else(|error| panic!("{error} (here: cargo run --release -- pull {DEFAULT_MODEL})")))
}

#[test]
fn the_capital_of_france() {
    fetched();
    let outcome = halite(&["run", "What is the capital of France?"]);
    for part in ["prompt 37 tokens", "tokens/s", "first token after", "w8a8 on cpu"] {
        assert!(outcome.stderr.contains(part), "{outcome:?}");
    }
    assert!(outcome.success().contains("Paris"));
}

#[test]
fn every_tier_knows_the_capital_of_france() {
    fetched();
    for tier in halite_cpu::Tier::available() {
        let run = ["run", "--weights", "bf16", "--tier", tier.name(), "What is the capital of France?"];
        assert_eq!(halite(&run).success(), "The capital of France is Paris.\n", "{tier}");
    }
}

#[test]
fn pull_prints_the_path_of_what_is_there() {
    let file = fetched();
    assert_eq!(halite(&["pull"]).success(), format!("{file}\n"));
    assert_eq!(halite(&["pull", DEFAULT_MODEL]).success(), format!("{file}\n"));
}

#[test]
fn a_path_answers_as_the_name_does() {
    let file = fetched();
    let run = |model: &str| halite(&["run", "-m", model, "--raw", "-n", "8", "The sky is"]).success();
    assert_eq!(run(DEFAULT_MODEL), run(&file));
}

#[test]
fn perplexity_agrees_with_the_golden_run() {
    fetched();
    let golden = json(include_str!("../../engine/tests/fixtures/golden/smollm2-135m-f32.json"));
    let windows = golden["windows"].as_array().unwrap();
    let lines: String = windows.iter().map(|window| format!("{}\n", window["token_ids"])).collect();
    let place = Place::new();
    let tokens = place.file("tokens.jsonl", lines);
    let eval = [
        "eval",
        "perplexity",
        DEFAULT_MODEL,
        "--tokens",
        &tokens,
        "--weights",
        "f32",
        "--per-token",
        "--json",
    ];
    let report = json(&halite(&eval).success());
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(lines.len(), windows.len());
    for (scored, window) in lines.iter().zip(windows) {
        let (got, expected) = (scored["mean_nll"].as_f64().unwrap(), window["mean_nll"].as_f64().unwrap());
        assert!((got - expected).abs() < 0.001, "window {}: {got}, expected {expected}", window["window"]);
        let nll = |report: &serde_json::Value| -> Vec<f64> {
            report["nll"].as_array().unwrap().iter().map(|nll| nll.as_f64().unwrap()).collect()
        };
        let (got, expected) = (nll(scored), nll(window));
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(&expected).all(|(got, expected)| (got - expected).abs() < 0.05));
    }
}

#[test]
fn streamed_text_comes_before_the_end() {
    fetched();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("halite"));
    command.args([
        "run",
        "-n",
        "4000",
        "--context",
        "8000",
        "--temperature",
        "1.5",
        "Tell me a very long story",
    ]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 8]).unwrap();
    // Thousands of tokens are still to come.
    assert_eq!(child.try_wait().unwrap(), None);
    drop(stdout);
    assert!(child.wait().unwrap().success());
}
