//! `cargo install --path server`, as whoever wants the program types it.

use anyhow::{Context, Result, bail};

use crate::command::Invocation;
use crate::workspace::{Workspace, text};

/// Installs into the build output and asks the program who it is.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let (folder, target) = (workspace.target("installed"), workspace.target(""));
    // Speed is not the point here: the profile that builds fastest.
    let install =
        ["install", "--path", "server", "--locked", "--profile", "quick", "--force", "--no-track", "--quiet"];
    let places = ["--root", text(&folder)?, "--target-dir", text(&target)?];
    Invocation::cargo(&[&install[..], &places[..]].concat()).run(root)?;
    let program = folder.join("bin").join("halite").with_extension(std::env::consts::EXE_EXTENSION);
    let answer = Invocation::at(program.into_os_string(), "halite", &["--version"], "it was not installed")
        .capture_line(root)
        .context("the installed program does not start")?;
    eprintln!("    {answer}");
    let expected = format!("halite {}", env!("CARGO_PKG_VERSION"));
    if answer == expected { Ok(()) } else { bail!("expected `{expected}` of the program, got `{answer}`") }
}
