//! A hub that breaks off, lies or is hostile: what came is kept or thrown away, and nothing lands elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![cfg(unix)]

#[path = "support/hub_server.rs"]
mod hub_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use halite_engine::store::{Hub, HubError, HubModel, Phase, StoreError};
use hub_server::{COMMIT, Fault, HubServer, REPO, sha256};
use tempfile::TempDir;

const FILE: &str = "model.gguf";

/// More than goes into one packet, and no two parts alike.
fn content() -> Vec<u8> {
    (0..400_000u64).map(|n| (n * n / 7) as u8).collect()
}

/// A server with one file, large or small, and a cache.
struct Bench {
    server: HubServer,
    cache: TempDir,
}

impl Bench {
    fn new() -> Self {
        let server = HubServer::new();
        server.large(FILE, content());
        Self { server, cache: TempDir::new().unwrap() }
    }

    fn hub(&self) -> Hub {
        Hub::new(self.cache.path())
            .with_endpoint(self.server.endpoint())
            .with_timeout(Duration::from_secs(20))
            .with_retries(0)
    }

    fn pull(&self) -> Result<PathBuf, HubError> {
        pull(&self.hub())
    }

    fn blobs(&self) -> PathBuf {
        self.cache.path().join("models--org--name/blobs")
    }

    /// Names of blobs and of what is to become one.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.blobs()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// What is kept of the file.
    fn partial(&self) -> PathBuf {
        self.blobs().join(format!("{}.halite-part", sha256(&content())))
    }

    /// The file is there, whole.
    fn assert_right(&self, path: &Path) {
        assert_eq!(sha256(&fs::read(path).unwrap()), sha256(&content()));
        assert_eq!(self.names(), [sha256(&content())]);
    }
}

