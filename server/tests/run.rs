//! `halite run` on a tiny model.

mod support;

use std::io::{Read, Write};
use std::process::Stdio;
use support::tiny_model::Value;
use support::{CONTEXT, Place, endless, model};

#[test]
fn standard_output_is_the_answer_and_nothing_else() {
    let place = Place::new();
    let model = place.model();
    let outcome = place.halite(&["run", "-m", &model, "-n", "12", "ABC"]);
    let figures = outcome.stderr.lines().last().unwrap().to_owned();
    for part in ["prompt 4 tokens", "generated 12 tokens", "--max-tokens", "first token after", "w8a8 on cpu"]
    {
        assert!(figures.contains(part), "{part} in {figures}");
    }
    let answer = outcome.success();
    let text = answer.strip_suffix('\n').unwrap();
    assert_eq!(text.len(), 12, "{text:?}");
    assert!(text.chars().all(|c| ('!'..='b').contains(&c)), "{text:?}");
}

#[test]
fn greedy_answers_are_the_same_and_do_not_depend_on_threads() {
    let place = Place::new();
    let model = place.model();
    let run =
        |more: &[&str]| place.halite(&[&["run", "-m", &model, "-n", "30", "AB"], more].concat()).success();
    let answer = run(&[]);
    assert_eq!(answer, run(&["--threads", "1"]));
    assert_eq!(answer, run(&["--threads", "3", "--seed", "5"]));
    assert_eq!(answer, run(&["--kv", "f16", "--weights", "w8a8", "--context", "64"]));
}

#[test]
fn a_seed_repeats_an_answer_and_is_told() {
    let place = Place::new();
    let model = place.model();
    let arguments = ["run", "-m", &model, "-n", "40", "--temperature", "3", "AB"];
    let first = place.halite(&arguments);
    let (_, seed) = first.stderr.rsplit_once("seed ").unwrap();
    let seed = seed.split(' ').next().unwrap().to_owned();
    let again = place.halite(&[&arguments[..], &["--seed", &seed]].concat()).success();
    assert_eq!(first.success(), again);
    assert_ne!(again, place.halite(&[&arguments[..], &["--seed", "12345"]].concat()).success());
}

#[test]
fn a_seed_without_effect_says_so() {
    let place = Place::new();
    let model = place.model();
    let run = ["run", "-m", &model, "-n", "2", "AB", "--seed", "5"];
    place.halite(&run).said(&["--seed has no effect"]);
    let drawn = place.halite(&[&run[..], &["--temperature", "1"]].concat());
    assert!(!drawn.stderr.contains("no effect"), "{drawn:?}");
    drawn.success();
}

#[test]
fn an_answer_ends_just_before_a_stop_text() {
    let place = Place::new();
    let model = place.model();
    let run = ["run", "-m", &model, "-n", "20", "--temperature", "2", "--seed", "4", "AB"];
    let whole = place.halite(&run).success();
    let (first, second) = (&whole[5..8], &whole[12..14]);
    let end = whole.find(first).unwrap().min(whole.find(second).unwrap());
    let outcome = place.halite(&[&run[..], &["--stop", second, "--stop", first]].concat());
    assert!(!outcome.stderr.contains("--max-tokens"), "{outcome:?}");
    assert_eq!(outcome.success(), format!("{}\n", &whole[..end]));
}

#[test]
fn every_format_and_tier_answers() {
    let place = Place::new();
    let model = place.model();
    for weights in ["w8a8", "w4a8", "bf16", "f32"] {
        for tier in halite_cpu::Tier::available() {
            let run = ["run", "-m", &model, "-n", "5", "--weights", weights, "--tier", tier.name(), "A"];
            let outcome = place.halite(&run);
            assert!(outcome.stderr.contains(&format!("{weights} on cpu {tier}")), "{outcome:?}");
            outcome.success();
        }
    }
}

