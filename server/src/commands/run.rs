//! `halite run`: one prompt, one answer.

use super::prompt_text;
use crate::answer;
use crate::cli::{LoadArgs, SamplingArgs, at_least_one};
use crate::figures;
use crate::interrupt::{EXIT_CODE, Interrupt};
use crate::load;
use crate::model_file::DEFAULT_MODEL;
use crate::output;
use crate::progress::{Progress, line};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use halite_engine::text::ChatMessage;
use halite_engine::{Engine, EngineError, FinishReason, KvCapacity, Request};
use std::process::ExitCode;
use std::time::SystemTime;

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

    /// The most tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value_t = 256, value_parser = at_least_one())]
    max_tokens: usize,

    /// End the answer just before this text; may be given several times
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    #[command(flatten)]
    sampling: SamplingArgs,

    /// The most tokens of prompt and answer together [default: the model's own, up to 8192]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model options")]
    context: Option<usize>,

    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn execute(args: &RunArgs, progress: &Progress) -> anyhow::Result<ExitCode> {
    let prompt = prompt_text::of_words(&args.prompt, "the prompt")?;
    let sampling = args.sampling.params()?;
    let mut options = args.load.options().max_sequences(1);
    if let Some(context) = args.context {
        options = options.context(context).kv(KvCapacity::Tokens(context));
    }
    let model = load::open(&args.model, &args.load, progress)?;
    let mut engine = load::load(&model, &args.load, &options, progress)?;

    let tokens =
        if args.raw { engine.prompt(&prompt)? } else { chat(&engine, &prompt, args.system.as_deref())? };
    let seed = (sampling.temperature > 0.0).then_some(sampling.seed);
    let request = Request::new(tokens, args.max_tokens)
        .sampling(sampling)
        .stop_tokens(engine.stop_tokens())
        .stop_strings(&args.stop);
    let interrupt = Interrupt::catch().context("cannot watch for Ctrl-C")?;
    let mut ends_a_line = false;
    let answer = answer::stream(&mut engine, request, &|| interrupt.pressed(), &mut |text| {
        ends_a_line = text.ends_with('\n');
        output::write_answer(text)
    })?;
    if !ends_a_line {
        output::write("\n")?;
    }
    line(&figures::of_answer(&answer, args.max_tokens, engine.describe(), seed));
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