fn pull(hub: &Hub) -> Result<PathBuf, HubError> {
    match hub.pull(&HubModel::parse(REPO).unwrap(), &mut |_| {}) {
        Ok(path) => Ok(path),
        Err(StoreError::Hub(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_broken_download_goes_on_where_it_ended() {
    let bench = Bench::new();
    bench.server.fault(Fault::Cut(150_000));
    let error = bench.pull().unwrap_err();
    let HubError::Interrupted { bytes: got, total: 400_000, .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains("halite pull"), "{error}");
    assert_eq!(got, 150_000);
    assert_eq!(fs::metadata(bench.partial()).unwrap().len(), got);

    // The second try asks for the rest alone, at the hub and at its store, and says what was there.
    bench.server.asked();
    let mut phases = Vec::new();
    let model = HubModel::parse(REPO).unwrap();
    let path = bench.hub().pull(&model, &mut |phase| phases.push(phase)).unwrap();
    let asked = bench.server.asked();
    let ranges: Vec<_> = asked.iter().map(|asked| (asked.place, asked.range.as_deref())).collect();
    assert_eq!(ranges, [("hub", None), ("hub", Some("bytes=150000-")), ("store", Some("bytes=150000-"))]);
    bench.assert_right(&path);
    let first = phases.iter().find(|phase| matches!(phase, Phase::Fetching { .. })).unwrap();
    let expected = Phase::Fetching { file: 1, files: 1, bytes: got, total: 400_000, resumed: got };
    assert_eq!(first, &expected);
}

#[test]
fn small_files_go_on_too() {
    let bench = Bench::new();
    bench.server.state().files.clear();
    bench.server.small(FILE, content()).fault(Fault::Cut(1000));
    assert!(matches!(bench.pull(), Err(HubError::Interrupted { bytes: 1000, .. })));
    bench.server.asked();
    let path = bench.pull().unwrap();
    assert_eq!(bench.server.fetched(), [(FILE.to_owned(), Some("bytes=1000-".to_owned()))]);
    assert_eq!(fs::read(path).unwrap(), content());
}

#[test]
fn one_pull_tries_again_as_long_as_something_comes() {
    let bench = Bench::new();
    for bytes in [100_000, 100_000, 0, 100_000] {
        bench.server.fault(Fault::Cut(bytes));
    }
    let path = pull(&bench.hub().with_retries(1)).unwrap();
    let ranges: Vec<_> = bench.server.fetched().into_iter().map(|(_, range)| range).collect();
    let from = |byte| Some(format!("bytes={byte}-"));
    assert_eq!(ranges, [None, from(100_000), from(200_000), from(200_000), from(300_000)]);
    bench.assert_right(&path);

    let bench = Bench::new();
    for _ in 0..3 {
        bench.server.fault(Fault::Cut(0));
    }
    assert!(matches!(pull(&bench.hub().with_retries(1)), Err(HubError::Interrupted { bytes: 0, .. })));
    let statuses = Bench::new();
    statuses.server.fault(Fault::Status(503, "")).fault(Fault::Status(500, ""));
    pull(&statuses.hub().with_retries(2)).unwrap();
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let bench = Bench::new();
    bench.server.fault(Fault::Stall(1000));
    let error = pull(&bench.hub().with_timeout(Duration::from_millis(300))).unwrap_err();
    assert!(matches!(error, HubError::Interrupted { bytes: 1000, .. }), "{error}");
    assert!(error.to_string().contains("timeout"), "{error}");
    bench.assert_right(&bench.pull().unwrap());

    // One that accepts and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let hub = bench.hub().with_endpoint(silent).with_timeout(Duration::from_millis(300));
    let error = pull(&hub).unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
}

#[test]
fn the_wrong_content_is_deleted_and_named() {
    let bench = Bench::new();
    let wrong = sha256(b"other");
    bench.server.state().files.get_mut(FILE).unwrap().sha256 = wrong.clone();
    let error = bench.pull().unwrap_err();
    let HubError::Mismatch { property: "SHA-256", expected, got, .. } = &error else { panic!("{error}") };
    assert_eq!((expected, got), (&wrong, &sha256(&content())));
    for part in [FILE, expected, got, "deleted"] {
        assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
    }
    assert!(bench.names().is_empty(), "{:?}", bench.names());
}

#[test]
fn what_was_damaged_while_it_waited_is_deleted() {
    let bench = Bench::new();
    bench.server.fault(Fault::Cut(150_000));
    bench.pull().unwrap_err();
    let mut bytes = fs::read(bench.partial()).unwrap();
    bytes[7] ^= 1;
    fs::write(bench.partial(), bytes).unwrap();
    assert!(matches!(bench.pull(), Err(HubError::Mismatch { property: "SHA-256", .. })));
    assert!(bench.names().is_empty());
    bench.assert_right(&bench.pull().unwrap());
}

#[test]
fn leftovers_of_every_length() {
    let bench = Bench::new();
    fs::create_dir_all(bench.blobs()).unwrap();
    for (len, asked) in [(0, Some(None)), (399_999, Some(Some("bytes=399999-".to_owned()))), (400_000, None)]
    {
        fs::write(bench.partial(), &content()[..len]).unwrap();
        let path = bench.pull().unwrap();
        let expected: Vec<_> = asked.into_iter().map(|range| (FILE.to_owned(), range)).collect();
        assert_eq!(bench.server.fetched(), expected, "{len}");
        bench.assert_right(&path);
        fs::remove_file(fs::canonicalize(path).unwrap()).unwrap();
    }
    // Longer than the file: begun anew.
    fs::write(bench.partial(), vec![0; 500_000]).unwrap();
    bench.assert_right(&bench.pull().unwrap());
    assert_eq!(bench.server.fetched(), [(FILE.to_owned(), None)]);
}

#[test]
fn ranges_that_are_not_what_was_asked_for() {
    for fault in [Fault::IgnoreRange, Fault::OtherRange, Fault::Status(416, "")] {
        let bench = Bench::new();
        fs::create_dir_all(bench.blobs()).unwrap();
        fs::write(bench.partial(), &content()[..1000]).unwrap();
        bench.server.fault(fault);
        bench.assert_right(&pull(&bench.hub().with_retries(1)).unwrap());
    }
}

#[test]
fn a_server_that_only_begins_again_is_given_up() {
    // A listing with more bytes than the file has: all of it comes, and then there is no more.
    let bench = Bench::new();
    let lfs = format!(r#"{{"sha256":"{}","size":{}}}"#, sha256(b""), content().len() + 1);
    let listing =
        format!(r#"{{"sha":"{COMMIT}","siblings":[{{"rfilename":"{FILE}","size":1,"lfs":{lfs}}}]}}"#);
    bench.server.state().listing = Some((200, listing));
    assert!(pull(&bench.hub().with_retries(2)).is_err());
    assert!(bench.server.fetched().len() <= 5, "{:?}", bench.server.fetched());

    // The same bytes again and again, whether a range is refused, ignored or another one.
    for range in [Fault::Status(416, ""), Fault::IgnoreRange, Fault::OtherRange] {
        let bench = Bench::new();
        for _ in 0..20 {
            bench.server.fault(Fault::Cut(1000)).fault(range.clone());
        }
        let pulled = pull(&bench.hub().with_retries(2));
        match range {
            Fault::IgnoreRange => bench.assert_right(&pulled.unwrap()),
            _ => assert!(pulled.is_err()),
        }
        assert!(bench.server.fetched().len() <= 5, "{:?}", bench.server.fetched());
    }
}

#[test]
fn bodies_of_the_wrong_size() {
    let bench = Bench::new();
    bench.server.fault(Fault::Shorter(10));
    let error = bench.pull().unwrap_err();
    assert!(matches!(error, HubError::Interrupted { bytes: 399_990, .. }), "{error}");
    bench.server.fault(Fault::Longer(10));
    let error = bench.pull().unwrap_err();
    assert!(matches!(error, HubError::Mismatch { property: "size", .. }), "{error}");
    assert!(bench.names().is_empty());
    bench.server.fault(Fault::Garbage);
    assert!(matches!(bench.pull(), Err(HubError::BadAnswer { .. })));
    bench.assert_right(&bench.pull().unwrap());
}

#[test]
fn a_model_larger_than_the_disk_is_not_begun() {
    let bench = Bench::new();
    let lfs = format!(r#"{{"sha256":"{}","size":{}}}"#, sha256(b""), u64::MAX);
    let listing =
        format!(r#"{{"sha":"{COMMIT}","siblings":[{{"rfilename":"{FILE}","size":1,"lfs":{lfs}}}]}}"#);
    bench.server.state().listing = Some((200, listing));
    let error = bench.pull().unwrap_err();
    assert!(matches!(error, HubError::NoSpace { needed: u64::MAX, .. }), "{error}");
    assert!(bench.server.fetched().is_empty() && bench.names().is_empty());
}

#[test]
fn listings_that_lead_elsewhere_or_nowhere() {
    let bench = Bench::new();
    let (sha, hash) = (COMMIT, sha256(b"x"));
    let file =
        |name: &str| format!(r#"{{"rfilename":"{name}","size":1,"lfs":{{"sha256":"{hash}","size":1}}}}"#);
    let listing = |sha: &str, file: &str| format!(r#"{{"sha":"{sha}","siblings":[{file}]}}"#);
    let hostile = [
        listing("../../../../evil", &file(FILE)),
        listing("", &file(FILE)),
        listing(&"0".repeat(39), &file(FILE)),
        listing(sha, &format!(r#"{{"rfilename":"{FILE}","lfs":{{"sha256":"../../../evil","size":1}}}}"#)),
        listing(sha, &file("../../../evil.gguf")),
        listing(sha, &file("/evil.gguf")),
        listing(sha, &file("a\\\\..\\\\evil.gguf")),
        listing(sha, r#"{"size":1}"#),
        "[".repeat(1 << 20),
        "{".into(),
        String::new(),
    ];
    for body in hostile {
        let shown = body.chars().take(200).collect::<String>();
        bench.server.state().listing = Some((200, body));
        let error = bench.pull().unwrap_err();
        assert!(
            matches!(error, HubError::BadAnswer { .. } | HubError::HostileName { .. }),
            "{shown}: {error}"
        );
    }
    // Nothing was fetched, and nothing stands beside the cache's own folder.
    assert!(bench.server.fetched().is_empty());
    let entries: Vec<_> = fs::read_dir(bench.cache.path()).unwrap().flatten().collect();
    assert!(entries.iter().all(|entry| entry.file_name() == "models--org--name"), "{entries:?}");
}

#[test]
fn headers_that_lead_elsewhere() {
    let bench = Bench::new();
    bench.server.state().bare_listing = true;
    bench.server.state().files.get_mut(FILE).unwrap().sha256 = "../../../../evil".into();
    assert!(matches!(bench.pull(), Err(HubError::BadAnswer { .. })));
    bench.server.state().bare_listing = false;
    bench.server.large(FILE, content());
    for to in ["file:///etc/passwd", "nowhere", "http://user@127.0.0.1/", "//", ""] {
        bench.server.state().redirect = Some(to.into());
        assert!(matches!(bench.pull(), Err(HubError::BadAnswer { .. })), "{to}");
    }
    // Round and round.
    bench.server.state().redirect = Some(format!("/{REPO}/resolve/{COMMIT}/{FILE}"));
    let error = bench.pull().unwrap_err();
    assert!(error.to_string().contains("again and again"), "{error}");
}
