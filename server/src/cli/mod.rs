//! The command line. Its help texts are the program's manual.

mod answer;
mod device;
mod gpu;
mod model;
mod sampling;

pub(crate) use answer::AnswerArgs;
pub(crate) use device::{Device, DeviceArgs, PLANNED, TierChoice};
pub(crate) use model::{CacheArgs, LoadArgs, at_least_one};
pub(crate) use sampling::SamplingArgs;

#[cfg(feature = "cuda")]
use crate::commands::kernels;
use crate::commands::{bench, chat, devices, inspect, perplexity, pull, run, serve, tokenize};
use crate::progress::Progress;
use clap::{ArgAction, Args, Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  halite run \"What is the capital of France?\"
  halite run --model ./model.gguf --temperature 0.8 --seed 7 \"Write a haiku\"
  halite chat --system \"You are brief.\"
  halite serve --port 8080
  git diff | halite run --system \"You write commit messages.\" -
  halite bench model smollm2-135m --prompt 512 --generate 128 --json

Exit status:
  0 success, 1 an error, 2 wrong usage, 130 ended by Ctrl-C

Standard output carries results only. Progress, figures, logs and errors go to standard error.";

/// Language models on Halite's kernels.
///
/// Models are named, or are ORG/NAME on the Hugging Face hub (`halite pull --help` shows how), or are any .gguf file or
/// folder of safetensors. A model is fetched the first time it is used, checked and kept; `halite inspect` tells what it
/// will need.
#[derive(Debug, Parser)]
#[command(name = "halite", version, after_help = EXAMPLES, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Say more on standard error: -v what is done, -vv how, -vvv everything
    ///
    /// The environment variable RUST_LOG, if set, decides instead; for example RUST_LOG=halite_engine=debug.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Chat(chat::ChatArgs),
    Serve(serve::ServeArgs),
    Pull(pull::PullArgs),
    Inspect(inspect::InspectArgs),
    Devices(devices::DevicesArgs),
    Bench(BenchArgs),
    Eval(EvalArgs),
    Tokenize(tokenize::TokenizeArgs),
    #[cfg(feature = "cuda")]
    Kernels(KernelsArgs),
}

/// Measure how fast a model runs here
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Model(bench::BenchModelArgs),
}

/// Measure how well a model predicts
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    what: EvalCommand,
}

#[derive(Debug, Subcommand)]
enum EvalCommand {
    Perplexity(perplexity::PerplexityArgs),
}

/// Compile kernels beforehand
#[cfg(feature = "cuda")]
#[derive(Debug, Args)]
pub(crate) struct KernelsArgs {
    #[command(subcommand)]
    what: KernelsCommand,
}

#[cfg(feature = "cuda")]
#[derive(Debug, Subcommand)]
enum KernelsCommand {
    Precompile(kernels::PrecompileArgs),
}

impl Command {
    /// How much is logged without any `-v`: a server has nobody else to tell what it does.
    pub(crate) fn verbosity(&self) -> u8 {
        u8::from(matches!(self, Self::Serve(_)))
    }

    pub(crate) fn execute(self, progress: &Progress) -> anyhow::Result<ExitCode> {
        match self {
            Self::Run(args) => return run::execute(&args, progress),
            Self::Chat(args) => return chat::execute(&args, progress),
            Self::Serve(args) => serve::execute(&args, progress)?,
            Self::Tokenize(args) => tokenize::execute(&args, progress)?,
            Self::Pull(args) => pull::execute(&args, progress)?,
            Self::Inspect(args) => inspect::execute(&args, progress)?,
            Self::Devices(args) => devices::execute(&args)?,
            Self::Bench(BenchArgs { what: BenchCommand::Model(args) }) => bench::execute(&args, progress)?,
            Self::Eval(EvalArgs { what: EvalCommand::Perplexity(args) }) => {
                perplexity::execute(&args, progress)?
            }
            #[cfg(feature = "cuda")]
            Self::Kernels(KernelsArgs { what: KernelsCommand::Precompile(args) }) => {
                kernels::execute(&args, progress)?
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
