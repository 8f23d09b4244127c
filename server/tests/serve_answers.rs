//! `halite serve`: answers, whole and streamed.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::{Value, json};
use support::http::events;
use support::serving::Serving;
use support::tiny_model::Value as Key;
use support::{Place, model};

/// A tiny model whose tokens end and begin in the middle of characters, and bytes that make no character with any other.
fn broken_characters(place: &Place) -> String {
    let mut model = model();
    let Some(Key::Strs(tokens)) = model.keys.get_mut("tokenizer.ggml.tokens") else { panic!("no tokens") };
    // The two bytes of an e with an accent, as the byte-level alphabet spells them: each with a letter beside it.
    for (index, token) in tokens.iter_mut().enumerate().take(32) {
        *token = if index % 2 == 0 { format!("{token}\u{c3}") } else { format!("\u{a9}{token}") };
    }
    // Three of the four bytes of an emoji: 0x9F and 0x98 are numbered from U+0121 on, as they do not print.
    for (token, byte) in tokens.iter_mut().skip(40).zip(["\u{f0}", "\u{141}", "\u{13a}"]) {
        byte.clone_into(token);
    }
    place.file("bytes.gguf", model.bytes())
}

/// The text that a stream's choice comes to, and why it ended.
fn joined(events: &[Value], choice: usize) -> (String, String) {
    let (mut text, mut reason) = (String::new(), String::new());
    for event in events {
        for delta in event["choices"].as_array().unwrap().iter().filter(|delta| delta["index"] == choice) {
            assert_eq!(reason, "", "nothing follows the end: {delta}");
            text += delta["text"].as_str().or(delta["delta"]["content"].as_str()).unwrap_or_default();
            reason += delta["finish_reason"].as_str().unwrap_or_default();
        }
    }
    (text, reason)
}

fn texts(response: &Value) -> Vec<(String, String)> {
    let choices = response["choices"].as_array().unwrap();
    let numbered = choices.iter().enumerate().map(|(index, choice)| {
        assert_eq!(choice["index"], index);
        let text = choice["text"].as_str().or(choice["message"]["content"].as_str()).unwrap();
        (text.to_owned(), choice["finish_reason"].as_str().unwrap().to_owned())
    });
    numbered.collect()
}

#[test]
fn a_chat_has_openais_form() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let messages = json!([{ "role": "system", "content": "AB" }, { "role": "user", "content": "CD" }]);
    let body = json!({ "messages": messages, "max_tokens": 10, "temperature": 0 });
    let response = server.chat(body.clone());
    assert_eq!(response.header("content-type"), Some("application/json"));
    let response = response.ok();
    assert!(response["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(response["object"], "chat.completion");
    assert_eq!(response["model"], "tiny");
    assert!(response["created"].as_u64().unwrap() > 1_700_000_000);
    assert!(response["system_fingerprint"].as_str().unwrap().starts_with("halite-"));
    let choice = &response["choices"][0];
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!((&choice["message"]["refusal"], &choice["logprobs"]), (&Value::Null, &Value::Null));
    assert_eq!(choice["finish_reason"], "length");
    // The template sets an exclamation mark after each message.
    assert_eq!(
        response["usage"],
        json!({
            "prompt_tokens": 6, "completion_tokens": 10, "total_tokens": 16,
            "prompt_tokens_details": { "cached_tokens": 0 },
        })
    );
    // What the program says on the command line, and a completion of the same tokens.
    let run = place.halite(&["run", "-m", &place.model(), "-n", "10", "--system", "AB", "CD"]).success();
    assert_eq!(texts(&response)[0].0, run.trim_end_matches('\n'));
    let completion = server.complete(json!({ "prompt": "AB!CD!", "max_tokens": 10, "temperature": 0 })).ok();
    assert_eq!(texts(&completion), texts(&response));
    assert_ne!(completion["id"], response["id"]);
    assert!(completion["id"].as_str().unwrap().starts_with("cmpl-"));
    assert_eq!(completion["object"], "text_completion");
}

#[test]
fn a_stream_is_the_same_answer_in_pieces() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let body = json!({ "messages": [{ "role": "user", "content": "ABC" }], "max_tokens": 12, "seed": 3 });
    let whole = server.chat(body.clone()).ok();
    let mut streamed = body;
    streamed["stream"] = true.into();
    let plain = events(&server.chat(streamed.clone()));
    assert_eq!(joined(&plain, 0), texts(&whole)[0]);
    assert_eq!(plain[0]["choices"][0]["delta"]["role"], "assistant");
    for event in &plain {
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!(event["id"], plain[0]["id"]);
        assert!(event.get("usage").is_none(), "{event}");
    }

    streamed["stream_options"] = json!({ "include_usage": true });
    let counted = events(&server.chat(streamed));
    let (last, others) = counted.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    for key in ["prompt_tokens", "completion_tokens", "total_tokens"] {
        assert_eq!(last["usage"][key], whole["usage"][key]);
    }
    assert!(others.iter().all(|event| event["usage"].is_null() && event.get("usage").is_some()));
    assert_eq!(joined(others, 0), texts(&whole)[0]);
}

