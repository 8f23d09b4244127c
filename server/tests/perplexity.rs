//! `halite eval perplexity` on a tiny model.

mod support;

use support::tiny_model::VOCABULARY;
use support::{CONTEXT, Place, json};

#[test]
fn every_line_is_scored_and_blank_ones_are_passed_over() {
    let place = Place::new();
    let model = place.model();
    let tokens = place.file("tokens.jsonl", "[1, 2, 3, 4]\n\n  \n[5, 6]\r\n[1, 2, 3, 4]");
    let eval = ["eval", "perplexity", &model, "--tokens", &tokens, "--json"];
    let report = json(&place.halite(&eval).success());
    let lines: Vec<_> =
        report["lines"].as_array().unwrap().iter().map(|line| (&line["line"], &line["tokens"])).collect();
    assert_eq!(lines, [(&1.into(), &4.into()), (&4.into(), &2.into()), (&5.into(), &4.into())]);
    assert!(report["lines"].as_array().unwrap().iter().all(|line| line["mean_nll"].as_f64().unwrap() > 0.0));
    assert_eq!(report["lines"][0]["mean_nll"], report["lines"][2]["mean_nll"]);
    assert!(report["lines"][0].get("nll").is_none());
}

#[test]
fn per_token_likelihoods_average_to_the_mean() {
    let place = Place::new();
    let model = place.model();
    let tokens = place.file("tokens.jsonl", "[1, 2, 3, 4, 40, 41, 42]\n");
    let eval = ["eval", "perplexity", &model, "--tokens", &tokens, "--per-token", "--weights", "f32"];
    let report = json(&place.halite(&[&eval[..], &["--json"]].concat()).success());
    let nll: Vec<f64> =
        report["lines"][0]["nll"].as_array().unwrap().iter().map(|nll| nll.as_f64().unwrap()).collect();
    assert_eq!(nll.len(), 6);
    let mean = nll.iter().sum::<f64>() / 6.0;
    assert!((mean - report["lines"][0]["mean_nll"].as_f64().unwrap()).abs() < 1e-5);

    let text = place.halite(&eval).success();
    assert!(text.contains(&format!("{mean:.5}")) && text.contains(&format!("{:.5}", nll[5])), "{text}");
    assert!(text.lines().last().unwrap().contains("perplexity"), "{text}");
}

#[test]
fn wrong_lines_are_named() {
    let place = Place::new();
    let model = place.model();
    let long = serde_json::to_string(&vec![1; CONTEXT as usize + 1]).unwrap();
    let beyond = format!("[1, {VOCABULARY}]");
    let beyond_named = format!("element 1 is {VOCABULARY}");
    for (line, part) in [
        ("hello", "not JSON"),
        ("[1, 2", "not JSON"),
        ("{}", "JSON array"),
        ("[1, -2]", "element 1 is -2"),
        ("[1, 2.5]", "element 1 is 2.5"),
        ("[]", "at least 2"),
        ("[1]", "at least 2"),
        (&*beyond, &*beyond_named),
        (&long, "257 tokens"),
    ] {
        let tokens = place.file("bad.jsonl", format!("[1, 2]\n\n{line}\n"));
        let eval = ["eval", "perplexity", &model, "--tokens", &tokens];
        place.halite(&eval).failure(&["bad.jsonl", "line 3", part]);
    }
    let tokens = place.file("long.jsonl", "[1, 2, 3, 4, 5]");
    let eval = ["eval", "perplexity", &model, "--tokens", &tokens, "--context", "4"];
    place.halite(&eval).failure(&["long.jsonl, line 1", "5 tokens", "context of 4"]);
}

#[test]
fn a_file_without_tokens_is_named() {
    let place = Place::new();
    let model = place.model();
    let empty = place.file("empty.jsonl", "\n\n");
    place.halite(&["eval", "perplexity", &model, "--tokens", &empty]).failure(&["empty.jsonl", "no tokens"]);
    let eval = ["eval", "perplexity", &model, "--tokens", "nowhere.jsonl"];
    place.halite(&eval).failure(&["nowhere.jsonl", "No such file"]);
}
