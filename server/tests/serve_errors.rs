//! `halite serve`: requests that make no sense. Each is refused with the right status before anything is streamed, and
//! the server goes on.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::{Value, json};
use std::io::Read;
use support::serving::Serving;
use support::tiny_model::{VOCABULARY, Value as Key};
use support::{Place, endless, model};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

/// A right body, and what is changed in it.
fn body(path: &str, changes: &Value) -> Value {
    let mut body = match path {
        CHAT => json!({ "model": "tiny", "messages": [{ "role": "user", "content": "AB" }] }),
        _ => json!({ "model": "tiny", "prompt": "AB" }),
    };
    body["max_tokens"] = 2.into();
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    body
}

/// `{"a": 1}` with a list of values becomes a list of objects.
fn refused(server: &Serving, path: &str, changes: Value, param: &str) {
    for stream in [false, true] {
        let mut body = body(path, &changes);
        // Said to be a stream, the same error comes as a status all the same.
        if stream && changes.get("stream").is_none() && changes.get("stream_options").is_none() {
            body["stream"] = true.into();
        }
        let error = server.post(path, &body).error(400);
        assert_eq!(error["param"], param, "{changes}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(param.split(['.', '[']).next().unwrap()), "{changes}: {message}");
    }
}

#[test]
fn parameters_of_both_kinds_are_checked_by_name() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let long = "x".repeat(513);
    let crowd: serde_json::Map<String, Value> = (0..1025).map(|id| (id.to_string(), json!(1))).collect();
    let many: Vec<String> = (0..17).map(|stop| format!("s{stop}")).collect();
    for path in [CHAT, COMPLETIONS] {
        for (name, values) in [
            ("max_tokens", vec![json!(0), json!(-186), json!(1.5), json!("many"), json!([]), json!(true)]),
            ("n", vec![json!(0), json!(-1), json!(65), json!(1e9), json!("2")]),
            ("temperature", vec![json!(-0.1), json!(2.1), json!("hot"), json!({})]),
            ("top_p", vec![json!(-0.1), json!(1.1), json!(false)]),
            ("top_k", vec![json!(-2), json!(4294967296_u64), json!(0.5)]),
            ("min_p", vec![json!(-0.1), json!(1.1)]),
            ("seed", vec![json!(0.5), json!("x"), json!(1e30)]),
            ("stop", vec![json!(5), json!({}), json!(""), json!(long), json!(many)]),
            ("stop[1]", vec![json!(["a", ""]), json!(["a", 5]), json!(["a", long])]),
            ("stream", vec![json!("yes"), json!(1)]),
            ("stream_options", vec![json!({ "include_usage": true })]),
            ("model", vec![json!(5), json!(null)]),
            ("presence_penalty", vec![json!(2.1), json!(-2.1), json!("x")]),
            ("frequency_penalty", vec![json!(-3), json!(true)]),
            ("repetition_penalty", vec![json!(0), json!(-1.1), json!(1e9)]),
            (
                "logit_bias",
                vec![
                    json!([]),
                    json!({ "x": 1 }),
                    json!({ "-5": 1 }),
                    json!({ "7": 1, "07": 1 }),
                    json!({ VOCABULARY.to_string(): 1 }),
                    json!(crowd),
                ],
            ),
            ("logit_bias[\"5\"]", vec![json!({ "5": 100.5 }), json!({ "5": "x" }), json!({ "5": null })]),
        ] {
            for value in values {
                let field = name.split('[').next().unwrap();
                refused(&server, path, json!({ field: value }), name);
            }
        }
        refused(&server, path, json!({ "max_completion_tokens": 3 }), "max_tokens");
        refused(
            &server,
            path,
            json!({ "stream": true, "stream_options": { "include_usage": 1 } }),
            "stream_options.include_usage",
        );
        refused(&server, path, json!({ "stream": true, "stream_options": 1 }), "stream_options");
        // Unknown ones: typing errors, and what other servers take from inside their own house.
        for name in
            ["temprature", "bootstrap_host", "cache_salt", "tenant", "domain", "priority", "guided_json"]
        {
            refused(&server, path, json!({ name: 1 }), name);
        }
        assert_eq!(
            server.post(path, &body(path, &json!({ "model": "gpt-9" }))).error(404)["code"],
            "model_not_found"
        );
    }
    server.chat(body(CHAT, &json!({}))).ok();
    server.settled();
}

