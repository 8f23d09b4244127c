//! `halite serve`: its end.
#![cfg(unix)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use support::http::{Incoming, connect, text};
use support::serving::Serving;
use support::{Place, endless};

const COMPLETIONS: &str = "/v1/completions";

fn ask(server: &Serving, max_tokens: usize, stream: bool) -> TcpStream {
    let body = json!({ "model": "tiny", "prompt": "AB", "max_tokens": max_tokens, "stream": stream, "temperature": 0 });
    let mut stream = connect(server.address);
    stream.write_all(&text("POST", COMPLETIONS, &[], Some(body.to_string().as_bytes()))).unwrap();
    stream
}

fn serve(place: &Place, more: &[&str]) -> Serving {
    let model = place.file("endless.gguf", endless().bytes());
    Serving::start(place, &model, &[&["--context", "1000000"][..], more].concat())
}

#[test]
fn what_runs_is_finished_and_what_is_new_refused() {
    let place = Place::new();
    let server = serve(&place, &[]);
    let mut stream = Incoming::head(ask(&server, 3000, true));
    stream.chunk().unwrap();
    let whole = ask(&server, 3000, false);
    // Half a question, and a connection that has asked before.
    let body = json!({ "model": "tiny", "prompt": "AB" }).to_string();
    let late = text("POST", COMPLETIONS, &[], Some(body.as_bytes()));
    let mut half = connect(server.address);
    half.write_all(&late[..late.len() - 5]).unwrap();
    server.until("two running", |health| health["running"] == 2);
    server.signal("-TERM");
    while TcpStream::connect(server.address).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    half.write_all(&late[late.len() - 5..]).unwrap();
    let refused = Incoming::head(half).response();
    assert_eq!(refused.error(503)["code"], "shutting_down");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let streamed = support::http::events(&stream.response());
    assert_eq!(streamed.last().unwrap()["choices"][0]["finish_reason"], "length");
    let whole = Incoming::head(whole).response().ok();
    assert_eq!(whole["usage"]["completion_tokens"], 3000);
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
}

/// The bound on it, or a second signal.
#[test]
fn what_takes_too_long_is_told_so() {
    let place = Place::new();
    for (timeout, signals) in [("0.2", 1), ("3600", 2)] {
        let server = serve(&place, &["--shutdown-timeout", timeout]);
        let mut stream = Incoming::head(ask(&server, 900_000, true));
        stream.chunk().unwrap();
        let whole = ask(&server, 900_000, false);
        server.until("two running", |health| health["running"] == 2);
        server.signal("-INT");
        while TcpStream::connect(server.address).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if signals == 2 {
            server.signal("-INT");
        }
        let streamed = stream.response().body;
        let (_, last) = streamed.trim_end().rsplit_once("\n\n").unwrap();
        let data = last.strip_prefix("event: error\ndata: ").unwrap_or_else(|| panic!("{last:?}"));
        assert_eq!(support::json(data)["error"]["code"], "shutting_down");
        assert_eq!(Incoming::head(whole).response().error(503)["code"], "shutting_down");
        let (code, log) = server.wait();
        assert_eq!(code, Some(0), "{log}");
    }
}

#[test]
fn an_idle_server_ends_at_once() {
    let place = Place::new();
    let server = serve(&place, &["--shutdown-timeout", "3600"]);
    // A connection that is kept open and says nothing more.
    let mut idle = connect(server.address);
    idle.write_all(&text("GET", "/health", &[], None)).unwrap();
    let (response, _idle) = Incoming::head(idle).finish();
    response.ok();
    server.signal("-INT");
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_port_that_is_taken_is_named_before_the_model_is_loaded() {
    let place = Place::new();
    let server = serve(&place, &[]);
    let port = server.address.port().to_string();
    place.halite(&["serve", "-m", "/nowhere.gguf", "--port", &port]).failure(&["127.0.0.1", &port, "in use"]);
    place.halite(&["serve", "-m", "/nowhere.gguf", "--port", "0"]).failure(&["/nowhere.gguf"]);
    place.halite(&["serve", "--host", "no such host", "--port", "0"]).failure(&["no such host"]);
}
