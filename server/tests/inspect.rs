//! `halite inspect`: what models are, what they will need, and what stands in their way.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use support::tiny_model::{TinyModel, Value as Key};
use support::{Outcome, Place, fixture_folder, halite, json as parsed, model};

const FORMATS: [&str; 4] = ["w8a8", "w4a8", "bf16", "f32"];

/// The report as JSON and as text; what stands in the way is no error.
fn inspect(run: impl Fn(&[&str]) -> Outcome, model: &str) -> (Value, String) {
    (parsed(&run(&["inspect", model, "--json"]).success()), run(&["inspect", model]).success())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Every figure is there and the sum of its parts. `tables`: embedding table and output layer, if they are two.
fn assert_sums(report: &Value, text: &str, tables: u64, int8_stored: bool) {
    // A scale and a minimum for each group where the file has Q4_1, else a scale.
    let factors = if stored(report).contains_key("Q4_1") { 2 } else { 1 };
    let model = &report["model"];
    let of = |key: &str| number(&model[key]);
    let (query, kv) = (of("query_heads") * of("head_dim"), of("kv_heads") * of("head_dim"));
    let (hidden, ffn, layers) = (of("hidden"), of("feed_forward"), of("layers"));
    let matrices = layers * hidden * (2 * query + 2 * kv + 3 * ffn);
    let rows = layers * (query + 2 * kv + 2 * hidden + 2 * ffn);
    let table = of("vocabulary") * hidden;
    let vectors = of("parameters") - matrices - table * tables;
    assert!((1..matrices).contains(&vectors), "{report}");

    let memory: Vec<&Value> = model["memory"].as_array().unwrap().iter().collect();
    assert_eq!(memory.iter().map(|memory| &memory["weights"]).collect::<Vec<_>>(), FORMATS);
    for memory in memory {
        let embedding_int8 = table + 4 * of("vocabulary");
        let (weights, kv_type, kv_element) = match memory["weights"].as_str().unwrap() {
            "w8a8" if int8_stored => (matrices + 4 * rows + 4 * table, "f16", 2),
            "w8a8" => (matrices + 4 * rows + 2 * embedding_int8, "f16", 2),
            "w4a8" => {
                // Whole bytes of 4-bit values, and a scale for each 32: in some models the last group of a row is short.
                let row = |columns: u64| columns.div_ceil(2) + 4 * factors * columns.div_ceil(32);
                let four_bit = (query + 2 * kv + 2 * ffn) * row(hidden) + hidden * (row(query) + row(ffn));
                (layers * four_bit + 2 * embedding_int8, "f16", 2)
            }
            "bf16" => (2 * (matrices + 2 * table), "bf16", 2),
            _ => (4 * (matrices + 2 * table), "f32", 4),
        };
        assert_eq!(number(&memory["weight_bytes"]), weights + 4 * vectors, "{memory}");
        assert_eq!(memory["kv_type"], kv_type);
        assert_eq!(number(&memory["kv_bytes_per_token"]), layers * 2 * kv * kv_element, "{memory}");
        assert_eq!(number(&memory["kv_context"]), of("context").min(8192));
        let context = number(&memory["kv_context"]);
        assert_eq!(number(&memory["kv_bytes"]), context * number(&memory["kv_bytes_per_token"]));
        let shown = format!("--weights {:<5} ", memory["weights"].as_str().unwrap());
        assert!(text.contains(&shown), "{shown} in {text}");
    }
    assert!(
        text.contains("memory needed") && text.contains(&format!("{layers} layers of {hidden}")),
        "{text}"
    );
}

/// Nothing stands in the way.
fn assert_supported(report: &Value, text: &str) {
    assert_eq!((&report["supported"], &report["problems"]), (&json!(true), &json!([])), "{report}");
    assert!(text.contains("supported     yes\n"), "{text}");
}

/// What stands in the way is named, once, in both forms.
fn assert_problems(report: &Value, text: &str, problems: &[&[&str]]) {
    assert_eq!(report["supported"], false, "{report}");
    assert!(text.contains("supported     no\n"), "{text}");
    let found = report["problems"].as_array().unwrap();
    assert_eq!(found.len(), problems.len(), "{report}");
    for (found, parts) in found.iter().zip(problems) {
        let found = found.as_str().unwrap();
        parts.iter().for_each(|part| assert!(found.contains(part), "{part:?} in {found:?}"));
        assert_eq!(text.matches(&format!("- {found}\n")).count(), 1, "{text}");
    }
}

/// Bytes stored, by element type.
fn stored(report: &Value) -> BTreeMap<&str, u64> {
    let types = report["stored"].as_array().unwrap().iter();
    types.map(|stored| (stored["element_type"].as_str().unwrap(), number(&stored["bytes"]))).collect()
}

#[test]
fn the_default_model_is_described() {
    let (report, text) = inspect(halite, "smollm2-135m");
    assert_supported(&report, &text);
    assert_sums(&report, &text, 1, false);
    assert_eq!(report["architecture"], "llama");
    assert_eq!(report["chat_template"], true);
    assert_eq!(number(&report["model"]["parameters"]), 134_515_008);
    assert_eq!(number(&report["model"]["context"]), 8192);
    let stored: u64 = stored(&report).into_values().sum();
    assert!((80_000_000..98_362_432).contains(&stored), "{report}");
    assert!(text.contains("134,515,008") && text.contains("chat template yes"), "{text}");
}

#[test]
fn a_gguf_file_is_described() {
    let place = Place::new();
    let file = place.model();
    let (report, text) = inspect(|arguments| place.halite(arguments), &file);
    assert_supported(&report, &text);
    assert_sums(&report, &text, 1, false);
    assert_eq!(report["path"], file.as_str());
    assert_eq!(report["model"]["name"], "tiny");
    assert_eq!(report["model"]["windows"], json!([null]));
    assert_eq!(stored(&report), BTreeMap::from([("F32", 4 * number(&report["model"]["parameters"]))]));
}

#[test]
fn experts_are_described() {
    let place = Place::new();
    let (report, text) = inspect(|arguments| place.halite(arguments), &fixture_folder("mixtral"));
    assert_supported(&report, &text);
    assert_eq!(report["model"]["experts"], json!({ "count": 5, "per_token": 2 }));
    assert!(text.contains("5 a layer, 2 of them a token"), "{text}");
}

#[test]
fn folders_are_described() {
    let place = Place::new();
    for (name, architecture, tables, windows) in [
        ("llama2", "llama", 2, json!([null])),
        ("gemma3", "gemma3_text", 1, json!([16, null])),
        ("w8a8", "llama", 2, json!([null])),
    ] {
        let folder = fixture_folder(name);
        let (report, text) = inspect(|arguments| place.halite(arguments), &folder);
        assert_supported(&report, &text);
        assert_sums(&report, &text, tables, name == "w8a8");
        assert_eq!((&report["path"], &report["architecture"]), (&json!(folder), &json!(architecture)));
        assert_eq!(report["chat_template"], true);
        let mut found = report["model"]["windows"].as_array().unwrap().clone();
        found.sort_by_key(Value::is_null);
        assert_eq!(Value::Array(found), windows, "{name}");
        let (parameters, stored) = (number(&report["model"]["parameters"]), stored(&report));
        match name {
            "llama2" => assert_eq!(stored, BTreeMap::from([("F32", 4 * parameters)])),
            "gemma3" => assert_eq!(stored, BTreeMap::from([("BF16", 2 * parameters)])),
            // The matrices of three layers are integers.
            _ => assert_eq!(stored["I8"], 3 * 48 * (2 * 48 + 2 * 24 + 3 * 80), "{report}"),
        }
    }
}

/// What `inspect` promises is what loading takes.
#[test]
fn loading_takes_the_memory_that_was_told() {
    let place = Place::new();
    for model in [place.model(), fixture_folder("llama2"), fixture_folder("gemma3"), fixture_folder("w8a8")] {
        let (report, _) = inspect(|arguments| place.halite(arguments), &model);
        for (format, memory) in FORMATS.into_iter().zip(report["model"]["memory"].as_array().unwrap()) {
            let run = ["-v", "run", "-m", &model, "--weights", format, "--raw", "-n", "1", "A"];
            let outcome = place.halite(&run);
            for part in [
                format!("parameters={} ", report["model"]["parameters"]),
                format!("weight_bytes={} ", memory["weight_bytes"]),
            ] {
                assert!(outcome.stderr.contains(&part), "{part} in {outcome:?}");
            }
            outcome.success();
        }
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let place = Place::new();
    let architecture =
        place.folder("architecture", "llama2", |config| config["model_type"] = "abacus".into());
    let method = place.folder("method", "w8a8", |config| {
        config["quantization_config"]["quant_method"] = "gptq".into();
    });
    let bits = place.folder("bits", "w8a8", |config| {
        config["quantization_config"]["config_groups"]["group_0"]["weights"]["num_bits"] = 4.into();
    });
    let shape = place.folder("shape", "llama2", |config| config["intermediate_size"] = 81.into());
    for (folder, parts) in [
        (&architecture, &["abacus", "llama", "qwen3"][..]),
        (&method, &["gptq", "W8A8"]),
        (&bits, &["num_bits", "4", "W8A8"]),
        (&shape, &["81", "80", "mlp"]),
    ] {
        let (report, text) = inspect(|arguments| place.halite(arguments), folder);
        assert_problems(&report, &text, &[parts]);
        // What can be told is told.
        assert!(
            report.get("model").is_none() && !report["stored"].as_array().unwrap().is_empty(),
            "{report}"
        );
        assert!(report["chat_template"] == true && !text.contains("memory needed"), "{text}");
        // It is no more than the truth: the model does not run, for the same reason.
        place.halite(&["run", "-m", folder, "A"]).failure(parts);
    }
    let (report, _) = inspect(|arguments| place.halite(arguments), &architecture);
    assert_eq!(report["architecture"], "abacus");
}

#[test]
fn a_gguf_file_of_an_unknown_architecture_is_named() {
    let place = Place::new();
    let mut abacus = model();
    abacus.set("general.architecture", Key::Str("abacus".to_owned()));
    let file = place.file("abacus.gguf", abacus.bytes());
    let (report, text) = inspect(|arguments| place.halite(arguments), &file);
    assert_problems(&report, &text, &[&["abacus", "llama", "qwen3"]]);
    assert_eq!(report["architecture"], "abacus");
    assert!(text.contains("architecture  abacus\n") && stored(&report)["F32"] > 0, "{text}");
    // Several things at once: each is named.
    abacus.set("tokenizer.ggml.model", Key::Str("runes".to_owned()));
    let file = place.file("runes.gguf", abacus.bytes());
    let (report, text) = inspect(|arguments| place.halite(arguments), &file);
    assert_problems(&report, &text, &[&["abacus"], &["runes"]]);
    assert_eq!(report["chat_template"], false);
}

#[test]
fn one_fault_is_told_once() {
    let place = Place::new();
    let folder = place.folder("generation", "llama2", |_| {});
    place.file("generation/generation_config.json", "{");
    let (report, text) = inspect(|arguments| place.halite(arguments), &folder);
    assert_problems(&report, &text, &[&["generation_config.json"]]);
    // The rest is known.
    assert_sums(&report, &text, 2, false);
}

/// The bytes of a GGUF file with another element type for one tensor.
fn with_type(model: &TinyModel, tensor: &str, element_type: u32) -> Vec<u8> {
    let mut bytes = model.bytes();
    let name = bytes.windows(tensor.len()).position(|window| window == tensor.as_bytes()).unwrap();
    // The number of dimensions, and two of them.
    let at = name + tensor.len() + 4 + 2 * 8;
    assert_eq!(bytes[at..at + 4], [0; 4]);
    bytes[at..at + 4].copy_from_slice(&element_type.to_le_bytes());
    bytes
}

#[test]
fn elements_that_are_not_read_are_a_problem() {
    let place = Place::new();
    // IQ2_XXS.
    let file = place.file("iq2.gguf", with_type(&model(), "blk.0.attn_q.weight", 16));
    let (report, text) = inspect(|arguments| place.halite(arguments), &file);
    assert_problems(&report, &text, &[&["IQ2_XXS"]]);
    place.halite(&["run", "-m", &file, "A"]).failure(&["IQ2_XXS"]);
}

/// A folder that has the name of a known model is that model; one of other things does not hide it.
#[test]
fn what_is_here_wins_over_a_known_name() {
    let place = Place::new();
    std::fs::create_dir(place.path("smollm2-135m")).unwrap();
    place.file("smollm2-135m/notes.txt", "");
    place.halite(&["inspect", "smollm2-135m"]).failure(&["install Python 3 with pip"]);
    std::fs::remove_dir_all(place.path("smollm2-135m")).unwrap();
    place.folder("smollm2-135m", "llama2", |_| {});
    let (report, _) = inspect(|arguments| place.halite(arguments), "smollm2-135m");
    assert_eq!((&report["path"], number(&report["model"]["hidden"])), (&json!("smollm2-135m"), 48));
    std::fs::remove_dir_all(place.path("smollm2-135m")).unwrap();
    place.file("smollm2-135m", model().bytes());
    let (report, _) = inspect(|arguments| place.halite(arguments), "smollm2-135m");
    assert_eq!(report["model"]["name"], "tiny");
}

/// What a file says of itself stays in its line, and short.
#[test]
fn texts_of_the_file_stay_in_their_line() {
    let place = Place::new();
    let folder = place.path("model");
    let checkpoint = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/fixtures/models/llama2");
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(checkpoint).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let path = folder.join("config.json");
    let config = fs::read_to_string(&path).unwrap();
    let forged = r#"\u001b[31m\u009b2J\nsupported     yes"#;
    let long = "x".repeat(100_000);
    for (key, value, supported) in [
        ("\"model_type\": \"llama\"", format!("\"model_type\": \"{forged}\""), "no"),
        ("\"model_type\": \"llama\"", format!("\"model_type\": \"{long}\""), "no"),
        ("\"use_cache\": true", format!("\"_name_or_path\": \"{forged}\""), "yes"),
        ("\"use_cache\": true", format!("\"_name_or_path\": \"{long}\""), "yes"),
    ] {
        assert!(config.contains(key), "{key}");
        fs::write(&path, config.replace(key, &value)).unwrap();
        let report = place.halite(&["inspect", "model"]).success();
        assert!(report.len() < 5000, "{report}");
        assert!(report.chars().all(|c| c == '\n' || !c.is_control()), "{report:?}");
        let verdicts = report.lines().filter(|line| line.starts_with("supported"));
        assert_eq!(verdicts.collect::<Vec<_>>(), [format!("supported     {supported}")]);
    }
}
