//! `halite run`: one prompt, one answer.

use super::prompt_text;
use crate::answer;
use crate::cli::{AnswerArgs, LoadArgs};
use crate::figures;
use crate::interrupt::{EXIT_CODE, Interrupt};
use crate::load;
use crate::model_file::DEFAULT_MODEL;
use crate::output;
use crate::progress::{Progress, line};
use anyhow::{Context, bail};
use clap::Args;
use halite_engine::text::ChatMessage;
use halite_engine::{Engine, EngineError, FinishReason};
use std::process::ExitCode;
use std::time::SystemTime;

/// The most tokens of an answer where none are asked for.
const MAX_TOKENS: usize = 256;

/// Answer a prompt
///
/// The prompt goes through the model's own chat template, and the answer is written to standard output as it comes;
/// one line of figures follows on standard error. The first Ctrl-C ends the answer and keeps what is there.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt; several words are joined by spaces, and `-` reads it from standard input
    #[arg(required = true, value_name = "PROMPT")]
    prompt: Vec<String>,

    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or of a model's folder
    #[arg(short, long, default_value = DEFAULT_MODEL)]
    model: String,

    /// What the model is told before the prompt; without it, what the model's template says by default
    #[arg(short, long, value_name = "TEXT", conflicts_with = "raw")]
    system: Option<String>,

    /// Continue the prompt as plain text, without the chat template
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn execute(args: &RunArgs, progress: &Progress) -> anyhow::Result<ExitCode> {
    let prompt = prompt_text::of_words(&args.prompt, "the prompt")?;
    let sampling = args.answer.sampling.params()?;
    let max_tokens = args.answer.max_tokens(MAX_TOKENS);
    let model = load::open(&args.model, &args.load, progress)?;
    let mut engine = load::load(&model, &args.answer.options(&args.load), progress)?;

    let tokens =
        if args.raw { engine.prompt(&prompt)? } else { chat(&engine, &prompt, args.system.as_deref())? };
    let seed = (sampling.temperature > 0.0).then_some(sampling.seed);
    let request = args.answer.request(&engine, tokens, max_tokens, sampling);
    let interrupt = Interrupt::catch().context("cannot watch for Ctrl-C")?;
    let mut ends_a_line = false;
    let answer = answer::stream(&mut engine, request, &|| interrupt.pressed(), &mut |text| {
        ends_a_line = text.ends_with('\n');
        output::write_answer(text)
    })?;
    if !ends_a_line {
        output::write("\n")?;
    }
    line(&figures::of_answer(&answer, max_tokens, engine.describe(), seed));
    let interrupted = answer.finished.reason == FinishReason::Cancelled;
    Ok(if interrupted { EXIT_CODE.into() } else { ExitCode::SUCCESS })
}

/// The prompt as the user's turn of a conversation.
fn chat(engine: &Engine, prompt: &str, system: Option<&str>) -> anyhow::Result<Vec<u32>> {
    let system = system.map(|text| ChatMessage::new("system", text));
    let messages = system.into_iter().chain([ChatMessage::new("user", prompt)]).collect();
    if !engine.has_chat_template() {
        bail!("{}; use --raw with this model", EngineError::NoChatTemplate);
    }
    let mut input = engine.texts().chat_input(messages);
    input.now = Some(SystemTime::now());
    Ok(engine.chat_prompt_from(&input)?)
}
