//! `halite pull`: a named model, fetched.

use crate::cli::CacheArgs;
use crate::model_file::{self, DEFAULT_MODEL};
use crate::output;
use crate::progress::Progress;
use clap::Args;

/// Fetch a model, check it, keep it, and print its path
///
/// A model that is there already is not fetched again.
#[derive(Debug, Args)]
#[command(after_help = model_file::known_models())]
pub(crate) struct PullArgs {
    /// Which model
    #[arg(default_value = DEFAULT_MODEL)]
    name: String,

    #[command(flatten)]
    cache: CacheArgs,
}

pub(crate) fn execute(args: &PullArgs, progress: &Progress) -> anyhow::Result<()> {
    let path = model_file::find(&args.name, &args.cache, progress)?;
    output::write(&format!("{}\n", path.display()))
}
