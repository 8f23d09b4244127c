//! `halite serve`: clients that leave, at whatever moment. Nothing of what they asked for goes on.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use support::http::{Incoming, connect, text};
use support::serving::Serving;
use support::tiny_model::Random;
use support::{Place, endless};

const COMPLETIONS: &str = "/v1/completions";

fn serve(place: &Place, more: &[&str]) -> Serving {
    let model = place.file("endless.gguf", endless().bytes());
    Serving::start(place, &model, &[&["--context", "100000"][..], more].concat())
}

/// An answer that takes minutes.
fn long(stream: bool, n: usize) -> Value {
    json!({ "model": "tiny", "prompt": "AB", "max_tokens": 99_000, "stream": stream, "n": n, "temperature": 0 })
}

fn ask(server: &Serving, body: &Value) -> TcpStream {
    let mut stream = connect(server.address);
    stream.write_all(&text("POST", COMPLETIONS, &[], Some(body.to_string().as_bytes()))).unwrap();
    stream
}

#[test]
fn whoever_leaves_a_stream_ends_it() {
    let place = Place::new();
    let server = serve(&place, &[]);
    let mut incoming = Incoming::head(ask(&server, &long(true, 3)));
    assert_eq!(incoming.status, 200);
    for _ in 0..5 {
        incoming.chunk().unwrap();
    }
    assert_eq!(server.health()["running"], 3);
    drop(incoming);
    server.settled();
}

#[test]
fn whoever_stops_waiting_for_an_answer_ends_it() {
    let place = Place::new();
    let server = serve(&place, &[]);
    let stream = ask(&server, &long(false, 2));
    server.until("running", |health| health["running"] == 2);
    drop(stream);
    server.settled();
    // Half closed is closed too.
    let stream = ask(&server, &long(false, 1));
    server.until("running", |health| health["running"] == 1);
    stream.shutdown(Shutdown::Write).unwrap();
    server.settled();
}

#[test]
fn whoever_leaves_the_queue_is_not_served() {
    let place = Place::new();
    let server = serve(&place, &["--max-sequences", "1"]);
    let first = ask(&server, &long(true, 1));
    server.until("running", |health| health["running"] == 1);
    let (second, third) = (ask(&server, &long(true, 1)), ask(&server, &long(false, 2)));
    server.until("waiting", |health| health["waiting"] == 3);
    drop(second);
    server.until("one less", |health| health["waiting"] == 2);
    drop(third);
    server.until("nobody", |health| health["waiting"] == 0 && health["running"] == 1);
    drop(first);
    server.settled();
}

/// Prompts, whole and half sent; streams and none; one answer and several; left after a random while, some in the
/// middle of a long prompt. In the end every block is back, and an answer is what it was before.
#[test]
fn two_hundred_random_departures_leave_nothing_behind() {
    let place = Place::new();
    let server = serve(&place, &["--kv-tokens", "8192", "--max-sequences", "8"]);
    let probe = json!({ "prompt": "ABCDEFGHIJKLMNOPQRST", "max_tokens": 20, "seed": 1 });
    let before = server.complete(probe.clone()).ok()["choices"].clone();
    let seed = 20_261_129;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut random = Random(seed + thread);
                for _ in 0..50 {
                    let mut below = |limit: u64| (random.bits() % limit) as usize;
                    let mut body = long(below(2) == 0, 1 + below(3));
                    body["prompt"] = "ABC".repeat(1 + below(2) * below(2000)).into();
                    let body = body.to_string();
                    let whole = text("POST", COMPLETIONS, &[], Some(body.as_bytes()));
                    let sent = if below(5) == 0 { below(whole.len() as u64) } else { whole.len() };
                    let mut stream = connect(server.address);
                    stream.write_all(&whole[..sent]).unwrap();
                    match below(3) {
                        0 => {}
                        1 => std::thread::sleep(Duration::from_millis(below(40) as u64)),
                        _ if sent == whole.len() => {
                            // Until something has come, if it is a stream; a refusal (a full cache) is fine too.
                            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                            _ = stream.read(&mut [0; 64]);
                        }
                        _ => {}
                    }
                }
            });
        }
    });
    server.settled();
    assert_eq!(server.complete(probe).ok()["choices"], before, "seed {seed}");
}

/// A client that reads nothing costs its own answer and nobody else's.
#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    let place = Place::new();
    let server = serve(&place, &[]);
    let mut body = long(true, 1);
    body["max_tokens"] = 20_000.into();
    let mut silent = ask(&server, &body);
    server.until("running", |health| health["running"] == 1);
    server.complete(json!({ "prompt": "AB", "max_tokens": 30 })).ok();
    server.settled();
    // It finds all of it when it comes to read.
    let incoming = Incoming::head(silent.try_clone().unwrap());
    let events = support::http::events(&incoming.response());
    assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "length");
    silent.flush().unwrap();
}
