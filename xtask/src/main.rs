//! Workspace tasks: set-up, checks and (later) code generation, run as `cargo xtask TASK`.
//!
//! A new task is one variant of [`Task`], one arm of [`run`] and one file beside this one.

mod aarch64;
mod ascend;
mod bench_compare;
mod built;
mod command;
mod compiled;
mod consumer;
mod cuda;
mod deny;
mod files;
mod fuzz;
mod installed;
mod mutants;
mod package;
mod peers;
mod public_items;
mod requirements;
mod runner;
mod rust_version;
mod semver;
mod steps;
mod summary;
mod vulkan;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::built::CARGO_DENY;
use crate::runner::Selection;
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Set-up and checks of the Halite workspace",
    bin_name = "cargo xtask"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need, then run every check; fails if any of them failed
    Test {
        /// Run only this step and the steps it needs (repeat it, or separate names by commas)
        #[arg(long, value_name = "STEP", value_delimiter = ',')]
        only: Vec<String>,
        /// Print the steps, what each proves and what it runs
        #[arg(long)]
        list: bool,
    },
    /// Install what the tests need, fetch the default model and what others compute, without running the checks
    Setup,
    /// The house checks: file sizes, unfinished code, ignored tests, unsafe code, types that can grow, rooms, links
    Files,
    /// The CUDA backend's tests: every kernel compiled for every architecture, with the compiler they need; no GPU
    Cuda,
    /// Make the Ascend backend's bindings of its header anew
    BindgenAscend {
        /// Only make them, here, by the libclang that LIBCLANG_PATH names
        #[arg(long, hide = true)]
        to: Option<PathBuf>,
    },
    /// The licences, sources and bans of every dependency (deny.toml), by cargo-deny
    Deny,
    /// The security advisories of today for every dependency; needs their database from the network
    Advisories,
    /// The portable tier for AArch64, under qemu; slow, and not part of `test`
    Aarch64,
    /// Wrong lines in the CPU's kernels, one at a time, each of which must turn the parity suite red; half an hour
    Mutants {
        /// Only those of files with this in their name
        #[arg(default_value = "")]
        only: String,
    },
    /// Run the benchmarks and say which moved against benches/baseline.json; with nothing else running
    BenchCompare {
        /// Only those with this in their id (`linear/cpu`, `attention`)
        #[arg(default_value = "cpu")]
        filter: String,
        /// Features of the benchmarks, one a backend
        #[arg(long, default_value = "cpu")]
        features: String,
        /// Keep the times in benches/baseline.json instead
        #[arg(long)]
        save: bool,
    },
    /// Fuzz everything that is read from strangers (see fuzz/README.md); needs a C++ compiler
    Fuzz {
        /// Which targets; all where none is named
        targets: Vec<String>,
        /// How long each of them runs
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
}

fn main() -> ExitCode {
    if let Some(code) = public_items::stand_in() {
        return code;
    }
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a task; `false` means that it ran to its end and found something wrong.
fn run(task: Task) -> Result<bool> {
    let workspace = Workspace::locate()?;
    let table = steps::table();
    let selection = match task {
        Task::Test { list: true, .. } => {
            print!("{}", summary::listing(&table));
            return Ok(true);
        }
        Task::Test { only, .. } if only.is_empty() => Selection::all(&table),
        Task::Test { only, .. } => Selection::of(&table, &only)?,
        Task::Setup => Selection::set_up(&table),
        Task::Files => Selection::of(&table, &["files"])?,
        Task::Cuda => Selection::of(&table, &["cuda"])?,
        Task::BindgenAscend { to: Some(path) } => return ascend::generate(&workspace, &path).map(|()| true),
        Task::BindgenAscend { to: None } => return ascend::bindgen(&workspace).map(|()| true),
        Task::Deny => Selection::of(&table, &["deny"])?,
        Task::Advisories => {
            CARGO_DENY.build(&workspace)?;
            return deny::advisories(&workspace).map(|()| true);
        }
        Task::Aarch64 => return aarch64::run(&workspace).map(|()| true),
        Task::Mutants { only } => return mutants::run(&workspace, &only),
        Task::BenchCompare { filter, features, save } => {
            let asked = bench_compare::Asked { filter: &filter, features: &features, save };
            return bench_compare::run(&workspace, &asked).map(|()| true);
        }
        Task::Fuzz { targets, minutes } => return fuzz::run(&workspace, &targets, minutes),
    };
    let outcomes = runner::run(&workspace, &table, &selection);
    print!("{}", summary::text(&outcomes));
    Ok(summary::all_passed(&outcomes))
}
