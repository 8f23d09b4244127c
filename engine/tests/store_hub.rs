//! Fetching from a hub: what is chosen, where it is kept, who sees the token.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![cfg(unix)]

#[path = "support/hub_server.rs"]
mod hub_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use halite_engine::model_file;
use halite_engine::safetensors::SafetensorsFolder;
use halite_engine::store::{Hub, HubError, HubModel, Phase, StoreError};
use halite_engine::text::{ChatInput, ChatMessage};
use hub_server::{COMMIT, HubServer, REPO, sha256};
use tempfile::TempDir;

/// A safetensors file with one tensor, `name`.
fn weights(name: &str) -> Vec<u8> {
    let header = format!(r#"{{"{name}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#);
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &1f32.to_le_bytes()].concat()
}

/// A server with a small model, and a cache.
struct Bench {
    server: HubServer,
    cache: TempDir,
}

impl Bench {
    /// Nothing in the repository yet.
    fn empty() -> Self {
        Self { server: HubServer::new(), cache: TempDir::new().unwrap() }
    }

    fn new() -> Self {
        let bench = Self::empty();
        let server = &bench.server;
        server
            .small("config.json", "{}")
            .small("tokenizer_config.json", "{ }")
            .small("README.md", "# A model");
        server.large("tokenizer.json", "{  }").large("model.safetensors", weights("w"));
        bench
    }

    fn hub(&self) -> Hub {
        Hub::new(self.cache.path())
            .with_endpoint(self.server.endpoint())
            .with_timeout(Duration::from_secs(20))
            .with_retries(0)
    }

    fn pull(&self) -> Result<PathBuf, StoreError> {
        self.hub().pull(&model(), &mut |_| {})
    }

    /// The error of the hub that a pull ends with.
    fn refused(&self) -> HubError {
        match self.pull().unwrap_err() {
            StoreError::Hub(error) => error,
            error => panic!("{error}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.cache.path().join("models--org--name").join(name)
    }
}

fn model() -> HubModel {
    HubModel::parse(REPO).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_model_is_fetched_once_into_the_hubs_layout() {
    let bench = Bench::new();
    assert_eq!(bench.hub().cached(&model()), None);
    let mut phases = Vec::new();
    let folder = bench.hub().pull(&model(), &mut |phase| phases.push(phase)).unwrap();
    assert_eq!(folder, bench.path("snapshots").join(COMMIT));
    assert_eq!(
        names(&folder),
        ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    );
    // As other programs expect it: links to blobs named by their hash, and a branch that is at the commit.
    let link = fs::read_link(folder.join("model.safetensors")).unwrap();
    assert_eq!(link, Path::new("../../blobs").join(sha256(&weights("w"))));
    assert_eq!(fs::read_to_string(bench.path("refs/main")).unwrap(), COMMIT);
    assert_eq!(names(&bench.path("blobs")).len(), 4);
    assert!(SafetensorsFolder::open(&folder).unwrap().tensor("w").is_some());

    let total = (2 + 3 + 4 + weights("w").len()) as u64;
    assert_eq!(phases[0], Phase::Listing);
    let last = Phase::Fetching { file: 4, files: 4, bytes: total, total, resumed: 0 };
    assert_eq!(phases.last(), Some(&last), "{phases:?}");

    // The second time only the listing is asked for, and without asking it is found.
    bench.server.asked();
    assert_eq!(bench.pull().unwrap(), folder);
    let asked = bench.server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].path, format!("/api/models/{REPO}/revision/main?blobs=true"));
    assert_eq!(bench.hub().cached(&model()).unwrap(), folder);
    assert_eq!(bench.hub().obtain(&model(), &mut |_| {}).unwrap(), folder);
    assert!(bench.server.asked().is_empty());
}

/// Every file that a model folder may have is there after a pull, in its own folder, and is used.
#[test]
fn a_pulled_model_has_all_its_texts() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models/llama2");
    let bench = Bench::empty();
    for name in ["config.json", "generation_config.json", "tokenizer_config.json"] {
        bench.server.small(name, fs::read(fixture.join(name)).unwrap());
    }
    for name in ["tokenizer.json", "model.safetensors"] {
        bench.server.large(name, fs::read(fixture.join(name)).unwrap());
    }
    let tool_use = "additional_chat_templates/tool_use.jinja";
    bench.server.small("special_tokens_map.json", "{}").small("chat_template.jinja", "plain");
    bench.server.small(tool_use, "with tools").small("additional_chat_templates/rag.jinja", "rag");
    let folder = bench.pull().unwrap();
    assert_eq!(names(&folder.join("additional_chat_templates")), ["tool_use.jinja"]);
    assert_eq!(names(&folder).len(), 8);
    assert_eq!(bench.hub().cached(&model()).unwrap(), folder);

    let texts = model_file::open(&folder).unwrap().texts().unwrap();
    let mut input = texts.chat_input(vec![ChatMessage::new("user", "A")]);
    let said = |input: &ChatInput| texts.tokenizer().decode(&texts.chat_prompt(input).unwrap()).unwrap();
    assert!(said(&input).ends_with("plain"));
    input.tools = Some(serde_json::json!([{ "type": "function" }]));
    assert!(said(&input).ends_with("with tools"));
}

