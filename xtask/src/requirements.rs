//! What the checks need on the machine: looked for, installed where that may be done, named otherwise.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::command::Invocation;
use crate::workspace::Workspace;

/// The release of cargo-deny that deny.toml is written for.
const CARGO_DENY: &str = "0.20.2";

const APT_UPDATE: &[&str] = &["update"];
const APT_INSTALL: &[&str] = &["install", "-y", "--no-install-recommends", "python3", "python3-pip"];

/// Checks for rustfmt, clippy, and Python with pip, and installs what is missing where it may.
pub(crate) fn tools(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let missing: Vec<String> =
        [component(root, "rustfmt", "fmt"), component(root, "clippy", "clippy"), python(root)]
            .into_iter()
            .filter_map(|result| result.err().map(|error| format!("{error:#}")))
            .collect();
    if missing.is_empty() { Ok(()) } else { bail!("{}", missing.join("; ")) }
}

/// Checks for a component of the Rust toolchain by its cargo subcommand; rustup adds it if it is missing.
fn component(root: &Path, name: &str, subcommand: &str) -> Result<()> {
    let probe = Invocation::cargo(&[subcommand, "--version"]);
    if let Ok(version) = probe.capture_line(root) {
        eprintln!("    {name}: {version}");
        return Ok(());
    }
    eprintln!("    {name} is missing; asking rustup for it");
    Invocation::new(
        "rustup",
        &["component", "add", name],
        "add this component the way Rust was installed here",
    )
    .run(root)
    .and_then(|()| probe.capture_line(root).map(drop))
    .with_context(|| format!("{name} is missing: run `rustup component add {name}`"))
}

/// How to come by Python and pip.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    /// Let the system's package manager install them now.
    Apt,
    /// Tell the user what to run.
    Tell(&'static str),
}

fn remedy(apt: bool, administrator: bool) -> Remedy {
    match (apt, administrator) {
        (true, true) => Remedy::Apt,
        (true, false) => Remedy::Tell(
            "run `sudo apt-get update && sudo apt-get install -y python3 python3-pip`, then try again",
        ),
        (false, _) => Remedy::Tell(
            "install Python 3 with pip (`dnf install python3-pip`, `pacman -S python-pip`, `brew install python`), \
             then try again",
        ),
    }
}

/// Checks for Python 3 with pip, by which the default model is fetched.
fn python(root: &Path) -> Result<()> {
    let probe = Invocation::new("python3", &["-m", "pip", "--version"], "it fetches the default model");
    let found = probe.capture_line(root);
    if let Ok(version) = &found {
        eprintln!("    python3: {version}");
        return Ok(());
    }
    let apt = Invocation::new("apt-get", &["--version"], "").capture(root).is_ok();
    let administrator = Invocation::new("id", &["-u"], "").capture_line(root).is_ok_and(|user| user == "0");
    match remedy(apt, administrator) {
        Remedy::Tell(line) => Err(anyhow!("python3 with pip is missing: {line}")),
        Remedy::Apt => {
            eprintln!("    python3 with pip is missing; installing the system's packages");
            for arguments in [APT_UPDATE, APT_INSTALL] {
                Invocation::new("apt-get", arguments, "")
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .run(root)
                    .context("python3 with pip is missing and could not be installed")?;
            }
            let version = probe.capture_line(root).context("pip does not start after its installation")?;
            eprintln!("    python3: {version}");
            Ok(())
        }
    }
}

/// Builds cargo-deny into the private tools folder, unless that release lies there already.
pub(crate) fn cargo_deny(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    if let Ok(version) = deny(workspace, &["--version"]).capture_line(root)
        && is_release(&version, CARGO_DENY)
    {
        eprintln!("    {version}");
        return Ok(());
    }
    let tools = workspace.tools();
    let folder = tools.to_str().ok_or_else(|| anyhow!("{} is not valid UTF-8", tools.display()))?;
    eprintln!("    building cargo-deny {CARGO_DENY} into {folder}, once; this takes a minute or two");
    // Unoptimised: it builds in less than half the time and still answers within a second.
    Invocation::cargo(&[
        "install",
        "cargo-deny",
        "--version",
        CARGO_DENY,
        "--locked",
        "--debug",
        "--root",
        folder,
    ])
    .run(root)
    .context("cargo-deny could not be built")
}

/// Checks licences, bans and sources of all dependencies against deny.toml.
///
/// Advisories are left to whoever can reach their database: they change with the day, not with the commit.
pub(crate) fn deny_check(workspace: &Workspace) -> Result<()> {
    eprintln!("    advisories are not part of this step (they need a git database from the network): run");
    eprintln!("    $ {} check advisories", deny_path(workspace).display());
    deny(workspace, &["--all-features", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"])
        .run(workspace.root())
}

fn deny_path(workspace: &Workspace) -> std::path::PathBuf {
    workspace.tools().join("bin").join("cargo-deny").with_extension(std::env::consts::EXE_EXTENSION)
}

fn deny(workspace: &Workspace, arguments: &[&str]) -> Invocation {
    let program = deny_path(workspace);
    Invocation::at(OsStr::new(&program).to_owned(), "cargo-deny", arguments, "run `cargo xtask deny`")
}

/// True if a line such as `cargo-deny 0.20.2` names this release.
fn is_release(line: &str, release: &str) -> bool {
    line.split_whitespace().nth(1) == Some(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_only_by_an_administrator_with_apt() {
        assert_eq!(remedy(true, true), Remedy::Apt);
        for (apt, administrator, word) in
            [(true, false, "sudo apt-get"), (false, true, "dnf"), (false, false, "dnf")]
        {
            match remedy(apt, administrator) {
                Remedy::Tell(line) => assert!(line.contains(word), "{line}"),
                Remedy::Apt => panic!("apt {apt}, administrator {administrator} must not install"),
            }
        }
    }

    #[test]
    fn another_release_of_a_tool_is_not_taken_for_ours() {
        assert!(is_release("cargo-deny 0.20.2", "0.20.2"));
        assert!(!is_release("cargo-deny 0.20.20", "0.20.2"));
        assert!(!is_release("", "0.20.2"));
    }
}
