//! `halite serve`: connections, heads and bodies, right and wrong.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::time::Duration;
use support::Place;
use support::http::{Incoming, connect, exchange, text};
use support::serving::Serving;

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

fn body() -> Vec<u8> {
    json!({ "model": "tiny", "prompt": "AB", "max_tokens": 3, "temperature": 0 }).to_string().into_bytes()
}

fn answer(response: &support::http::Response) -> Value {
    response.ok()["choices"][0]["text"].clone()
}

#[test]
fn paths_and_methods_that_are_not_there() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    for path in [
        "/",
        "/v1",
        "/v1/chat",
        "/v1/embeddings",
        "/v2/models",
        "/v1/models/",
        "/health/x",
        "/%00",
        "/v1//models",
    ] {
        let error = server.get(path).error(404);
        assert_eq!(error["code"], "unknown_url", "{path}: {error}");
    }
    for (path, status) in [("/v1/models/%ff", 400), ("/v1/models/%00", 404), ("/v1/models/../../x", 404)] {
        let error = server.get(path).error(status);
        assert_eq!(error["param"], "model", "{path}: {error}");
    }
    for (method, path) in [
        ("GET", CHAT),
        ("PUT", CHAT),
        ("OPTIONS", CHAT),
        ("DELETE", COMPLETIONS),
        ("POST", "/v1/models"),
        ("POST", "/health"),
    ] {
        let response = server.send(method, path, &[], None);
        assert_eq!(response.error(405)["code"], "method_not_allowed", "{method} {path}");
        let allowed = if path.contains("completions") { "POST" } else { "GET,HEAD" };
        assert_eq!(response.header("allow"), Some(allowed), "{method} {path}");
    }
    let mut stream = connect(server.address);
    stream.write_all(&text("HEAD", "/health", &["connection: close"], None)).unwrap();
    let mut head = String::new();
    stream.read_to_string(&mut head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn bodies_say_what_they_are() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        let header = format!("content-type: {kind}");
        let response = server.send("POST", COMPLETIONS, &[&header], Some(&body()));
        assert_eq!(response.error(415)["code"], "unsupported_media_type");
    }
    for kind in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
        let header = format!("content-type: {kind}");
        server.send("POST", COMPLETIONS, &[&header], Some(&body())).ok();
    }
    // A body of no length at all is an empty one.
    server.send("POST", COMPLETIONS, &["content-type: application/json"], None).error(400);
}

#[test]
fn large_bodies_are_refused_however_they_come() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--max-body", "10000"]);
    let large = json!({ "model": "tiny", "prompt": "A".repeat(2_000_000) }).to_string();
    let response = server.send("POST", COMPLETIONS, &[], Some(large.as_bytes()));
    assert_eq!(response.error(413)["code"], "request_too_large");
    // In chunks, without a length.
    let head =
        text("POST", COMPLETIONS, &["content-type: application/json", "transfer-encoding: chunked"], None);
    let chunk = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    assert_eq!(
        exchange(server.address, &[&head[..], chunk.as_bytes()].concat()).error(413)["param"],
        Value::Null
    );
    // A client that asks before it sends is told at once, and one that promises too much is not waited for.
    let promise = [
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n",
        "content-length: 99999999999999\r\n\r\n",
    ]
    .concat();
    exchange(server.address, promise.as_bytes()).error(413);
    // At the limit it is a body like others.
    let padding = " ".repeat(10_000 - body().len());
    server.send("POST", COMPLETIONS, &[], Some(&[&body()[..], padding.as_bytes()].concat())).ok();
    server.send("POST", COMPLETIONS, &[], Some(&[&body()[..], padding.as_bytes(), b" "].concat())).error(413);
}

#[test]
fn bodies_may_come_in_pieces_and_after_a_word() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let expected = answer(&server.send("POST", COMPLETIONS, &[], Some(&body())));
    let head =
        text("POST", COMPLETIONS, &["content-type: application/json", "transfer-encoding: chunked"], None);
    let chunks: String = body()
        .iter()
        .map(|byte| format!("1\r\n{}\r\n", char::from(*byte)))
        .chain(["0\r\n\r\n".to_owned()])
        .collect();
    assert_eq!(answer(&exchange(server.address, &[&head[..], chunks.as_bytes()].concat())), expected);
    // Byte by byte.
    let mut stream = connect(server.address);
    for byte in text("POST", COMPLETIONS, &[], Some(&body())) {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(answer(&Incoming::head(stream).response()), expected);
    let whole = text("POST", COMPLETIONS, &["expect: 100-continue"], Some(&body()));
    assert_eq!(answer(&exchange(server.address, &whole)), expected);
}