/// Whatever `max_tokens` cuts: the pieces put together are the whole, and no piece ends inside a character.
#[test]
fn deltas_add_up_inside_broken_characters() {
    let place = Place::new();
    let model = broken_characters(&place);
    let server = Serving::start(&place, &model, &[]);
    let mut replaced = 0;
    let mut wide = 0;
    for seed in 0..12 {
        for max_tokens in 1..=24 {
            let mut body =
                json!({ "prompt": "AB", "max_tokens": max_tokens, "seed": seed, "temperature": 2 });
            let whole = texts(&server.complete(body.clone()).ok());
            body["stream"] = true.into();
            let streamed = joined(&events(&server.complete(body)), 0);
            assert_eq!(streamed, whole[0], "seed {seed}, {max_tokens} tokens");
            if seed < 2 {
                // Another way to the same text, which loses nothing at its end either.
                let (limit, seed) = (max_tokens.to_string(), seed.to_string());
                let drawn = ["--temperature", "2", "--seed", &seed];
                let run = ["run", "-m", &model, "--raw", "-n", &limit, "AB"];
                let run = place.halite(&[&run[..], &drawn].concat()).success();
                assert_eq!(format!("{}\n", whole[0].0), run);
            }
            replaced += whole[0].0.matches('\u{FFFD}').count();
            wide += whole[0].0.chars().filter(|c| c.len_utf8() > 1 && *c != '\u{FFFD}').count();
        }
    }
    assert!(replaced > 100 && wide > 100, "the test is about broken characters: {replaced}, {wide}");
}

/// Stop strings at every place of an answer, of every length: nothing of one is ever sent.
#[test]
fn answers_end_just_before_stop_strings() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let body = json!({ "prompt": "AB", "max_tokens": 30, "seed": 4, "temperature": 2 });
    let (whole, _) = texts(&server.complete(body.clone()).ok()).remove(0);
    for start in (0..28).step_by(3) {
        for length in [1, 2, 5] {
            let stop = &whole[start..(start + length).min(whole.len())];
            let mut body = body.clone();
            // A beginning of what comes that is never completed: it is held back, and must come out.
            body["stop"] = json!([format!("{}~", &whole[start..=start]), stop]);
            let expected = (whole[..whole.find(stop).unwrap()].to_owned(), "stop".to_owned());
            assert_eq!(texts(&server.complete(body.clone()).ok())[0], expected, "{stop:?}");
            body["stream"] = true.into();
            assert_eq!(joined(&events(&server.complete(body)), 0), expected, "{stop:?}");
        }
    }
    // One that never comes to its end, held back at the end of the answer.
    let mut body = body;
    body["stop"] = format!("{}~", &whole[27..]).into();
    assert_eq!(texts(&server.complete(body.clone()).ok())[0], (whole.clone(), "length".to_owned()));
    body["stream"] = true.into();
    assert_eq!(joined(&events(&server.complete(body)), 0).0, whole);
}

