//! Programs that the checks need and that cargo builds, each in one release.

use anyhow::{Context, Result};

use crate::command::Invocation;
use crate::workspace::{Workspace, text};

/// A program from crates.io.
pub(crate) struct Program {
    name: &'static str,
    release: &'static str,
    /// How long it takes to build, for people who wait.
    takes: &'static str,
}

/// The release that deny.toml is written for.
pub(crate) const CARGO_DENY: Program =
    Program { name: "cargo-deny", release: "0.20.2", takes: "a minute or two" };

/// Compares the public items of two commits.
pub(crate) const CARGO_SEMVER_CHECKS: Program =
    Program { name: "cargo-semver-checks", release: "0.51.0", takes: "some minutes" };

/// Builds the fuzz targets and runs them.
pub(crate) const CARGO_FUZZ: Program =
    Program { name: "cargo-fuzz", release: "0.13.2", takes: "a minute or two" };

impl Program {
    /// Builds it into the private tools folder, unless that release lies there already or is installed.
    pub(crate) fn build(&self, workspace: &Workspace) -> Result<()> {
        let Self { name, release, takes } = self;
        let root = workspace.root();
        if let Ok(version) = self.command(workspace, &["--version"]).capture_line(root)
            && is_release(&version, release)
        {
            eprintln!("    {version}");
            return Ok(());
        }
        let tools = workspace.target("tools");
        let folder = text(&tools)?;
        eprintln!("    building {name} {release} into {folder}, once; this takes {takes}");
        // Unoptimised, whatever the program's own manifest asks of its dependencies: it builds in a third of the time and
        // is still quick enough.
        let plain = "profile.dev.package.\"*\".opt-level=0";
        let how = ["--locked", "--debug", "--config", plain, "--root", folder];
        Invocation::cargo(&[&["install", name, "--version", release][..], &how].concat())
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .run(root)
            .with_context(|| format!("{name} could not be built"))
    }

    /// A call of the program: of the one in the tools folder, else of an installed one of the same release.
    pub(crate) fn command(&self, workspace: &Workspace, arguments: &[&str]) -> Invocation {
        let path = workspace.target("tools").join("bin").join(self.name);
        let ours = path.with_extension(std::env::consts::EXE_EXTENSION);
        let missing = "run `cargo xtask setup`";
        let installed = || Invocation::new(self.name, &["--version"], missing).capture_line(workspace.root());
        if !ours.exists() && installed().is_ok_and(|version| is_release(&version, self.release)) {
            return Invocation::new(self.name, arguments, missing);
        }
        Invocation::at(ours.into_os_string(), self.name, arguments, missing)
    }
}

/// True if a line such as `cargo-deny 0.20.2` names this release.
fn is_release(line: &str, release: &str) -> bool {
    line.split_whitespace().nth(1) == Some(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_release_of_a_program_is_not_taken_for_ours() {
        assert!(is_release("cargo-deny 0.20.2", "0.20.2"));
        assert!(!is_release("cargo-deny 0.20.20", "0.20.2"));
        assert!(!is_release("", "0.20.2"));
    }
}
