//! `halite pull`: a model, fetched.

use crate::cli::CacheArgs;
use crate::model_file::{self, DEFAULT_MODEL};
use crate::output;
use crate::progress::{Progress, line};
use clap::Args;
use std::path::Path;

const HUB: &str = "\
ORG/NAME is a model on the Hugging Face hub: its safetensors with config and tokenizer, or a .gguf
file. It is kept in the hub's own cache folder, where other programs find it too. An interrupted
download goes on where it ended.

Environment:
  HF_TOKEN         a token, for models that are gated or private [default: the token file that
                   `huggingface-cli login` writes]
  HF_HOME          the hub's folder, with models in hub/ [default: ~/.cache/huggingface]
  HF_HUB_CACHE     the folder of models alone
  HF_ENDPOINT      another hub [default: https://huggingface.co]
  HF_HUB_OFFLINE   if 1, the network is not used
  HTTPS_PROXY, NO_PROXY   as usual

Examples:
  halite pull Qwen/Qwen3-0.6B
  halite pull Qwen/Qwen3-0.6B@main --cache /models
  halite pull Qwen/Qwen3-0.6B-GGUF --file Qwen3-0.6B-Q8_0.gguf
";

/// Fetch a model, check it, keep it, and print where it is
///
/// A model that is there already is not fetched again; of a model on the hub, what has changed there is. Files are
/// checked against their SHA-256, small ones on the hub against their size.
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{HUB}", model_file::known_models()))]
pub(crate) struct PullArgs {
    /// Which model: a name below, or ORG/NAME[@REVISION] on the hub
    #[arg(default_value = DEFAULT_MODEL, value_name = "MODEL")]
    name: String,

    /// Which .gguf file, where a model on the hub has several
    #[arg(long, value_name = "NAME")]
    file: Option<String>,

    #[command(flatten)]
    cache: CacheArgs,
}

pub(crate) fn execute(args: &PullArgs, progress: &Progress) -> anyhow::Result<()> {
    let path = model_file::pull(&args.name, args.file.as_deref(), &args.cache, progress)?;
    output::write(&format!("{}\n", path.display()))?;
    line(&format!("run it with: halite run --model {} \"Hello\"", shortest(args, &path)));
    Ok(())
}

/// What to call the model by: its name where that finds it again, else its path.
fn shortest(args: &PullArgs, path: &Path) -> String {
    let again = model_file::cached(&args.name, &args.cache);
    if again.is_some_and(|again| again == path) && args.cache.dir.is_none() {
        return args.name.clone();
    }
    shell_quoted(&path.display().to_string())
}

/// A word for a shell.
fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c) || (cfg!(windows) && c == '\\');
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::shell_quoted;

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(shell_quoted("/models/a-b.gguf"), "/models/a-b.gguf");
        assert_eq!(shell_quoted("/my models/it's"), r"'/my models/it'\''s'");
    }
}