#[test]
fn prompts_come_in_four_forms_and_many() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let complete = |prompt: Value, more: Value| {
        let mut body = json!({ "prompt": prompt, "max_tokens": 6, "temperature": 1.5, "seed": 9 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.complete(body).ok()
    };
    let alone = |prompt: &str| texts(&complete(json!(prompt), json!({})))[0].0.clone();
    // `!` is the token 0.
    assert_eq!(texts(&complete(json!([32, 33]), json!({})))[0].0, alone("AB"));
    assert_eq!(texts(&complete(json!(["AB"]), json!({})))[0].0, alone("AB"));
    assert_eq!(texts(&complete(json!([[32, 33]]), json!({})))[0].0, alone("AB"));

    // Two prompts with two answers each, in OpenAI's order. What comes first is what comes alone.
    let two = complete(json!(["AB", [35]]), json!({ "n": 2, "echo": true }));
    let found = texts(&two);
    assert_eq!(found.len(), 4);
    assert_eq!((&*found[0].0, &*found[2].0), (&*format!("AB{}", alone("AB")), &*format!("D{}", alone("D"))));
    assert!(found[1].0.starts_with("AB") && found[3].0.starts_with('D'));
    assert_ne!(found[0], found[1]);
    // A prompt counts once, whatever n is.
    assert_eq!((&two["usage"]["prompt_tokens"], &two["usage"]["completion_tokens"]), (&json!(3), &json!(24)));

    let mut body = json!({ "prompt": ["AB", [35]], "n": 2, "echo": true, "max_tokens": 6, "temperature": 1.5,
        "seed": 9, "stream": true, "stream_options": { "include_usage": true } });
    body["model"] = "tiny".into();
    let streamed = events(&server.post("/v1/completions", &body));
    let joined: Vec<_> = (0..4).map(|choice| joined(&streamed, choice)).collect();
    assert_eq!(joined, found);
    assert_eq!(streamed.last().unwrap()["usage"]["total_tokens"], 27);
}

#[test]
fn choices_have_seeds_of_their_own_that_repeat() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let chat = |more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "AB" }], "max_tokens": 20 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        texts(&server.chat(body).ok())
    };
    let three = chat(json!({ "n": 3, "seed": 5 }));
    assert!(three[0] != three[1] && three[1] != three[2]);
    assert_eq!(three, chat(json!({ "n": 3, "seed": 5 })));
    assert_eq!(three[0], chat(json!({ "seed": 5 }))[0]);
    assert_ne!(three, chat(json!({ "n": 3, "seed": -5 })));
    // So small a model often says the same again: eight answers to a request, from a flat distribution, never do.
    let unseeded = || chat(json!({ "n": 8, "temperature": 2 }));
    assert_ne!(unseeded(), unseeded(), "without a seed each answer is another draw");
    // Greedy, in each of the ways to say it.
    let greedy = chat(json!({ "temperature": 0 }));
    assert_eq!(greedy, chat(json!({ "temperature": 0, "seed": 8 })));
    assert_eq!(greedy, chat(json!({ "top_p": 0 })));
    assert_eq!(greedy, chat(json!({ "top_k": 1, "top_p": 0.5 })));
    assert_eq!(greedy, chat(json!({ "min_p": 1 })));
}