#[test]
fn conversations_are_checked_by_place() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let user = json!({ "role": "user", "content": "A" });
    for (messages, param) in [
        (json!(null), "messages"),
        (json!("hi"), "messages"),
        (json!([]), "messages"),
        (json!(["hi"]), "messages[0]"),
        (json!([user, {}]), "messages[1].role"),
        (json!([{ "role": "king", "content": "A" }]), "messages[0].role"),
        (json!([{ "role": 1, "content": "A" }]), "messages[0].role"),
        (json!([{ "role": "user" }]), "messages[0].content"),
        (json!([{ "role": "user", "content": null }]), "messages[0].content"),
        (json!([{ "role": "user", "content": 5 }]), "messages[0].content"),
        (json!([{ "role": "user", "content": [] }]), "messages[0].content"),
        (json!([{ "role": "user", "content": ["A"] }]), "messages[0].content[0]"),
        (json!([{ "role": "user", "content": [{ "type": "text" }] }]), "messages[0].content[0].text"),
        (
            json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "x" } }] }]),
            "messages[0].content[0]",
        ),
        (
            json!([{ "role": "user", "content": [{ "type": "input_audio", "input_audio": {} }] }]),
            "messages[0].content[0]",
        ),
        (json!([{ "role": "user", "content": "A", "name": 5 }]), "messages[0].name"),
        (json!([{ "role": "user", "content": "A", "colour": 5 }]), "messages[0].colour"),
        (json!([{ "role": "tool", "content": "A" }]), "messages[0].tool_call_id"),
        (json!([{ "role": "assistant" }]), "messages[0].content"),
        (json!([{ "role": "assistant", "tool_calls": [] }]), "messages[0].tool_calls"),
        (json!([{ "role": "assistant", "tool_calls": [{ "id": "1" }] }]), "messages[0].tool_calls[0].type"),
        (
            json!([{ "role": "assistant", "tool_calls": [{ "id": "1", "type": "function" }] }]),
            "messages[0].tool_calls[0].function",
        ),
    ] {
        let error = server.post(CHAT, &body(CHAT, &json!({ "messages": messages }))).error(400);
        // An unknown field is named as it was sent.
        let found = error["param"].as_str().unwrap();
        assert!(found == param || param.ends_with(&format!(".{found}")), "{messages}: {error}");
    }
    for (changes, param) in [
        (json!({ "response_format": { "type": "json_object" } }), "response_format"),
        (json!({ "response_format": { "type": "json_schema", "json_schema": {} } }), "response_format"),
        (json!({ "logprobs": true }), "logprobs"),
        (json!({ "top_logprobs": 5 }), "top_logprobs"),
        (json!({ "modalities": ["audio"] }), "modalities"),
        (json!({ "audio": {} }), "audio"),
        (json!({ "reasoning_effort": "high" }), "reasoning_effort"),
        (json!({ "functions": [] }), "functions"),
        (json!({ "tools": {} }), "tools"),
        (json!({ "tools": [{ "type": "custom" }] }), "tools[0].type"),
        (json!({ "tools": [{ "type": "function", "function": {} }] }), "tools[0].function.name"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (json!({ "tool_choice": { "type": "function" } }), "tool_choice"),
        // The tiny model's template would not show them.
        (json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] }), "tools"),
        (json!({ "chat_template_kwargs": [] }), "chat_template_kwargs"),
        (json!({ "echo": true }), "echo"),
    ] {
        refused(&server, CHAT, changes, param);
    }
}

