//! A conversation with an engine: what a line does.

use super::{Conversation, HELP, Line};
use crate::answer;
use crate::cli::AnswerArgs;
use crate::figures;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::line;
use anyhow::{Context, bail};
use halite_engine::{Engine, SamplingParams};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::SystemTime;

/// The most tokens of an answer where none are asked for.
const MAX_TOKENS: usize = 1024;

/// What comes after a line.
pub(crate) enum Next {
    Line,
    Leave,
}

/// An engine and what was said with it.
pub(crate) struct Session<'a> {
    engine: Engine,
    conversation: Conversation,
    sampling: SamplingParams,
    args: &'a AnswerArgs,
    /// Of one answer.
    max_tokens: usize,
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

impl<'a> Session<'a> {
    pub(crate) fn new(
        engine: Engine,
        conversation: Conversation,
        sampling: SamplingParams,
        args: &'a AnswerArgs,
        interrupt: Interrupt,
    ) -> Self {
        let max_tokens = args.max_tokens(MAX_TOKENS);
        let (totals, began) = (Totals::default(), SystemTime::now());
        Self { engine, conversation, sampling, args, max_tokens, interrupt, totals, began }
    }

    /// Does what a line asks for.
    pub(crate) fn take(&mut self, text: &str) -> anyhow::Result<Next> {
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
        let request = self.args.request(&self.engine, prompt, self.max_tokens, self.sampling.clone());
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
        line(&figures::of_answer(&answer, self.max_tokens, self.engine.describe(), seed));
        Ok(())
    }

    /// The conversation as a prompt that leaves room for an answer. The oldest exchanges are forgotten for it, but
    /// never the last message.
    fn prompt(&mut self) -> anyhow::Result<Vec<u32>> {
        let context = self.engine.describe().context;
        let room = self.max_tokens.min(context / 4).max(1);
        let mut kept = self.conversation.clone();
        let texts = self.engine.texts();
        let prompt = loop {
            let mut input = texts.chat_input(kept.messages());
            input.now = Some(self.began);
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