#[test]
fn connections_serve_one_request_after_the_other() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let expected = answer(&server.send("POST", COMPLETIONS, &[], Some(&body())));
    // Three at once, one of them wrong, and one after them.
    let right = text("POST", COMPLETIONS, &[], Some(&body()));
    let wrong = text("POST", COMPLETIONS, &[], Some(b"{}"));
    let mut stream = connect(server.address);
    stream.write_all(&[&right[..], &wrong, &right].concat()).unwrap();
    let mut again = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    for status in [200, 400, 200] {
        let (response, rest) = Incoming::next(reader).unwrap().finish();
        assert_eq!(response.status, status);
        if status == 200 {
            assert_eq!(answer(&response), expected);
        }
        reader = rest;
    }
    again.write_all(&text("GET", "/health", &["connection: close"], None)).unwrap();
    let (response, mut reader) = Incoming::next(reader).unwrap().finish();
    response.ok();
    assert_eq!(reader.read(&mut [0]).unwrap(), 0, "closed, as it was asked");
}

/// Answers that need no body: the connection is as good afterwards as after any other, or said to end.
#[test]
fn a_connection_outlives_a_refusal() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--max-body", "100000"]);
    let padded = [&body()[..], " ".repeat(90_000).as_bytes()].concat();
    let large = " ".repeat(3_000_000).into_bytes();
    let html = "content-type: text/html";
    for (method, path, headers, sent, status) in [
        ("POST", "/nowhere", &[][..], &padded, 404),
        ("POST", "/health", &[], &padded, 405),
        ("GET", "/health", &[], &padded, 200),
        ("GET", "/v1/models", &[], &padded, 200),
        ("POST", COMPLETIONS, &[html], &padded, 415),
        ("POST", COMPLETIONS, &[], &large, 413),
        ("POST", "/nowhere", &[], &large, 404),
    ] {
        let mut stream = connect(server.address);
        let whole = text(method, path, headers, Some(sent));
        let (first, second) = whole.split_at(whole.len() - 50_000);
        // The rest comes when the answer might have been given already.
        stream.write_all(first).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(second).unwrap();
        let mut again = stream.try_clone().unwrap();
        let (response, reader) = Incoming::head(stream).finish();
        assert_eq!(response.status, status, "{method} {path}");
        assert_eq!(response.header("connection"), None, "{method} {path}");
        again.write_all(&text("POST", COMPLETIONS, &[], Some(&body()))).unwrap();
        Incoming::next(reader).unwrap().response().ok();
    }
    // What will not be waited for.
    let mut stream = connect(server.address);
    stream.write_all(b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n").unwrap();
    let (response, mut reader) = Incoming::head(stream).finish();
    assert_eq!((response.status, response.header("connection")), (404, Some("close")));
    assert_eq!(reader.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn nonsense_closes_the_connection_and_nothing_else() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--read-timeout", "1"]);
    let long_head = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    let many_headers = format!("GET /health HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(2000));
    let cases: [&[u8]; 10] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        long_head.as_bytes(),
        many_headers.as_bytes(),
    ];
    for case in cases {
        let mut stream = connect(server.address);
        _ = stream.write_all(case);
        let mut rest = Vec::new();
        // Reset or closed, with an answer or without one.
        _ = stream.read_to_end(&mut rest);
        let shown = String::from_utf8_lossy(&rest);
        assert!(rest.is_empty() || shown.starts_with("HTTP/1.1 4"), "{shown}");
    }
    server.send("POST", COMPLETIONS, &[], Some(&body())).ok();
}

/// Bodies that arrive together take no more than their room; those that find none are told to come back.
#[test]
fn bodies_share_a_room() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--max-body", "100000", "--max-bodies", "150000"]);
    let padded = [&body()[..], " ".repeat(90_000).as_bytes()].concat();
    let whole = text("POST", COMPLETIONS, &[], Some(&padded));
    let (all_but_one, last) = whole.split_at(whole.len() - 1);
    // Whether there was room for one more.
    let fits = || {
        let mut stream = connect(server.address);
        stream.write_all(&whole).unwrap();
        let mut again = stream.try_clone().unwrap();
        let (response, reader) = Incoming::head(stream).finish();
        if response.status == 200 {
            return true;
        }
        assert_eq!(response.error(503)["code"], "bodies_full");
        assert_eq!((response.header("retry-after"), response.header("connection")), (Some("1"), None));
        // There is room for small ones, on the same connection too.
        again.write_all(&text("POST", COMPLETIONS, &[], Some(&body()))).unwrap();
        Incoming::next(reader).unwrap().response().ok();
        false
    };
    // A body that does not end yet, and whose bytes are there.
    let hold = || loop {
        let mut stream = connect(server.address);
        stream.write_all(all_but_one).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        // Answered already: the other one was first, and there was no room for this one.
        while stream.peek(&mut [0]).is_err() {
            if !fits() {
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                return stream;
            }
        }
    };
    assert!(fits());
    // One that comes to its end gives its room back, and so does one whose client leaves,
    let mut slow = hold();
    slow.write_all(last).unwrap();
    Incoming::head(slow).response().ok();
    while !fits() {}
    drop(hold());
    while !fits() {}
    // and one that is refused.
    let head =
        text("POST", COMPLETIONS, &["content-type: application/json", "transfer-encoding: chunked"], None);
    for _ in 0..5 {
        let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", 120_000, " ".repeat(120_000));
        exchange(server.address, &[&head[..], chunk.as_bytes()].concat()).error(413);
    }
    while !fits() {}
}