#[test]
fn words_are_joined_and_a_dash_reads_standard_input() {
    let place = Place::new();
    let mut model = model();
    // A space for a token, where there was a quotation mark.
    let Some(Value::Strs(tokens)) = model.keys.get_mut("tokenizer.ggml.tokens") else { panic!("no tokens") };
    tokens[1] = "Ġ".to_owned();
    let file = place.file("tiny.gguf", model.bytes());
    let run = ["run", "-m", &file, "-n", "10"];
    let words = place.halite(&[&run[..], &["A", "B"]].concat()).success();
    assert_eq!(words, place.halite(&[&run[..], &["A B"]].concat()).success());

    let piped = |input: &[u8]| {
        let mut command = place.command(&[&run[..], &["-"]].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(String::from_utf8(piped(b"A B").stdout).unwrap(), words);
    for (input, part) in [(&b""[..], "the prompt on standard input is empty"), (b"A\xff", "not UTF-8")] {
        let output = piped(input);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().contains(part));
    }
}

#[test]
fn the_system_message_comes_before_the_prompt() {
    let place = Place::new();
    let model = place.model();
    let with_system = place.halite(&["run", "-m", &model, "-n", "10", "--system", "AB", "CD"]).success();
    // The template sets an exclamation mark after each message.
    let raw = place.halite(&["run", "-m", &model, "-n", "10", "--raw", "AB!CD!"]).success();
    assert_eq!(with_system, raw);
    assert_ne!(raw, place.halite(&["run", "-m", &model, "-n", "10", "CD"]).success());
}

#[test]
fn prompts_that_do_not_fit_are_refused() {
    let place = Place::new();
    let model = place.model();
    place.halite(&["run", "-m", &model, ""]).failure(&["the prompt is empty"]);
    let long = "A".repeat(CONTEXT as usize + 1);
    place.halite(&["run", "-m", &model, &long]).failure(&["context", "258 tokens", "255"]);
    place.halite(&["run", "-m", &model, "--context", "8", "ABCDEFGHIJ"]).failure(&["prompt", "11"]);
    place.halite(&["run", "-m", &model, "--context", "1000", "A"]).failure(&["context", "256", "1000"]);
}

#[test]
fn an_answer_that_fills_the_context_says_so() {
    let place = Place::new();
    let model = place.model();
    let outcome = place.halite(&["run", "-m", &model, "-n", "100", "--context", "32", "A"]);
    assert!(outcome.stderr.contains("--context"), "{outcome:?}");
    outcome.success();
}

const ENDLESS: [&str; 6] = ["run", "-n", "1000000", "--context", "1000000", "A"];

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let place = Place::new();
    let model = place.file("endless.gguf", endless().bytes());
    let mut command = place.command(&[&ENDLESS[..], &["-m", &model]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{stderr}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_was_answered() {
    let place = Place::new();
    let model = place.file("endless.gguf", endless().bytes());
    let mut command = place.command(&[&ENDLESS[..], &["-m", &model]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 4]).unwrap();
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(rest.ends_with('\n'), "{rest:?}");
    assert!(stderr.lines().last().unwrap().contains("(interrupted)"), "{stderr}");
}

/// The output layers of published models have more rows than their tokenizers have tokens.
#[test]
fn ids_that_spell_nothing_are_no_error() {
    let place = Place::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/fixtures/models/llama2");
    for seed in ["1", "2", "3", "4"] {
        let options = ["-t", "2", "--seed", seed, "-n", "60", "--raw", "a"];
        place.halite(&[&["run", "-m", model], &options[..]].concat()).success();
    }
}

/// A template sees the clock, as `halite serve` and the Python package show it.
#[test]
fn a_template_sees_the_time() {
    let place = Place::new();
    let mut model = model();
    let template = "{% if strftime_now is defined and strftime_now('%Y') | int > 2000 %}TIME{% endif %}\
        {{ messages[0].content }}!";
    model.set("tokenizer.chat_template", Value::Str(template.to_owned()));
    let model = place.file("time.gguf", model.bytes());
    let raw = place.halite(&["run", "-m", &model, "-n", "10", "--raw", "TIMEAB!"]).success();
    assert_eq!(place.halite(&["run", "-m", &model, "-n", "10", "AB"]).success(), raw);
    let mut chat = place.command(&["chat", "-m", &model, "-n", "10"]);
    let chat = chat.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut chat = chat.spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"AB\n").unwrap();
    assert_eq!(String::from_utf8(chat.wait_with_output().unwrap().stdout).unwrap(), raw);
}

/// The second start takes the converted weights that the first kept, to the same answer; told otherwise, neither does.
#[test]
fn converted_weights_are_kept_for_later_starts() {
    let place = Place::new();
    let model = place.model();
    let run = |more: &[&str]| {
        let outcome = place.halite(&[&["-v", "run", "-m", &model, "-n", "20", "AB"], more].concat());
        let restored = outcome.stderr.contains("restored=true");
        assert!(restored || outcome.stderr.contains("restored=false"), "{outcome:?}");
        (restored, outcome.stderr.contains("keeping the converted weights"), outcome.success())
    };
    let weights = place.path("cache").join("weights");
    let files = || std::fs::read_dir(&weights).map_or(0, Iterator::count);
    let (restored, kept, answer) = run(&["--no-weights-cache"]);
    assert!(!restored && !kept && files() == 0);
    assert_eq!(run(&[]), (false, true, answer.clone()));
    assert_eq!(run(&[]), (true, false, answer.clone()));
    assert_eq!(run(&["--no-weights-cache"]), (false, false, answer.clone()));
    let (restored, _, other) = run(&["--weights", "w4a8"]);
    assert!(!restored && files() == 2, "a file a format");
    assert_eq!(run(&["--weights", "w4a8"]), (true, false, other));

    // Damaged, it is said so, and converted again.
    for entry in std::fs::read_dir(&weights).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[1000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let outcome = place.halite(&["run", "-m", &model, "-n", "20", "AB"]);
    assert_eq!(outcome.said(&["is damaged: the checksum of", "converted again"]), answer);
    assert_eq!(run(&[]), (true, false, answer.clone()));

    // Where nothing can be kept, it is said, and the answer is the same.
    std::fs::remove_dir_all(&weights).unwrap();
    std::fs::write(&weights, "no folder").unwrap();
    let outcome = place.halite(&["run", "-m", &model, "-n", "20", "AB"]);
    assert_eq!(outcome.said(&["are not kept", "--no-weights-cache"]), answer);
}
