//! What every dependency may be: deny.toml, by cargo-deny.

use anyhow::{Context, Result};

use crate::built::CARGO_DENY;
use crate::workspace::Workspace;

/// Checks licences, bans and sources of all dependencies.
///
/// Advisories are a task of their own: they change with the day, not with the commit.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    eprintln!("    advisories are not part of this step: `cargo xtask advisories` fetches their database");
    CARGO_DENY
        .command(
            workspace,
            &["--all-features", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"],
        )
        .run(workspace.root())
}

/// Checks all dependencies against the RustSec advisories of today. It fails where their database cannot be fetched.
pub(crate) fn advisories(workspace: &Workspace) -> Result<()> {
    CARGO_DENY.command(workspace, &["--all-features", "check", "advisories"]).run(workspace.root()).context(
        "advisories, or their database at github.com/rustsec/advisory-db cannot be fetched (see above)",
    )
}
