//! `halite tokenize`: a text's token ids.

use super::prompt_text;
use crate::cli::CacheArgs;
use crate::model_file::{self, DEFAULT_MODEL};
use crate::output;
use crate::progress::Progress;
use clap::Args;
use halite_engine::text::{SpecialTokens, Tokenizer};
use serde::Serialize;
use std::path::PathBuf;

/// Print the token ids of a text, as `halite eval perplexity` reads them
///
/// One JSON array on a line. As in a prompt, the model's begin-of-sequence token comes first where the model wants one.
#[derive(Debug, Args)]
pub(crate) struct TokenizeArgs {
    /// The text; several words are joined by spaces, and `-` reads it from standard input
    #[arg(required_unless_present = "file", value_name = "TEXT")]
    text: Vec<String>,

    /// Read the text from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,

    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or a model's folder
    #[arg(short, long, default_value = DEFAULT_MODEL)]
    model: String,

    /// Take each line of the text as a text of its own, and pass over empty ones
    #[arg(long)]
    lines: bool,

    /// Recognise control tokens, such as <|im_start|>, instead of spelling them
    #[arg(long)]
    special: bool,

    /// Write JSON: a list of objects with `ids` and `pieces`, the text of each token
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    cache: CacheArgs,
}

#[derive(Serialize)]
struct Tokenized {
    ids: Vec<u32>,
    /// Bytes that are no character by themselves are U+FFFD; a control token has its name.
    pieces: Vec<String>,
}

pub(crate) fn execute(args: &TokenizeArgs, progress: &Progress) -> anyhow::Result<()> {
    let text = match &args.file {
        Some(path) => prompt_text::of_file(path, "the text")?,
        None => prompt_text::of_words(&args.text, "the text")?,
    };
    let path = model_file::find(&args.model, &args.cache, progress)?;
    let tokenizer = halite_engine::model_file::open(path)?.texts()?.tokenizer;
    let special = if args.special { SpecialTokens::Parse } else { SpecialTokens::AsText };
    let texts: Vec<&str> = match args.lines {
        true => text.lines().filter(|line| !line.is_empty()).collect(),
        false => vec![&text],
    };
    let tokenized = texts.into_iter().map(|text| {
        let ids = tokenizer.encode_prompt(text, special)?;
        let pieces = if args.json { pieces(&tokenizer, &ids)? } else { Vec::new() };
        Ok(Tokenized { ids, pieces })
    });
    let tokenized = tokenized.collect::<anyhow::Result<Vec<_>>>()?;
    if args.json {
        return output::write_json(&tokenized);
    }
    let mut lines = String::new();
    for text in &tokenized {
        lines += &serde_json::to_string(&text.ids)?;
        lines.push('\n');
    }
    output::write(&lines)
}

fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> anyhow::Result<Vec<String>> {
    let piece = |&id: &u32| {
        let bytes = tokenizer.token_bytes(id)?;
        let name = || tokenizer.token(id).unwrap_or_default().to_owned();
        Ok(if bytes.is_empty() { name() } else { String::from_utf8_lossy(bytes).into_owned() })
    };
    ids.iter().map(piece).collect()
}
