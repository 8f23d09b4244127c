//! The library behind the `halite` program.
//!
//! [`run`] is the program. A command is a file in `commands/`, with its arguments and what it does; what several of
//! them share stands beside: the arguments in `cli/`, loading a model, streaming an answer, progress, figures.
//! [`serve`] is the server, which other programs may run with an engine of their own.
//! Standard output carries results only; progress, figures, logs and errors go to standard error.

mod answer;
mod chat;
mod cli;
mod commands;
mod failure;
mod figures;
mod interrupt;
mod load;
mod logging;
mod model_file;
mod output;
mod progress;
pub mod serve;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod warm_up;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program with these arguments, the program's own name first.
///
/// The exit code is 0 for success, 1 for an error (written to standard error as `error: ...`), 2 for arguments that
/// make no sense, and 130 when Ctrl-C ended it.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(usage) => {
            // Also `--help` and `--version`. There is nobody to tell when the terminal is gone.
            _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    let progress = progress::Progress::stderr();
    let outcome = logging::start(cli.verbose.saturating_add(cli.command.verbosity()), &progress)
        .and_then(|()| cli.command.execute(&progress));
    outcome.unwrap_or_else(|error| failure::report(&error))
}
