//! `halite chat`: a conversation.

use crate::chat::{Conversation, Input, Next, Session};
use crate::cli::{AnswerArgs, LoadArgs};
use crate::failure;
use crate::interrupt::Interrupt;
use crate::load;
use crate::model_file::DEFAULT_MODEL;
use crate::output::ReaderGone;
use crate::progress::{Progress, line};
use anyhow::{Context, bail};
use clap::Args;
use halite_engine::EngineError;
use std::process::ExitCode;

/// Talk with a model
///
/// Each line is a message, and the answer is written to standard output as it comes; figures and notes go to standard
/// error. Lines that begin with a slash are commands: /help lists them. Where standard input is no terminal, every
/// line of it is taken the same way. When the conversation no longer fits the context, its oldest exchanges are
/// forgotten, which is said.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or a model's folder
    #[arg(short, long, default_value = DEFAULT_MODEL)]
    model: String,

    /// What the model is told before the conversation; without it, what the model's template says by default
    #[arg(short, long, value_name = "TEXT")]
    system: Option<String>,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn execute(args: &ChatArgs, progress: &Progress) -> anyhow::Result<ExitCode> {
    let sampling = args.answer.sampling.params()?;
    let model = load::open(&args.model, &args.load, progress)?;
    let engine = load::load(&model, &args.answer.options(&args.load), progress)?;
    if !engine.has_chat_template() {
        bail!("{}; use `halite run --raw` with this model", EngineError::NoChatTemplate);
    }
    let interrupt = Interrupt::catch().context("cannot watch for Ctrl-C")?;
    interrupt.release();
    let mut input = Input::open()?;
    if input.is_terminal() {
        line(&format!("{}: /help lists what else a line may be, Ctrl-D leaves", args.model));
    }
    let conversation = Conversation::new(args.system.clone());
    let mut session = Session::new(engine, conversation, sampling, &args.answer, interrupt);
    let mut outcome = ExitCode::SUCCESS;
    while let Some(text) = input.next()? {
        match session.take(&text) {
            Ok(Next::Line) => {}
            Ok(Next::Leave) => break,
            Err(error) if error.is::<ReaderGone>() => return Err(error),
            // What is wrong with one line is no reason to lose the conversation.
            Err(error) => outcome = failure::report(&error),
        }
    }
    // A person has read what was wrong; a program wants to know it.
    Ok(if input.is_terminal() { ExitCode::SUCCESS } else { outcome })
}
