//! The server when what computes fails: what is lost is what was in the step, and everybody is told.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use halite_cpu::{Cpu, Options};
use halite_engine::gguf::GgufFile;
use halite_engine::model::load_runner;
use halite_engine::model_file::ModelTexts;
use halite_engine::runner::{ModelInfo, Runner, StepBatch, StepLimits, StepOutput};
use halite_engine::text::{Tokenizer, VocabularySource};
use halite_engine::{Engine, EngineError, EngineOptions, KvCapacity};
use halite_server::serve::{SamplingDefaults, ServeOptions, Server};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use support::http::{Response, exchange, text};
use support::model;

/// What befalls a runner.
#[derive(Clone, Copy)]
enum Fate {
    /// The device reports an error.
    Fails,
    /// A fault of the program.
    Panics,
    /// Tokens that no vocabulary has, as padded output layers can give.
    Babbles,
}

/// A runner that works until a step.
struct Doomed {
    inner: Box<dyn Runner>,
    steps: usize,
    at: usize,
    fate: Fate,
}

impl Runner for Doomed {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn limits(&self) -> StepLimits {
        self.inner.limits()
    }

    fn step(&mut self, batch: &StepBatch) -> Result<StepOutput, EngineError> {
        self.steps += 1;
        let mut output = self.inner.step(batch)?;
        match self.fate {
            _ if self.steps != self.at => {}
            Fate::Fails => {
                let cause = "the cable fell out".to_owned();
                return Err(halite_hal::Error::Device { device: "test".to_owned(), cause }.into());
            }
            Fate::Panics => panic!("a fault of the program's own, for the test"),
            Fate::Babbles => output.tokens.iter_mut().for_each(|token| *token = 1 << 20),
        }
        Ok(output)
    }

    fn export_blocks(&mut self, blocks: &[u32]) -> Result<Vec<u8>, EngineError> {
        self.inner.export_blocks(blocks)
    }

    fn import_blocks(&mut self, blocks: &[u32], bytes: &[u8]) -> Result<(), EngineError> {
        self.inner.import_blocks(blocks, bytes)
    }
}

fn engine(at: usize, fate: Fate) -> Engine {
    let file = GgufFile::from_bytes(model().bytes()).unwrap();
    let options = EngineOptions::new().kv(KvCapacity::Tokens(1024));
    let cpu = Cpu::new(Options::default().threads(1)).unwrap();
    let inner = load_runner(cpu, &file, &options, &mut |_| {}).unwrap();
    let tokenizer = Tokenizer::new(VocabularySource::from_gguf(file.metadata()).unwrap()).unwrap();
    Engine::new(Box::new(Doomed { inner, steps: 0, at, fate }), ModelTexts::new(tokenizer, None), &options)
        .unwrap()
}

fn server(at: usize, fate: Fate) -> Server {
    let mut server = Server::bind("127.0.0.1", 0, ServeOptions::new("tiny")).unwrap();
    server.serve(engine(at, fate), SamplingDefaults::new()).unwrap();
    server
}

fn complete(address: SocketAddr, stream: bool) -> Response {
    let body =
        json!({ "model": "tiny", "prompt": "AB", "max_tokens": 10, "n": 2, "seed": 1, "stream": stream });
    exchange(address, &text("POST", "/v1/completions", &[], Some(body.to_string().as_bytes())))
}

fn health(address: SocketAddr) -> Response {
    exchange(address, &text("GET", "/health", &[], None))
}

/// The error that a stream ends with.
fn last_error(response: &Response) -> Value {
    assert_eq!(response.status, 200);
    let (_, last) = response.body.rsplit_once("event: error\ndata: ").unwrap();
    support::json(last.trim_end())["error"].clone()
}

#[test]
fn a_failing_step_is_an_error_and_the_next_request_is_served() {
    // Before the first token and after some.
    for at in [1, 5] {
        for stream in [false, true] {
            let server = server(at, Fate::Fails);
            let failed = complete(server.address(), stream);
            let error = if stream { last_error(&failed) } else { failed.error(500) };
            assert_eq!(error["code"], "internal_error");
            assert!(error["message"].as_str().unwrap().contains("the cable fell out"), "{error}");
            let served = complete(server.address(), false).ok();
            assert_eq!(served["usage"]["completion_tokens"], 20);
            let health = health(server.address()).ok();
            assert_eq!(health["kv_blocks"]["used"], 0, "{health}");
            server.stop();
        }
    }
}

#[test]
fn without_its_engine_a_server_says_so() {
    for stream in [false, true] {
        let server = server(4, Fate::Panics);
        let failed = complete(server.address(), stream);
        let error = if stream { last_error(&failed) } else { failed.error(503) };
        assert_eq!(error["code"], "engine_failed");
        // The thread may still be unwinding.
        let started = std::time::Instant::now();
        while health(server.address()).status == 200 {
            assert!(started.elapsed() < Duration::from_secs(30), "still healthy");
            std::thread::sleep(Duration::from_millis(5));
        }
        let health = health(server.address());
        assert_eq!((health.status, &health.json()["status"]), (503, &json!("failed")));
        assert_eq!(complete(server.address(), false).error(503)["code"], "engine_failed");
        assert_eq!(complete(server.address(), true).error(503)["code"], "engine_failed");
        server.stop();
    }
}

#[test]
fn tokens_that_are_no_text_are_no_error() {
    let whole = server(usize::MAX, Fate::Babbles);
    let expected = complete(whole.address(), false).ok()["choices"][0]["text"].as_str().unwrap().to_owned();
    whole.stop();
    let server = server(9, Fate::Babbles);
    // The next step cannot compute such a token, and says so.
    let failed = complete(server.address(), true);
    assert!(failed.status == 200, "{failed:?}");
    complete(server.address(), false).ok()["choices"][0]["text"]
        .as_str()
        .map(|text| assert_eq!(text, expected))
        .unwrap();
    server.stop();
}

#[test]
fn before_its_model_is_there_a_server_says_so() {
    let server = Server::bind("127.0.0.1", 0, ServeOptions::new("tiny")).unwrap();
    let response = health(server.address());
    assert_eq!((response.status, &response.json()["status"]), (503, &json!("loading")));
    let response = complete(server.address(), true);
    assert_eq!(response.error(503)["code"], "loading");
    assert_eq!(response.header("retry-after"), Some("1"));
    exchange(server.address(), &text("GET", "/v1/models", &[], None)).error(503);
    exchange(server.address(), &text("GET", "/nowhere", &[], None)).error(404);
    server.stop();
}
