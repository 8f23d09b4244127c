//! Public items against those of the baseline commit, by cargo-semver-checks.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::built::CARGO_SEMVER_CHECKS;
use crate::command::Invocation;
use crate::public_items;
use crate::runner::every;
use crate::workspace::{Workspace, text};

/// The version of every crate of the workspace, this one's too.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The crates that people link.
const LIBRARIES: &[&str] =
    &["halite-hal", "halite-kernels", "halite-cpu", "halite", "halite-engine", "halite-parity"];

/// Fails where an item changed more than the version did.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let file = root.join("xtask").join("semver-baseline");
    let named = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let baseline = found(root, commit(&named)?)?;
    let manifest = Invocation::new("git", &["show", &format!("{baseline}:Cargo.toml")], "install git");
    if let Some(note) = allowed(version(&String::from_utf8(manifest.capture(root)?)?), VERSION) {
        eprintln!("    {note}");
    }
    let now = public_items::write(workspace, root, "now")?;
    let before = public_items::write(workspace, &public_items::checkout(workspace, baseline)?, "baseline")?;
    every(LIBRARIES.iter().map(|library| {
        let file = library.replace('-', "_") + ".json";
        let (now, before) = (now.join(&file), before.join(&file));
        let files = ["--current-rustdoc", text(&now)?, "--baseline-rustdoc", text(&before)?];
        CARGO_SEMVER_CHECKS
            .command(workspace, &[&["semver-checks", "check-release"], &files[..]].concat())
            .run(root)
    }))
    .context(
        "a public item changed in a way that needs a new version: take the change back, or raise the version in \
         Cargo.toml (CONTRIBUTING.md, \"Versions\")",
    )
}

/// What to say where the version was raised already, so that every change is allowed and none is looked for.
fn allowed(baseline: &str, now: &str) -> Option<String> {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    (minor(baseline) != minor(now)).then(|| {
        format!(
            "NOTHING IS COMPARED: the baseline is {baseline} and this is {now}, which allows every change. Once the \
             public items of {now} stand, put that commit into xtask/semver-baseline"
        )
    })
}

/// The workspace's version in a manifest.
fn version(manifest: &str) -> &str {
    let value = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    value.unwrap_or_default().trim().trim_matches('"')
}

/// The one commit that the file names, besides comments.
fn commit(text: &str) -> Result<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let found = lines.next().filter(|line| line.len() == 40 && line.bytes().all(|b| b.is_ascii_hexdigit()));
    match (found, lines.next()) {
        (Some(commit), None) => Ok(commit),
        _ => bail!("xtask/semver-baseline: expected one line of 40 hexadecimal digits, a commit"),
    }
}

/// The baseline, fetched where a shallow clone lacks it; `HEAD`, with a note, where it cannot be had.
fn found<'c>(root: &Path, commit: &'c str) -> Result<&'c str> {
    let git = |arguments: &[&str]| Invocation::new("git", arguments, "install git").capture_line(root);
    let object = format!("{commit}^{{commit}}");
    let here = || git(&["cat-file", "-e", &object]);
    if here().is_ok() {
        return Ok(commit);
    }
    let shallow =
        git(&["rev-parse", "--is-shallow-repository"]).context("this is no git repository")? == "true";
    let fetch: &[&str] = if shallow { &["fetch", "--quiet", "--unshallow"] } else { &["fetch", "--quiet"] };
    eprintln!("    this clone lacks the baseline commit {commit}; $ git {}", fetch.join(" "));
    match git(fetch).and_then(|_| here()) {
        Ok(_) => Ok(commit),
        Err(error) => {
            eprintln!("    NOTHING IS COMPARED: the baseline commit cannot be had ({error:#})");
            Ok("HEAD")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_one_commit() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(commit(&format!("# of 1.0\n\n{id}\n")).unwrap(), id);
        for bad in ["", "# none\n", "main\n", &format!("{id}\n{id}\n"), &id[1..]] {
            assert!(commit(bad).is_err(), "{bad}");
        }
        commit(include_str!("../semver-baseline")).unwrap();
    }

    #[test]
    fn a_raised_version_is_said_to_allow_everything() {
        let manifest = "[workspace.package]\nversion = \"0.1.3\"\n[workspace.dependencies]\n";
        assert_eq!(version(manifest), "0.1.3");
        assert!(allowed("0.1.3", "0.1.4").is_none());
        assert!(allowed("0.1.3", "0.2.0").unwrap().starts_with("NOTHING IS COMPARED"));
    }

    #[test]
    fn a_shallow_clone_fetches_the_baseline() {
        let (origin, clone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let git = |folder: &Path, arguments: &[&str]| {
            let named = ["-c", "user.name=n", "-c", "user.email=e"];
            Invocation::new("git", &[&named[..], arguments].concat(), "install git").capture_line(folder)
        };
        git(origin.path(), &["init"]).unwrap();
        for message in ["first", "second"] {
            git(origin.path(), &["commit", "--allow-empty", "-m", message]).unwrap();
        }
        let first = git(origin.path(), &["rev-parse", "HEAD~1"]).unwrap();
        assert_eq!(found(origin.path(), &first).unwrap(), first);
        // A path alone would be copied whole.
        let url = format!("file://{}", origin.path().display());
        git(clone.path(), &["clone", "--depth", "1", &url, "."]).unwrap();
        let has = || git(clone.path(), &["cat-file", "-e", &format!("{first}^{{commit}}")]).is_ok();
        assert!(!has());
        assert_eq!(found(clone.path(), &first).unwrap(), first);
        assert!(has());
        assert_eq!(found(clone.path(), &"0".repeat(40)).unwrap(), "HEAD");
    }
}
