//! OpenAI's own Python client against the server, with the default model. What is checked stands in
//! tests/peers/openai_client.py.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

use std::path::Path;
use std::process::Command;
use support::serving::Serving;

#[test]
fn openais_own_client_gets_what_it_expects() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = root.join("target/peers/python/bin/python");
    assert!(python.exists(), "{} is missing: run `cargo xtask setup`", python.display());
    let server = Serving::default_model(&["--api-key", "sesame"]);
    let url = format!("http://{}/v1", server.address);
    let script = root.join("tests/peers/openai_client.py");
    let run = Command::new(python).arg(script).args([&*url, "sesame", "smollm2-135m"]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}{}", text(&run.stdout), text(&run.stderr));
    server.settled();
}
