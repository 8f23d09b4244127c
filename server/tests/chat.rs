//! `halite chat` on a tiny model, its lines from a pipe.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Output, Stdio};
use support::{Outcome, Place, endless, json, model};

/// Talks until the lines are over.
fn chat(place: &Place, model: &str, more: &[&str], lines: &str) -> Outcome {
    let mut command = place.command(&[&["chat", "-m", model, "-n", "10"][..], more].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that has ended reads no more.
    _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn raw(place: &Place, model: &str, prompt: &str) -> String {
    place.halite(&["run", "-m", model, "-n", "10", "--raw", prompt]).success()
}

#[test]
fn every_answer_sees_what_was_said_before() {
    let place = Place::new();
    let model = place.model();
    let outcome = chat(&place, &model, &[], "AB\n\n  \nCD\n");
    for part in ["prompt 3 tokens", "prompt 17 tokens", "generated 10 tokens (cut: --max-tokens)"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    // The template sets an exclamation mark after each message.
    let first = raw(&place, &model, "AB!");
    let second = raw(&place, &model, &format!("AB!{}!CD!", first.trim_end_matches('\n')));
    assert_eq!(outcome.success(), format!("{first}{second}"), "nothing else is on standard output");

    let system = chat(&place, &model, &["--system", "XY"], "AB").success();
    assert_eq!(system, raw(&place, &model, "XY!AB!"));
}

#[test]
fn a_long_conversation_is_computed_once() {
    let place = Place::new();
    let outcome = chat(&place, &place.model(), &[], "ABCDEFGHIJKLMNOPQRSTUVWXYZ\nAB\n");
    outcome.said(&["prompt 27 tokens,", "prompt 41 tokens (32 cached)"]);
}

#[test]
fn commands_do_what_help_says() {
    let place = Place::new();
    let model = place.model();
    let file = place.path("talk.json");
    let file = file.to_str().unwrap();
    let lines = format!(
        "/help\nAB\n/retry\n/stats\n/system XY\n/reset\n/stats\nCD\n/save {file}\n//E\n/exit\nnever read\n"
    );
    let outcome = chat(&place, &model, &[], &lines);
    for part in [
        "/system TEXT",
        "answers: 2 | tokens: 6 prompt",
        "exchanges remembered: 1",
        "exchanges remembered: 0 | context: 0 of 256",
        "(saved to ",
        "(forgotten)",
        "(system message set)",
    ] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    let stdout = outcome.success();
    let answers: Vec<&str> = stdout.lines().collect();
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!(answers[0], answers[1], "at temperature 0 there is one answer");
    assert_eq!(format!("{}\n", answers[2]), raw(&place, &model, "XY!CD!"));
    assert_eq!(format!("{}\n", answers[3]), raw(&place, &model, &format!("XY!CD!{}!/E!", answers[2])));
    let saved = json(&std::fs::read_to_string(file).unwrap());
    let roles: Vec<_> = saved.as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert_eq!(saved[2]["content"], answers[2]);
}

#[test]
fn another_try_is_another_draw() {
    let place = Place::new();
    let drawn = ["--temperature", "2", "--seed", "5"];
    let outcome = chat(&place, &place.model(), &drawn, "AB\n/retry\n").said(&["seed 5 ", "seed 6 "]);
    let answers: Vec<&str> = outcome.lines().collect();
    assert_ne!(answers[0], answers[1]);
    assert_eq!(outcome, chat(&place, &place.model(), &drawn, "AB\n/retry\n").success());
}

#[test]
fn what_is_wrong_with_a_line_costs_that_line_only() {
    let place = Place::new();
    let model = place.model();
    let existing = place.file("there", "");
    let lines = format!("/retry\n/sing\n/save\n/save {existing}\né\n{}\nAB\n", "A".repeat(300));
    let outcome = chat(&place, &model, &[], &lines);
    for part in [
        "error: there is nothing to answer yet",
        "error: /sing is no command",
        "error: /save needs",
        "exists",
        "no token for byte",
        "a prompt of 301 tokens, the limit is 255",
    ] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    // As for any program whose input was partly wrong.
    assert_eq!(outcome.code, Some(1));
    assert_eq!(outcome.stdout, raw(&place, &model, "AB!"));
}

#[test]
fn a_full_context_forgets_the_oldest_and_says_so() {
    let place = Place::new();
    let model = place.model();
    // 3 + 10 tokens an exchange, and room for 10 more.
    let outcome = chat(&place, &model, &["--context", "40"], "AB\nCD\nEF\nGH\n");
    assert_eq!(
        outcome.stderr.matches("(context full: oldest exchanges forgotten: 1;").count(),
        2,
        "{outcome:?}"
    );
    let stdout = outcome.success();
    let answers: Vec<&str> = stdout.lines().collect();
    let prompt = format!("CD!{}!EF!", answers[1]);
    assert_eq!(format!("{}\n", answers[2]), raw(&place, &model, &prompt));
}

#[test]
fn models_without_a_template_cannot_chat() {
    let place = Place::new();
    let mut model = model();
    model.keys.remove("tokenizer.chat_template");
    let file = place.file("plain.gguf", model.bytes());
    place.halite(&["chat", "-m", &file]).failure(&["chat template", "run --raw"]);
}

#[test]
fn lines_that_are_no_text_end_it() {
    let place = Place::new();
    let mut command = place.command(&["chat", "-m", &place.model()]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    _ = child.stdin.take().unwrap().write_all(b"A\xff\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("not UTF-8"));
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_the_answer_and_then_the_program() {
    let place = Place::new();
    let model = place.file("endless.gguf", endless().bytes());
    let arguments = ["chat", "-m", &model, "-n", "1000000", "--context", "1000000"];
    let mut command = place.command(&arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let id = child.id().to_string();
    let interrupt =
        || assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut byte = [0];
    for message in ["A\n", "/stats\nB\n"] {
        stdin.write_all(message.as_bytes()).unwrap();
        stdout.read_exact(&mut byte).unwrap();
        interrupt();
        while byte != *b"\n" {
            stdout.read_exact(&mut byte).unwrap();
        }
    }
    stdin.write_all(b"/retry\n").unwrap();
    stdout.read_exact(&mut byte).unwrap();
    interrupt();
    while byte != *b"\n" {
        stdout.read_exact(&mut byte).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(stderr.matches("(interrupted)").count(), 3, "{stderr}");
    assert!(stderr.contains("exchanges remembered: 1"), "{stderr}");

    // Where nothing is answered there is nothing to keep. It waits for a line by then: before, whoever started it may have
    // told it to ignore the signal.
    let mut child = place.command(&arguments);
    let mut child =
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"/save /\n").unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    assert!(stderr.lines().any(|line| line.unwrap().contains("cannot make /")));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_ne!(child.wait().unwrap().code(), Some(0));
}
