//! `halite eval perplexity`: how likely given tokens are to a model.

use super::token_lines::{self, TokenLine};
use crate::cli::{LoadArgs, at_least_one};
use crate::load::{self, OpenModel};
use crate::output;
use crate::progress::{Progress, Unit};
use anyhow::{Context, bail, ensure};
use clap::Args;
use halite_engine::{Engine, KvCapacity, PrefixReuse};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Print the mean negative log-likelihood of lines of tokens
///
/// Each line is a sequence of its own. Its tokens from the second on are predicted from those before; the mean of
/// their negative natural log-likelihoods is printed, and at the end the mean over all of them and the perplexity,
/// its exponential. All lines are checked before anything is computed.
#[derive(Debug, Args)]
pub(crate) struct PerplexityArgs {
    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or a model's folder
    model: String,

    /// One JSON array of token ids a line, two at least; blank lines are passed over
    #[arg(long, value_name = "FILE")]
    tokens: PathBuf,

    /// Also give the negative log-likelihood of each predicted token
    #[arg(long)]
    per_token: bool,

    /// Write JSON: `lines`, a list of objects with `line`, `tokens` and `mean_nll` (and `nll` with --per-token), and
    /// over all of them `predicted_tokens`, `mean_nll` and `perplexity`
    #[arg(long)]
    json: bool,

    /// The most tokens of a line [default: as many as the longest line has]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model options")]
    context: Option<usize>,

    #[command(flatten)]
    load: LoadArgs,
}

/// What one line came to.
#[derive(Debug, Serialize)]
struct Scored {
    line: usize,
    /// Tokens of the line; one less are predicted.
    tokens: usize,
    mean_nll: f64,
    /// `[tokens - 1]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    nll: Option<Vec<f32>>,
}

/// What all lines came to.
#[derive(Debug, Serialize)]
struct Report {
    lines: Vec<Scored>,
    predicted_tokens: usize,
    /// Over the predicted tokens of all lines.
    mean_nll: f64,
    /// Its exponential.
    perplexity: f64,
}

impl Report {
    fn of(lines: Vec<Scored>) -> Self {
        let predicted_tokens = lines.iter().map(|line| line.tokens - 1).sum();
        let sum: f64 = lines.iter().map(|line| line.mean_nll * (line.tokens - 1) as f64).sum();
        let mean_nll = sum / predicted_tokens as f64;
        Self { lines, predicted_tokens, mean_nll, perplexity: mean_nll.exp() }
    }
}

pub(crate) fn execute(args: &PerplexityArgs, progress: &Progress) -> anyhow::Result<()> {
    let lines = token_lines::read(&args.tokens)?;
    let model = load::open(&args.model, &args.load, progress)?;
    let context = check(args, &model, &lines)?;
    let options = args
        .load
        .options()
        .context(context)
        .kv(KvCapacity::Tokens(context))
        .max_sequences(1)
        .prefix_reuse(PrefixReuse::Off);
    let mut engine = load::load(&model, &options, progress)?;

    let mut stage = progress.stage("scoring", Unit::Lines, Some(lines.len() as u64));
    let mut scored = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let at = || format!("{}, line {}", args.tokens.display(), line.number);
        scored.push(score(&mut engine, line, args.per_token).with_context(at)?);
        stage.set(index as u64 + 1);
    }
    drop(stage);
    let report = Report::of(scored);
    if args.json { output::write_json(&report) } else { output::write(&text(&report)?) }
}

/// Holds the lines against the model, which is not loaded yet; returns the context they need.
fn check(args: &PerplexityArgs, model: &OpenModel, lines: &[TokenLine]) -> anyhow::Result<usize> {
    let config = model.file.config().with_context(|| format!("cannot load {}", model.path.display()))?;
    let limit = args.context.unwrap_or(config.context);
    let mut longest = 0;
    for TokenLine { number, tokens } in lines {
        let at = format_args!("{}, line {number}", args.tokens.display());
        if let Some(index) = tokens.iter().position(|&id| id as usize >= config.vocabulary) {
            let last = config.vocabulary - 1;
            bail!("{at}: element {index} is {}, beyond the model's last token id, {last}", tokens[index]);
        }
        let count = tokens.len();
        ensure!(count <= limit, "{at}: {count} tokens, more than the context of {limit}");
        longest = longest.max(count);
    }
    Ok(args.context.unwrap_or(longest))
}

fn score(engine: &mut Engine, line: &TokenLine, per_token: bool) -> anyhow::Result<Scored> {
    let nll = engine.score(&line.tokens)?;
    if let Some(index) = nll.iter().position(|nll| !nll.is_finite()) {
        bail!("the model gives {} for element {}; its weights may be damaged", nll[index], index + 1);
    }
    Ok(Scored {
        line: line.number,
        tokens: line.tokens.len(),
        mean_nll: nll.iter().copied().map(f64::from).sum::<f64>() / nll.len() as f64,
        nll: per_token.then_some(nll),
    })
}

fn text(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = format!("{:>8}{:>10}{:>12}\n", "line", "tokens", "mean_nll");
    for Scored { line, tokens, mean_nll, nll } in &report.lines {
        writeln!(text, "{line:>8}{tokens:>10}{mean_nll:>12.5}")?;
        for (index, nll) in nll.iter().flatten().enumerate() {
            writeln!(text, "{:>8}{:>10}{nll:>12.5}", "", format!("[{}]", index + 1))?;
        }
    }
    let Report { predicted_tokens, mean_nll, perplexity, .. } = report;
    writeln!(text, "{:>8}{predicted_tokens:>10}{mean_nll:>12.5}  perplexity {perplexity:.4}", "all")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_over_all_lines_weighs_tokens() {
        let line = |line, tokens, mean_nll| Scored { line, tokens, mean_nll, nll: None };
        let text = text(&Report::of(vec![line(1, 2, 1.0), line(3, 4, 3.0)])).unwrap();
        let last = text.lines().last().unwrap();
        assert_eq!(
            last.split_whitespace().collect::<Vec<_>>(),
            ["all", "4", "2.50000", "perplexity", "12.1825"]
        );
    }
}