/// With logits of 0 everywhere, what is asked of them decides alone.
#[test]
fn penalties_and_biases_decide() {
    let place = Place::new();
    let mut model = model();
    model.untie(1);
    model.tensors.get_mut("output.weight").unwrap().values.fill(0.0);
    let server = Serving::start(&place, &place.file("flat.gguf", model.bytes()), &[]);
    let text = |more: Value| {
        let mut body = json!({ "prompt": "AB", "max_tokens": 4, "temperature": 0 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let whole = texts(&server.complete(body.clone()).ok()).remove(0).0;
        body["stream"] = true.into();
        assert_eq!(joined(&events(&server.complete(body)), 0).0, whole, "{more}");
        whole
    };
    let token = |id: usize| {
        let four = text(json!({ "logit_bias": { id.to_string(): 100 } }));
        let one = four[..four.len() / 4].to_owned();
        assert_eq!(one.repeat(4), four);
        one
    };
    let (a, b) = (token(10), token(11));
    assert_ne!(a, b);
    let biases = json!({ "10": 5, "11": 4 });
    for (name, expected) in [
        ("presence_penalty", [&*a, &*b, &*a, &*a].concat()),
        ("frequency_penalty", [&*a, &*b, &*a, &*b].concat()),
        ("repetition_penalty", a.repeat(4)),
    ] {
        assert_eq!(text(json!({ "logit_bias": biases, name: 2 })), expected, "{name}");
    }
}

#[test]
fn parameters_that_change_nothing_are_taken() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let body =
        json!({ "messages": [{ "role": "user", "content": "AB" }], "max_tokens": 4, "temperature": 0 });
    let plain = texts(&server.chat(body.clone()).ok());
    let mut full = body;
    let more = json!({
        "user": "u", "metadata": { "a": "b" }, "store": true, "service_tier": "auto", "n": 1, "stream": false,
        "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "logprobs": false, "stop": null,
        "response_format": { "type": "text" }, "tools": [], "tool_choice": "none", "parallel_tool_calls": true,
        "max_completion_tokens": 4, "top_logprobs": null, "modalities": ["text"], "prediction": null,
        "top_k": -1, "min_p": 0, "safety_identifier": "x", "prompt_cache_key": "y", "stream_options": null,
    });
    full.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(texts(&server.chat(full).ok()), plain);
}

#[test]
fn contents_come_in_parts_and_developers_are_systems() {
    let place = Place::new();
    let mut model = model();
    let template =
        "{% for m in messages %}{{ m.role[0] | upper }}{{ m.content | replace('\\n', '_') }}{% endfor %}";
    model.set("tokenizer.chat_template", Key::Str(template.to_owned()));
    let server = Serving::start(&place, &place.file("roles.gguf", model.bytes()), &[]);
    let chat = |messages: Value| {
        let body = json!({ "messages": messages, "max_tokens": 8, "temperature": 0 });
        texts(&server.chat(body).ok())
    };
    let parts = json!([{ "type": "text", "text": "A" }, { "type": "text", "text": "B" }]);
    let found = chat(json!([
        { "role": "developer", "content": "X" },
        { "role": "user", "content": parts, "name": "N" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
        { "role": "tool", "content": "Y", "tool_call_id": "1" },
    ]));
    let raw = server.complete(json!({ "prompt": "SXUA_BATY", "max_tokens": 8, "temperature": 0 })).ok();
    assert_eq!(found, texts(&raw));
}

#[test]
fn tools_reach_a_template_that_knows_them() {
    let place = Place::new();
    let mut model = model();
    let template = "{% if tools %}{{ tools[0].function.name }}{% endif %}\
        {% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments.X }}{% endfor %}\
        {{ m.content }}{% endfor %}{{ LATE }}";
    model.set("tokenizer.chat_template", Key::Str(template.to_owned()));
    let server = Serving::start(&place, &place.file("tools.gguf", model.bytes()), &[]);
    let tools =
        json!([{ "type": "function", "function": { "name": "F", "parameters": { "type": "object" } } }]);
    let calls = json!([{ "id": "1", "type": "function",
        "function": { "name": "F", "arguments": "{\"X\": \"ARG\"}" } }]);
    let messages = json!([{ "role": "user", "content": "A" }, { "role": "assistant", "tool_calls": calls }]);
    let prompt_tokens = |more: Value| {
        let mut body = json!({ "messages": messages, "max_tokens": 1 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.chat(body).ok()["usage"]["prompt_tokens"].as_u64().unwrap()
    };
    assert_eq!(prompt_tokens(json!({})), 4);
    assert_eq!(prompt_tokens(json!({ "tools": tools })), 5);
    assert_eq!(prompt_tokens(json!({ "tools": tools, "tool_choice": "auto" })), 5);
    assert_eq!(prompt_tokens(json!({ "tools": tools, "tool_choice": "none" })), 4);
    assert_eq!(prompt_tokens(json!({ "chat_template_kwargs": { "LATE": "XYZ" } })), 7);
    // What the server sets is not for clients to set.
    let own = json!({ "messages": [], "tools": tools, "add_generation_prompt": false });
    assert_eq!(prompt_tokens(json!({ "chat_template_kwargs": own })), 4);
}

#[test]
fn an_answer_without_a_limit_fills_the_context() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--context", "50"]);
    let chat = server.chat(json!({ "messages": [{ "role": "user", "content": "ABC" }] })).ok();
    assert_eq!(texts(&chat)[0].1, "length");
    assert_eq!(chat["usage"]["total_tokens"], 50);
    // A limit beyond the context is one.
    let huge = u64::MAX;
    let chat =
        server.chat(json!({ "messages": [{ "role": "user", "content": "ABC" }], "max_tokens": huge })).ok();
    assert_eq!(chat["usage"]["total_tokens"], 50);
    // OpenAI's own limit for completions.
    assert_eq!(server.complete(json!({ "prompt": "ABC" })).ok()["usage"]["completion_tokens"], 16);
}

#[test]
fn a_prefix_is_computed_once() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let body =
        json!({ "prompt": "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOP", "max_tokens": 4, "temperature": 0 });
    let first = server.complete(body.clone()).ok();
    let second = server.complete(body).ok();
    assert_eq!(texts(&first), texts(&second));
    let cached =
        |response: &Value| response["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert_eq!((cached(&first), cached(&second)), (0, 32));
}

/// Greedy and drawn answers, whole and streamed, many at once: each is what it is alone.
#[test]
fn clients_at_once_get_what_they_get_alone() {
    let place = Place::new();
    // Room for some of them only, so that they are preempted too.
    let server = Serving::start(&place, &place.model(), &["--kv-tokens", "512", "--max-sequences", "6"]);
    let bodies: Vec<Value> = (0..8)
        .map(|client: usize| {
            json!({
                "messages": [{ "role": "user", "content": "ABCDEFGH"[client..].repeat(3 + 5 * (client % 3)) }],
                "max_tokens": 20 + 11 * client, "seed": client, "temperature": if client.is_multiple_of(2) { 0.0 } else { 1.2 },
                "stream": client.is_multiple_of(3),
            })
        })
        .collect();
    let answer = |body: &Value| {
        let response = server.chat(body.clone());
        if body["stream"] == true { joined(&events(&response), 0) } else { texts(&response.ok()).remove(0) }
    };
    let alone: Vec<_> = bodies.iter().map(&answer).collect();
    for round in 0..3 {
        std::thread::scope(|scope| {
            let clients: Vec<_> = bodies.iter().map(|body| scope.spawn(|| answer(body))).collect();
            for (client, (thread, expected)) in clients.into_iter().zip(&alone).enumerate() {
                assert_eq!(&thread.join().unwrap(), expected, "client {client}, round {round}");
            }
        });
    }
    server.settled();
}

#[test]
fn the_model_is_listed() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--name", "lab/tiny 1"]);
    assert!(server.greeting.contains("lab/tiny 1") && server.greeting.contains("curl http://127.0.0.1:"));
    let list = server.get("/v1/models").ok();
    assert_eq!(list["object"], "list");
    let model = &list["data"][0];
    assert_eq!(
        (&model["id"], &model["object"], &model["owned_by"]),
        (&json!("lab/tiny 1"), &json!("model"), &json!("halite"))
    );
    assert_eq!(&server.get("/v1/models/lab/tiny%201").ok(), model);
    assert_eq!(&server.get("/v1/models/lab%2Ftiny%201").ok(), model);
    assert_eq!(server.get("/v1/models/other").error(404)["code"], "model_not_found");
    let health = server.get("/health");
    assert_eq!(health.ok()["status"], "ok");
    assert!(health.json()["kv_blocks"]["all"].as_u64().unwrap() > 0);
}