#[test]
fn slow_clients_are_given_up() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--read-timeout", "0.3"]);
    // A head that never ends, whatever drips in.
    let mut stream = connect(server.address);
    stream.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
    let mut dripping = stream.try_clone().unwrap();
    let drip = std::thread::spawn(move || {
        while dripping.write_all(b"x: y\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    _ = stream.read_to_end(&mut Vec::new());
    drip.join().unwrap();
    // A connection that says nothing.
    let mut silent = connect(server.address);
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
    // A body that never ends.
    let mut stream = connect(server.address);
    let whole = text("POST", COMPLETIONS, &[], Some(&body()));
    stream.write_all(&whole[..whole.len() - 1]).unwrap();
    assert_eq!(Incoming::head(stream).response().error(408)["code"], "request_timeout");
    server.send("POST", COMPLETIONS, &[], Some(&body())).ok();
    // An answer may take longer than a question.
    let long = json!({ "model": "tiny", "prompt": "AB", "max_tokens": 200, "n": 60 });
    server.post(COMPLETIONS, &long).ok();
}

#[test]
fn clients_that_never_read_are_given_up() {
    let place = Place::new();
    let limits = ["--max-connections", "1", "--write-timeout", "0.3", "--read-timeout", "600"];
    let server = Serving::start(&place, &place.model(), &limits);
    // More than the buffers between two programs of one machine hold.
    let long = json!({ "model": "tiny", "prompt": "AB", "max_tokens": 250, "n": 60, "stream": true });
    let request = text("POST", COMPLETIONS, &[], Some(long.to_string().as_bytes()));
    let mut stream = connect(server.address);
    stream.write_all(&request.repeat(6)).unwrap();
    // Served once the one connection that there may be is free.
    assert_eq!(server.health()["status"], "ok");
    drop(stream);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &["--max-connections", "2", "--read-timeout", "60"]);
    let (first, second) = (connect(server.address), connect(server.address));
    let mut third = connect(server.address);
    third.write_all(&text("GET", "/health", &[], None)).unwrap();
    third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(third.read(&mut [0]).is_err(), "answered beyond the limit");
    drop(first);
    third.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Incoming::head(third).response().ok();
    drop(second);
}

#[test]
fn the_key_opens_everything_but_the_health() {
    let place = Place::new();
    let model = place.model();
    let open = |server: &Serving| {
        let right = ["authorization: Bearer sesame"];
        server.send("GET", "/v1/models", &right, None).ok();
        server.send("POST", COMPLETIONS, &right, Some(&body())).ok();
        server.get("/health").ok();
        for wrong in [
            &[][..],
            &["authorization: Bearer sesam"],
            &["authorization: sesame"],
            &["authorization: Bearer sesame2"],
        ] {
            for (method, path) in
                [("GET", "/v1/models"), ("POST", COMPLETIONS), ("POST", CHAT), ("GET", "/nowhere")]
            {
                let response = server.send(method, path, wrong, Some(&body()));
                assert_eq!(response.error(401)["code"], "invalid_api_key", "{wrong:?} {path}");
                assert_eq!(response.header("www-authenticate"), Some("Bearer"));
                assert!(!response.body.contains("sesam"));
            }
        }
    };
    open(&Serving::start(&place, &model, &["--api-key", "sesame"]));
    let mut command = place.command(&["serve", "-m", &model, "--name", "tiny"]);
    command.env("HALITE_API_KEY", "sesame");
    open(&Serving::run(command));
}

/// A line a request, with what was counted, and no word of what was said.
#[test]
#[cfg(unix)]
fn requests_are_logged_without_their_texts() {
    let place = Place::new();
    let server = Serving::start(&place, &place.model(), &[]);
    let chat =
        json!({ "messages": [{ "role": "user", "content": "SECRET" }], "max_tokens": 7, "temperature": 0 });
    let said =
        server.chat(chat.clone()).ok()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let mut streamed = chat;
    streamed["stream"] = true.into();
    server.chat(streamed);
    server.chat(json!({ "messages": "SECRET" })).error(400);
    server.get("/nowhere%0a?SECRET=1").error(404);
    server.signal("-TERM");
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("request_log")).collect();
    assert_eq!(lines.len(), 4, "{log}");
    for line in &lines[..2] {
        for part in ["POST", CHAT, "status=200", "prompt_tokens=7", "completion_tokens=7", "complete"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
    assert!(lines[2].contains("status=400") && lines[3].contains("status=404"), "{log}");
    assert!(!log.contains("SECRET") && !log.contains(&said), "{log}");
}