#[test]
fn prompts_are_checked_by_place() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let beyond = VOCABULARY;
    let many: Vec<&str> = vec!["A"; 65];
    for (changes, param) in [
        (json!({ "prompt": null }), "prompt"),
        (json!({ "prompt": "" }), "prompt"),
        (json!({ "prompt": [] }), "prompt"),
        (json!({ "prompt": 5 }), "prompt"),
        (json!({ "prompt": {} }), "prompt"),
        (json!({ "prompt": ["A", ""] }), "prompt[1]"),
        (json!({ "prompt": [[1], []] }), "prompt[1]"),
        (json!({ "prompt": ["A", 5] }), "prompt[1]"),
        (json!({ "prompt": [5, "A"] }), "prompt[1]"),
        (json!({ "prompt": [5, -1] }), "prompt[1]"),
        (json!({ "prompt": [5, 4294967296_u64] }), "prompt[1]"),
        (json!({ "prompt": [[1], [1, 0.5]] }), "prompt[1][1]"),
        (json!({ "prompt": [beyond] }), "prompt"),
        (json!({ "prompt": many }), "prompt"),
        (json!({ "prompt": ["A", "B"], "n": 33 }), "n"),
        (json!({ "logprobs": 0 }), "logprobs"),
        (json!({ "logprobs": -1 }), "logprobs"),
        (json!({ "suffix": "x" }), "suffix"),
        (json!({ "best_of": 5 }), "best_of"),
        (json!({ "echo": "yes" }), "echo"),
        (json!({ "tools": [] }), "tools"),
    ] {
        refused(&server, COMPLETIONS, changes, param);
    }
    // The token beyond the vocabulary, said again where the prompt is decoded.
    refused(&server, COMPLETIONS, json!({ "prompt": [beyond], "echo": true }), "prompt");
    server.settled();
}

#[test]
fn bodies_that_are_no_objects_are_refused() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    let deep_in = format!(r#"{{"model": "tiny", "messages": {deep}}}"#);
    for path in [CHAT, COMPLETIONS] {
        for bytes in [
            &b""[..],
            b"  ",
            b"hello",
            b"{",
            b"[]",
            b"5",
            b"null",
            b"\"x\"",
            b"{\"model\": \"tiny\"} x",
            b"\xff\xfe",
            b"{\"model\": \"\xff\"}",
            b"{\"max_tokens\": 1e999}",
            b"{\"a\": \"\\ud800\"}",
            deep.as_bytes(),
            deep_in.as_bytes(),
        ] {
            server.send("POST", path, &[], Some(bytes)).error(400);
        }
    }
    assert_eq!(server.send("POST", CHAT, &[], Some(b"{}")).error(400)["code"], "missing_required_parameter");
}

#[test]
fn prompts_that_fit_nowhere_are_refused_and_others_go_on() {
    let place = Place::new();
    // A context larger than the whole cache.
    let model = place.file("endless.gguf", endless().bytes());
    let server = Serving::start(&place, &model, &["--context", "4096", "--kv-tokens", "256"]);
    let running = server.complete(json!({ "prompt": "AB", "max_tokens": 5, "temperature": 0 })).ok();
    for length in [257, 4000, 4096, 100_000] {
        let prompt = "A".repeat(length);
        let error = server.complete(json!({ "prompt": prompt })).error(400);
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("context_length_exceeded"), &json!("prompt")),
            "{error}"
        );
        let messages = json!([{ "role": "user", "content": prompt }]);
        let error = server.chat(json!({ "messages": messages, "stream": true })).error(400);
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("context_length_exceeded"), &json!("messages"))
        );
    }
    // One of several: none of them runs.
    server.complete(json!({ "prompt": ["AB", "A".repeat(300)] })).error(400);
    server.settled();
    let again = server.complete(json!({ "prompt": "AB", "max_tokens": 5, "temperature": 0 })).ok();
    assert_eq!(again["choices"], running["choices"]);
}

#[test]
fn what_a_template_refuses_is_the_requests_fault() {
    let place = Place::new();
    let mut model = model();
    let template = "{% for m in messages %}{% if m.role != 'user' %}\
        {{ raise_exception('Conversation roles must alternate') }}{% endif %}{{ m.content }}{% endfor %}";
    model.set("tokenizer.chat_template", Key::Str(template.to_owned()));
    let server = Serving::start(&place, &place.file("strict.gguf", model.bytes()), &[]);
    let changes = json!({ "messages": [{ "role": "system", "content": "A" }] });
    let error = server.post(CHAT, &body(CHAT, &changes)).error(400);
    assert!(error["message"].as_str().unwrap().contains("Conversation roles must alternate"), "{error}");
    assert_eq!(error["param"], "messages");
    server.chat(body(CHAT, &json!({}))).ok();
    // Text that the vocabulary cannot write.
    let error = server
        .post(CHAT, &body(CHAT, &json!({ "messages": [{ "role": "user", "content": "é" }] })))
        .error(400);
    assert!(error["message"].as_str().unwrap().contains("no token"), "{error}");
}

