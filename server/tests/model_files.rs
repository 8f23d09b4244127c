//! Model files that are missing, damaged or no models at all, with every command that opens one.

mod support;

use support::tiny_model::Value;
use support::{Place, model, shown};

/// Every command that takes a model refuses `file`, naming `parts`.
fn refused(place: &Place, file: &str, parts: &[&str]) {
    let tokens = place.file("tokens.jsonl", "[1, 2, 3]\n");
    place.halite(&["run", "-m", file, "A"]).failure(parts);
    place.halite(&["bench", "model", file, "--prompt", "4", "--generate", "2", "--runs", "1"]).failure(parts);
    place.halite(&["eval", "perplexity", file, "--tokens", &tokens]).failure(parts);
}

#[test]
fn a_missing_file_is_named() {
    let place = Place::new();
    let path = shown(&place.path("nowhere.gguf"));
    refused(&place, &path, &[&path, "no such file"]);
}

#[test]
fn a_folder_is_no_file() {
    let place = Place::new();
    let path = shown(&place.path("models"));
    std::fs::create_dir(&path).unwrap();
    refused(&place, &path, &[&path, "is not a file", "config.json"]);
}

#[test]
fn an_empty_file_is_named() {
    let place = Place::new();
    let file = place.file("empty.gguf", "");
    refused(&place, &file, &[&file]);
}

#[test]
fn a_file_of_another_kind_is_named() {
    let place = Place::new();
    let file = place.file("picture.gguf", b"\x89PNG\r\n\x1a\n and so on, for a while");
    refused(&place, &file, &[&file, "not a GGUF file"]);
}

#[test]
fn a_truncated_file_is_named_wherever_it_ends() {
    let place = Place::new();
    let bytes = model().bytes();
    for end in [5, 20, 200, bytes.len() / 2, bytes.len() - 1] {
        let file = place.file("short.gguf", &bytes[..end]);
        place.halite(&["run", "-m", &file, "A"]).failure(&[&file]);
    }
    let file = place.file("short.gguf", &bytes[..bytes.len() - 1]);
    refused(&place, &file, &[&file, "cut short or corrupt"]);
}

#[test]
fn a_model_of_another_architecture_is_named() {
    let place = Place::new();
    let mut model = model();
    model.set("general.architecture", Value::Str("abacus".to_owned()));
    let file = place.file("abacus.gguf", model.bytes());
    refused(&place, &file, &[&file, "abacus", "llama"]);
}

#[test]
fn a_model_without_a_chat_template_points_to_raw() {
    let place = Place::new();
    let mut model = model();
    model.keys.remove("tokenizer.chat_template");
    let file = place.file("plain.gguf", model.bytes());
    place.halite(&["run", "-m", &file, "A"]).failure(&["chat template", "--raw"]);
    place.halite(&["run", "-m", &file, "--raw", "-n", "2", "A"]).success();
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let place = Place::new();
    refused(&place, "gpt-17", &["gpt-17", "smollm2-135m"]);
    place.halite(&["pull", "gpt-17"]).failure(&["gpt-17", "smollm2-135m"]);
}

#[cfg(unix)]
#[test]
fn errors_do_not_steer_the_terminal() {
    let place = Place::new();
    let file = place.file("\u{1b}[31mred\u{7}.gguf", "");
    refused(&place, &file, &["\u{FFFD}[31mred\u{FFFD}.gguf"]);
}