#[test]
fn revisions_have_their_own_names() {
    let bench = Bench::new();
    for revision in ["v1.0", "refs/pr/1", COMMIT] {
        let model = HubModel::parse(&format!("{REPO}@{revision}")).unwrap();
        let folder = bench.hub().pull(&model, &mut |_| {}).unwrap();
        assert_eq!(bench.hub().cached(&model).unwrap(), folder);
    }
    let paths: Vec<_> = bench.server.asked().into_iter().map(|asked| asked.path).collect();
    assert!(paths.contains(&format!("/api/models/{REPO}/revision/refs%2Fpr%2F1?blobs=true")), "{paths:?}");
    // What was fetched for one is there for the others.
    assert_eq!(paths.iter().filter(|path| path.contains("/resolve/")).count(), 4, "{paths:?}");
    assert_eq!(fs::read_to_string(bench.path("refs/refs/pr/1")).unwrap(), COMMIT);
    assert_eq!(bench.hub().cached(&model()), None);
}

#[test]
fn shards_come_as_the_index_names_them() {
    let bench = Bench::empty();
    let [first, second] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let index = format!(r#"{{"weight_map":{{"a":"{first}","b":"{second}"}}}}"#);
    bench.server.small("config.json", "{}").small("model.safetensors.index.json", index);
    bench.server.large(first, weights("a")).large(second, weights("b")).large("other.safetensors", "other");
    let folder = bench.pull().unwrap();
    assert_eq!(names(&folder), ["config.json", first, second, "model.safetensors.index.json"]);
    assert_eq!(SafetensorsFolder::open(&folder).unwrap().tensors().len(), 2);

    // Without one of them the model is not complete, and only that one is fetched.
    let blob = fs::canonicalize(folder.join(second)).unwrap();
    fs::remove_file(blob).unwrap();
    assert_eq!(bench.hub().cached(&model()), None);
    bench.server.asked();
    bench.pull().unwrap();
    assert_eq!(bench.server.fetched(), [(second.to_owned(), None)]);
    assert!(bench.hub().cached(&model()).is_some());
}

#[test]
fn gguf_repositories_give_one_file() {
    let bench = Bench::empty();
    bench.server.large("Q4 K/b.gguf", "GGUF b").small("README.md", "");
    let path = bench.pull().unwrap();
    assert_eq!(path, bench.path("snapshots").join(COMMIT).join("Q4 K/b.gguf"));
    assert_eq!(fs::read(&path).unwrap(), b"GGUF b");
    assert_eq!(bench.hub().cached(&model()).unwrap(), path);

    bench.server.large("a.gguf", "GGUF a");
    let error = bench.refused();
    assert!(matches!(error, HubError::ChooseFile { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("--file") && text.contains("a.gguf") && text.contains("Q4 K/b.gguf"), "{text}");
    let chosen = model().with_file("a.gguf").unwrap();
    assert_eq!(bench.hub().cached(&chosen), None);
    let path = bench.hub().pull(&chosen, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"GGUF a");
    assert_eq!(bench.hub().cached(&chosen).unwrap(), path);
    // Which of the two is meant is not known now.
    assert_eq!(bench.hub().cached(&model()), None);
}

#[test]
fn mirrors_that_list_names_only() {
    let bench = Bench::new();
    bench.server.state().bare_listing = true;
    let folder = bench.pull().unwrap();
    assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), weights("w"));
    let blob = fs::read_link(folder.join("tokenizer.json")).unwrap();
    assert!(blob.ends_with(sha256(b"{  }")), "{blob:?}");
    let heads = bench.server.asked().into_iter().filter(|asked| asked.method == "HEAD");
    assert!(heads.clone().count() == 4 && heads.into_iter().all(|asked| asked.place == "hub"));
    // The hash that the hub's headers give is held against the content.
    let other = Bench::new();
    other.server.state().bare_listing = true;
    other.server.state().files.get_mut("model.safetensors").unwrap().sha256 = sha256(b"other");
    assert!(matches!(other.refused(), HubError::Mismatch { property: "SHA-256", .. }));
}

#[test]
fn the_token_is_for_the_hub_alone() {
    let bench = Bench::new();
    bench.server.state().token = Some("hf_secret".into());
    let hub = bench.hub().with_token("hf_secret");
    assert!(!format!("{hub:?}").contains("hf_secret"));
    for (bare, renamed) in [(false, false), (true, false), (true, true)] {
        bench.server.state().bare_listing = bare;
        bench.server.state().renamed = renamed;
        let cache = TempDir::new().unwrap();
        let hub = Hub::new(cache.path()).with_endpoint(bench.server.endpoint()).with_token("hf_secret");
        hub.pull(&model(), &mut |_| {}).unwrap();
    }
    let asked = bench.server.asked();
    let (hub, store): (Vec<_>, Vec<_>) = asked.iter().partition(|asked| asked.place == "hub");
    assert!(hub.iter().all(|asked| asked.token.as_deref() == Some("Bearer hf_secret")), "{hub:?}");
    assert!(store.len() == 6 && store.iter().all(|asked| asked.token.is_none()), "{store:?}");
}

#[test]
fn gated_models_say_how_to_give_a_token() {
    let bench = Bench::new();
    bench.server.state().token = Some("hf_secret".into());
    let error = bench.refused();
    assert!(matches!(error, HubError::NeedsToken { status: 401, with_token: false, .. }), "{error}");
    for part in ["gated", "HF_TOKEN", "no token was sent", &format!("{}/{REPO}", bench.server.endpoint())] {
        assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
    }
    let wrong = bench.hub().with_token("hf_other").pull(&model(), &mut |_| {}).unwrap_err().to_string();
    assert!(wrong.contains("may not read it") && !wrong.contains("hf_other"), "{wrong}");
    let spaced = bench.hub().with_token("hf other").pull(&model(), &mut |_| {}).unwrap_err().to_string();
    assert!(spaced.contains("token") && !spaced.contains("hf other"), "{spaced}");
    // Nothing that looks like a model is left.
    assert_eq!((bench.hub().cached(&model()), names(&bench.path("snapshots")).len()), (None, 0));
}

#[test]
fn what_is_not_there_is_said() {
    let bench = Bench::new();
    bench.server.state().listing = Some((404, "Repository not found".into()));
    let error = bench.refused();
    assert!(matches!(error, HubError::NoSuchRepo { .. }) && error.to_string().contains(REPO), "{error}");
    bench.server.state().listing = Some((403, String::new()));
    assert!(matches!(bench.refused(), HubError::NeedsToken { status: 403, .. }));
    bench.server.state().listing = Some((503, String::new()));
    assert!(matches!(bench.refused(), HubError::Status { status: 503, .. }));
    bench.server.state().listing = Some((429, String::new()));
    assert!(bench.refused().to_string().contains("too many requests"));
    bench.server.state().listing = None;
    bench.server.state().listed_only.push("generation_config.json".into());
    let error = bench.refused();
    assert!(matches!(error, HubError::Status { status: 404, .. }), "{error}");
    assert!(error.to_string().contains("generation_config.json"), "{error}");
}

#[test]
fn without_a_network_the_cache_is_told() {
    let bench = Bench::new();
    let nobody = "http://127.0.0.1:1";
    let hub = bench.hub().with_endpoint(nobody);
    let error = hub.pull(&model(), &mut |_| {}).unwrap_err().to_string();
    for part in ["127.0.0.1:1", "org/name is no path", "no whole model", "network"] {
        assert!(error.contains(part), "{part:?} is missing in {error}");
    }
    let folder = bench.pull().unwrap();
    let error = hub.pull(&model(), &mut |_| {}).unwrap_err().to_string();
    assert!(
        error.contains("can be used without the hub") && error.contains(folder.to_str().unwrap()),
        "{error}"
    );
    assert_eq!(hub.obtain(&model(), &mut |_| {}).unwrap(), folder);
    let other = HubModel::parse("org/other").unwrap();
    let error = hub.pull(&other, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("has org/name"), "{error}");
    for endpoint in ["", "huggingface.co", "ftp://x"] {
        let error = bench.hub().with_endpoint(endpoint).pull(&model(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("HF_ENDPOINT"), "{error}");
    }
}

#[test]
fn blobs_of_other_programs_are_used_once_they_are_checked() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("blobs")).unwrap();
    let good = bench.path("blobs").join(sha256(&weights("w")));
    fs::write(&good, weights("w")).unwrap();
    // The right size, and damaged.
    fs::write(bench.path("blobs").join(sha256(b"{  }")), "{xx}").unwrap();
    let folder = bench.pull().unwrap();
    let fetched: Vec<_> = bench.server.fetched().into_iter().map(|(name, _)| name).collect();
    assert!(!fetched.contains(&"model.safetensors".into()), "{fetched:?}");
    assert!(fetched.contains(&"tokenizer.json".into()), "{fetched:?}");
    assert_eq!(fs::read(folder.join("tokenizer.json")).unwrap(), b"{  }");
}

#[test]
fn a_snapshot_that_another_program_made_is_not_taken_for_complete() {
    let bench = Bench::new();
    let snapshot = bench.path("snapshots").join(COMMIT);
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(bench.path("refs")).unwrap();
    fs::write(bench.path("refs/main"), COMMIT).unwrap();
    fs::write(snapshot.join("config.json"), "{}").unwrap();
    fs::write(snapshot.join("model.safetensors"), weights("w")).unwrap();
    assert_eq!(bench.hub().cached(&model()), None);
    let folder = bench.hub().obtain(&model(), &mut |_| {}).unwrap();
    assert!(folder.join("tokenizer.json").exists());
}

#[test]
fn pulls_at_the_same_time_fetch_once() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| bench.pull().unwrap());
        }
    });
    assert_eq!(bench.server.fetched().len(), 4);
}
