//! Logs, on standard error.

use crate::progress::Progress;
use anyhow::Context;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

const VARIABLE: &str = "RUST_LOG";

/// Starts logging: as `RUST_LOG` says, else by the number of `-v`.
pub(crate) fn start(verbose: u8, progress: &Progress) -> anyhow::Result<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::try_new(&directives).with_context(|| format!("{VARIABLE}={directives}"))?
        }
        // What concerns anybody of a driver's messages is in our own errors.
        _ => EnvFilter::new(match verbose {
            0 => "warn,wgpu_hal=off,wgpu_core=off",
            1 => "warn,wgpu_hal=off,wgpu_core=off,halite=info",
            2 => "info,wgpu_hal=warn,wgpu_core=warn,naga=warn,halite=debug",
            _ => "debug,halite=trace",
        }),
    };
    let progress = progress.clone();
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(move || progress.writer());
    // Somebody who runs the program inside their own may have set up logs already.
    _ = logs.try_init();
    Ok(())
}
