//! `cargo xtask aarch64`: the portable tier on another architecture, by an emulator.
//!
//! It is no step of `cargo xtask test`: the emulator is slow, and what it can find changes seldom.

use anyhow::Result;

use crate::command::Invocation;
use crate::requirements::{AARCH64, system};
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Builds the kernels for AArch64 and judges them under qemu.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    AARCH64.iter().try_for_each(|program| system(root, program).map(drop))?;
    Invocation::new("rustup", &["target", "add", TARGET], "add this target the way Rust was installed here")
        .run(root)?;
    let crates = ["-p", "halite-hal", "-p", "halite-kernels", "-p", "halite-cpu", "--lib"];
    let judged = ["-p", "halite-parity", "--test", "cpu", "portable"];
    for what in [&crates[..], &judged] {
        let arguments = [&["test", "--target", TARGET], what].concat();
        Invocation::cargo(&arguments)
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
            .run(root)?;
    }
    Ok(())
}
