//! `halite bench model` on a tiny model.

mod support;

use support::{Place, json};

const CASE: [&str; 8] = ["--prompt", "20", "--generate", "5", "--threads", "2", "--runs", "3"];

#[test]
fn json_has_the_medians_and_what_they_are_of() {
    let place = Place::new();
    let model = place.model();
    for (batch, weights) in [("1", "w8a8"), ("4", "f32")] {
        let more = ["--batch", batch, "--weights", weights, "--json"];
        let report = json(&place.halite(&[&["bench", "model", &model][..], &CASE, &more].concat()).success());
        assert_eq!(report["model"], model.as_str());
        assert_eq!(report["weights"], weights);
        assert_eq!(report["backend"], "cpu");
        assert_eq!(report["tier"], halite_cpu::Tier::best().name());
        for (key, value) in [("threads", 2), ("prompt", 20), ("generate", 5), ("runs", 3)] {
            assert_eq!(report[key], value, "{key}");
        }
        assert_eq!(report["batch"].to_string(), batch);
        for key in ["prefill_tokens_per_s", "decode_tokens_per_s"] {
            let figure = |suffix: &str| report[format!("{key}{suffix}")].as_f64().unwrap();
            let (min, median, max) = (figure("_min"), figure(""), figure("_max"));
            assert!(0.0 < min && min <= median && median <= max && max.is_finite(), "{report}");
        }
    }
}

#[test]
fn the_table_has_both_rows() {
    let place = Place::new();
    let model = place.model();
    let table = place.halite(&[&["bench", "model", &model][..], &CASE].concat()).success();
    let first_words: Vec<_> = table.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first_words[1..], ["tokens/s", "prefill", "decode"]);
    assert!(table.contains("w8a8 on cpu"), "{table}");
}

#[test]
fn attention_in_int8_chooses_its_cache_and_refuses_others() {
    let place = Place::new();
    let model = place.model();
    for arithmetic in ["int8", "int8-values"] {
        let bench = [&["bench", "model", &model, "--json", "--attention", arithmetic][..], &CASE].concat();
        assert_eq!(json(&place.halite(&bench).success())["kv"], "int8");
        let bench = ["bench", "model", &model, "--attention", arithmetic, "--kv", "f16"];
        place.halite(&bench).failure(&["INT8 keys and values", "f16"]);
    }
}

#[test]
fn caches_are_flushed_where_that_is_asked() {
    let place = Place::new();
    let model = place.model();
    for mib in ["0", "3"] {
        let bench = [&["bench", "model", &model, "--json", "--flush", mib][..], &CASE].concat();
        let report = json(&place.halite(&bench).success());
        assert_eq!(report["flush_mib"].to_string(), mib);
        assert!(report["decode_tokens_per_s"].as_f64().unwrap() > 0.0, "{report}");
    }
    let everything = usize::MAX.to_string();
    let bench = [&["bench", "model", &model, "--flush", &everything][..], &CASE].concat();
    place.halite(&bench).failure(&["--flush", "no memory"]);
}

#[test]
fn one_run_is_no_runs() {
    let place = Place::new();
    let model = place.model();
    for (runs, words) in [("1", " 1 run\n"), ("2", " 2 runs\n")] {
        let bench = ["bench", "model", &model, "--prompt", "4", "--generate", "2", "--runs", runs];
        let table = place.halite(&bench).success();
        assert!(table.contains(words), "{table}");
    }
}

#[test]
fn more_than_the_context_is_refused() {
    let place = Place::new();
    let model = place.model();
    let bench = ["bench", "model", &model, "--prompt", "250", "--generate", "250"];
    place.halite(&bench).failure(&["--prompt 250", "--generate 250", "context", "256", "501"]);
    let huge = usize::MAX.to_string();
    place.halite(&["bench", "model", &model, "--prompt", &huge]).failure(&["context", "256"]);
    place.halite(&["bench", "model", &model, "--prompt", "8", "--batch", &huge]).failure(&["at most"]);
}
