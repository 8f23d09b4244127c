//! `halite chat`: a conversation.

use crate::answer;
use crate::chat::{Conversation, HELP, Input, Line};
use crate::cli::{LoadArgs, SamplingArgs, at_least_one};
use crate::failure;
use crate::figures;
use crate::interrupt::Interrupt;
use crate::load;
use crate::model_file::DEFAULT_MODEL;
use crate::output::{self, ReaderGone};
use crate::progress::{Progress, line};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use halite_engine::{Engine, EngineError, KvCapacity, Request, SamplingParams};
use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::time::SystemTime;

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

    /// The most tokens of an answer
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1024, value_parser = at_least_one())]
    max_tokens: usize,

    /// End an answer just before this text; may be given several times
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    #[command(flatten)]
    sampling: SamplingArgs,

    /// The most tokens of the conversation [default: the model's own, up to 8192]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model options")]
    context: Option<usize>,

    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn execute(args: &ChatArgs, progress: &Progress) -> anyhow::Result<ExitCode> {
    let sampling = args.sampling.params()?;
    let mut options = args.load.options().max_sequences(1);
    if let Some(context) = args.context {
        options = options.context(context).kv(KvCapacity::Tokens(context));
    }
    let model = load::open(&args.model, &args.load, progress)?;
    let engine = load::load(&model, &args.load, &options, progress)?;
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
    let (totals, began) = (Totals::default(), SystemTime::now());
    let mut session = Session { engine, conversation, sampling, args, interrupt, totals, began };
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

enum Next {
    Line,
    Leave,
}

struct Session<'a> {
    engine: Engine,
    conversation: Conversation,
    sampling: SamplingParams,
    args: &'a ChatArgs,
    interrupt: Interrupt,
    totals: Totals,
    /// The time that templates are told. One that moved on would change the prompt's beginning, and all of it would be
    /// computed again.
    began: SystemTime,
}

#[derive(Default)]
struct Totals {
    answers: usize,
    prompt: usize,
    cached: usize,
    generated: usize,
    /// Tokens of the conversation after the last answer.
    context: usize,
}

impl Session<'_> {
    fn take(&mut self, text: &str) -> anyhow::Result<Next> {
        match Line::parse(text) {
            Line::Nothing => {}
            Line::Say(text) => {
                self.conversation.say(text);
                if let Err(error) = self.answer() {
                    self.conversation.unsay();
                    return Err(error);
                }
            }
            Line::Retry => self.retry()?,
            Line::Help => line(HELP),
            Line::Reset => {
                self.conversation.reset();
                self.totals.context = 0;
                line("(forgotten)");
            }
            Line::System(text) => {
                self.conversation.set_system(text);
                line(if text.is_empty() { "(no system message)" } else { "(system message set)" });
            }
            Line::Save(file) => self.save(file)?,
            Line::Stats => self.stats(),
            Line::Exit => return Ok(Next::Leave),
            Line::Unknown(text) => {
                bail!("{text} is no command; /help lists them, and // begins a message with a slash")
            }
        }
        Ok(Next::Line)
    }

    fn retry(&mut self) -> anyhow::Result<()> {
        let before = self.conversation.retry().context("there is nothing to answer yet")?;
        // Another draw; at temperature 0 there is only one answer.
        self.sampling.seed = self.sampling.seed.wrapping_add(1);
        let answered = self.answer();
        if answered.is_err() {
            self.conversation.answer(before);
        }
        answered
    }

    fn answer(&mut self) -> anyhow::Result<()> {
        let prompt = self.prompt()?;
        let request = Request::new(prompt, self.args.max_tokens)
            .sampling(self.sampling.clone())
            .stop_tokens(self.engine.stop_tokens())
            .stop_strings(&self.args.stop);
        let mut text = String::new();
        self.interrupt.hold();
        let answer = answer::stream(&mut self.engine, request, &|| self.interrupt.pressed(), &mut |piece| {
            text.push_str(piece);
            output::write_answer(piece)
        });
        self.interrupt.release();
        let answer = answer?;
        if !text.ends_with('\n') {
            output::write("\n")?;
        }
        self.conversation.answer(text);
        let finished = &answer.finished;
        self.totals.answers += 1;
        self.totals.prompt += finished.prompt_tokens;
        self.totals.cached += finished.cached_tokens;
        self.totals.generated += finished.generated.len();
        self.totals.context = finished.prompt_tokens + finished.generated.len();
        let seed = (self.sampling.temperature > 0.0).then_some(self.sampling.seed);
        line(&figures::of_answer(&answer, self.args.max_tokens, self.engine.describe(), seed));
        Ok(())
    }

    /// The conversation as a prompt that leaves room for an answer. The oldest exchanges are forgotten for it, but
    /// never the last message.
    fn prompt(&mut self) -> anyhow::Result<Vec<u32>> {
        let context = self.engine.describe().context;
        let room = self.args.max_tokens.min(context / 4).max(1);
        let mut kept = self.conversation.clone();
        let (texts, now) = (self.engine.texts(), SystemTime::now());
        let prompt = loop {
            let mut input = texts.chat_input(kept.messages());
            input.now = Some(now);
            let prompt = texts.chat_prompt(&input)?;
            // Without anything left to forget, one token of room will do.
            if prompt.len() + room <= context || !kept.forget_oldest() {
                break prompt;
            }
        };
        if prompt.len() >= context {
            let (got, limit) = (prompt.len(), context - 1);
            bail!(
                "the message makes a prompt of {got} tokens, the limit is {limit}; shorten it, or see --context"
            );
        }
        let forgotten = self.conversation.len() - kept.len();
        if forgotten > 0 {
            line(&format!("(context full: oldest exchanges forgotten: {forgotten}; /reset begins anew)"));
            self.conversation = kept;
        }
        Ok(prompt)
    }

    fn save(&self, file: &str) -> anyhow::Result<()> {
        if file.is_empty() {
            bail!("/save needs the name of a file");
        }
        // Never over something else: a slip of the finger would cost it.
        let opened = OpenOptions::new().write(true).create_new(true).open(file);
        let mut opened = opened.with_context(|| format!("cannot make {file}"))?;
        let text = serde_json::to_string_pretty(&self.conversation.json())? + "\n";
        opened.write_all(text.as_bytes()).with_context(|| format!("cannot write {file}"))?;
        line(&format!("(saved to {file})"));
        Ok(())
    }

    fn stats(&self) {
        let Totals { answers, prompt, cached, generated, context } = self.totals;
        let (exchanges, limit) = (self.conversation.len(), self.engine.describe().context);
        line(&format!(
            "answers: {answers} | tokens: {prompt} prompt, {cached} of them cached, {generated} generated | \
             exchanges remembered: {exchanges} | context: {context} of {limit} tokens"
        ));
    }
}