/// A tokenizer's pattern that takes exponentially long on some texts: theirs is the fault.
#[test]
fn texts_that_the_tokenizer_cannot_cut_are_the_requests_fault() {
    let place = Place::new();
    let folder = place.folder("slow", "llama2", |_| {});
    let path = place.path("slow/tokenizer.json");
    let mut tokenizer = support::json(&std::fs::read_to_string(&path).unwrap());
    let pattern = json!({ "Regex": r"(?:a+)+(?!a)b" });
    let split = json!({ "type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false });
    let levels = [split, tokenizer["pre_tokenizer"].clone()];
    tokenizer["pre_tokenizer"] = json!({ "type": "Sequence", "pretokenizers": levels });
    std::fs::write(path, tokenizer.to_string()).unwrap();
    let server = Serving::start(&place, &folder, &[]);
    let text = "a".repeat(64);
    let error = server.post(COMPLETIONS, &body(COMPLETIONS, &json!({ "prompt": text }))).error(400);
    assert!(error["message"].as_str().unwrap().contains("too many steps"), "{error}");
    assert_eq!(error["param"], "prompt");
    let messages = json!([{ "role": "user", "content": text }]);
    let error = server.post(CHAT, &body(CHAT, &json!({ "messages": messages }))).error(400);
    assert_eq!(error["param"], "messages", "{error}");
    server.complete(json!({ "prompt": "AB" })).ok();
}

#[test]
fn a_model_without_a_template_completes_only() {
    let place = Place::new();
    let mut model = model();
    model.keys.remove("tokenizer.chat_template");
    let server = Serving::start(&place, &place.file("plain.gguf", model.bytes()), &[]);
    assert!(server.greeting.contains("/v1/completions"));
    let error = server.post(CHAT, &body(CHAT, &json!({}))).error(400);
    assert!(error["message"].as_str().unwrap().contains("/v1/completions"), "{error}");
    server.complete(json!({ "prompt": "AB" })).ok();
}

#[test]
fn errors_do_not_send_requests_back() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let long = "한".repeat(300_000);
    // `error` holds all of them to a length.
    for changes in [
        json!({ "model": long }),
        json!({ "temperature": long }),
        json!({ "stop": [long] }),
        json!({ "prompt": long }),
        json!({ "prompt": [long, 5] }),
        json!({ long.clone(): 5 }),
        json!({ "seed": [long] }),
    ] {
        let response = server.post(COMPLETIONS, &body(COMPLETIONS, &changes));
        response.error(response.status);
    }
    server.post(CHAT, &body(CHAT, &json!({ "messages": [{ "role": long, "content": "A" }] }))).error(400);
    server.get(&format!("/{}", "x".repeat(20_000))).error(404);
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let place = Place::new();
    let model = place.file("endless.gguf", endless().bytes());
    let options = ["--context", "100000", "--max-sequences", "1", "--max-waiting", "2"];
    let server = Serving::start(&place, &model, &options);
    let endless = json!({ "model": "tiny", "prompt": "AB", "max_tokens": 90_000, "temperature": 0 });
    let post = || {
        let mut stream = support::http::connect(server.address);
        let text = support::http::text("POST", COMPLETIONS, &[], Some(endless.to_string().as_bytes()));
        std::io::Write::write_all(&mut stream, &text).unwrap();
        stream
    };
    let first = post();
    server.until("running", |health| health["running"] == 1);
    let second = post();
    server.until("one waiting", |health| health["waiting"] == 1);
    // Two answers, and room for one: neither waits.
    assert_eq!(server.complete(json!({ "prompt": "AB", "n": 2 })).error(429)["code"], "queue_full");
    let third = post();
    server.until("two waiting", |health| health["waiting"] == 2);
    third.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    assert!((&third).read(&mut [0]).is_err(), "refused, as if somebody had taken its place");
    let refused = server.complete(json!({ "prompt": "AB", "stream": true }));
    assert_eq!(refused.error(429)["code"], "queue_full");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // More than the queue ever holds is never going to work.
    assert_eq!(server.complete(json!({ "prompt": "AB", "n": 3 })).error(400)["param"], "n");
    drop((first, second, third));
    server.settled();
    server.complete(json!({ "prompt": "AB" })).ok();
}
