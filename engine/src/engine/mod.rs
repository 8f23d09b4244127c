//! The engine: requests in, tokens out.

mod evaluate;
mod generate;
mod load;
mod probe;
mod request;
mod step;

pub use generate::Generation;
pub use request::Request;

use crate::model_file::ModelTexts;
use crate::runner::{Adjustment, MAX_LOGIT_BIASES, ModelInfo, Runner};
use crate::schedule::{BlockCounts, CacheKey, Finished, Scheduler, SchedulerConfig, SequenceId, StepEvent};
use crate::text::{AnswerText, ChatInput, ChatMessage, Tokenizer};
use crate::{EngineError, EngineOptions, PrefixReuse, Result, schedule};
use halite_kernels::logits::{LogitsSpec, Penalties};
use halite_kernels::sampling::SamplingParams;
use probe::Probe;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Names a request of one engine.
pub type RequestId = SequenceId;

/// Something that happened to one request.
pub type Event = StepEvent;

/// A loaded model that serves any number of requests at once, on the caller's thread.
///
/// Requests are [added](Self::add), and [`step`](Self::step) computes a little for all of them and says what came of
/// it. [`generate`](Self::generate) is the loop around the two for one request.
///
/// ```no_run
/// use halite_engine::{Engine, EngineOptions, Request};
///
/// # fn f(device: impl halite_kernels::Backend) -> Result<(), halite_engine::EngineError> {
/// let mut engine = Engine::load(device, "model.gguf", &EngineOptions::new(), &mut |_| {})?;
/// let prompt = engine.prompt("The capital of France is")?;
/// let request = Request::new(prompt, 32).stop_tokens(engine.stop_tokens());
/// let answer = engine.generate(request, &mut |text| print!("{text}"))?;
/// println!("\n{} tokens", answer.finished.generated.len());
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    runner: Box<dyn Runner>,
    texts: ModelTexts,
    scheduler: Scheduler,
    active: BTreeMap<RequestId, Active>,
    /// Events of others that came up while one request was waited for.
    pending: Vec<Event>,
}

/// What the engine keeps of an unfinished request besides what the scheduler keeps.
struct Active {
    sampling: SamplingParams,
    adjustment: Option<Adjustment>,
    /// Where stop strings are looked for; `None`: there are none.
    text: Option<AnswerText>,
    probe: Option<Probe>,
}

impl Engine {
    /// An engine over a runner, with the texts of its model. [`load`](Self::load) makes all of them from a file.
    ///
    /// # Errors
    /// Options that cannot work with this runner.
    pub fn new(runner: Box<dyn Runner>, texts: ModelTexts, options: &EngineOptions) -> Result<Self> {
        options.check()?;
        let info = runner.info();
        let blocks = u32::try_from(info.kv_blocks)
            .map_err(|_| EngineError::option("kv", "fewer than 2^32 blocks", info.kv_blocks.to_string()))?;
        let limits = runner.limits();
        let max_batch_tokens = options.max_batch_tokens.min(limits.max_tokens);
        let mut config = SchedulerConfig::new(blocks, info.block_size, info.context)
            .max_batch_tokens(max_batch_tokens)
            .max_sequences(options.max_sequences.min(limits.max_sequences))
            .prefill_chunk(options.prefill_chunk.unwrap_or(max_batch_tokens).min(max_batch_tokens))
            .max_waiting(options.max_waiting);
        if options.prefix_reuse == PrefixReuse::On {
            config = config.prefix_caching(secret_key());
        }
        Ok(Self {
            scheduler: Scheduler::new(config)?,
            runner,
            texts,
            active: BTreeMap::new(),
            pending: Vec::new(),
        })
    }

    /// What the model is, and how it is kept.
    pub fn describe(&self) -> &ModelInfo {
        self.runner.info()
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.texts.tokenizer()
    }

    /// The model's tokenizer and chat template, for another thread: laying out a long prompt there does not keep the
    /// steps waiting.
    pub fn texts(&self) -> ModelTexts {
        self.texts.clone()
    }

    /// The tokens that end an answer.
    pub fn stop_tokens(&self) -> Vec<u32> {
        self.tokenizer().end_tokens().collect()
    }

    /// The prompt that continues `text`; what looks like a control token in it is only text.
    ///
    /// # Errors
    /// Text that the vocabulary cannot write.
    pub fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        self.texts.prompt(text)
    }

    /// The prompt that answers a conversation, by the model's own chat template.
    ///
    /// # Errors
    /// The model has no template, or the template refuses the messages.
    pub fn chat_prompt(&self, messages: Vec<ChatMessage>) -> Result<Vec<u32>> {
        self.chat_prompt_from(&self.texts.chat_input(messages))
    }

    /// As [`chat_prompt`](Self::chat_prompt), from everything that a template may see: tools, variables, the time.
    ///
    /// # Errors
    /// As [`chat_prompt`](Self::chat_prompt).
    pub fn chat_prompt_from(&self, input: &ChatInput) -> Result<Vec<u32>> {
        self.texts.chat_prompt(input)
    }

    /// Whether the model has a chat template.
    pub fn has_chat_template(&self) -> bool {
        self.texts.template().is_some()
    }

    /// Puts a request at the end of the queue.
    ///
    /// # Errors
    /// An empty prompt, one beyond the context or the KV cache, `max_tokens` of 0, a token that the model does not
    /// have, sampling parameters, penalties, biases or stop strings out of range, or a full queue. Other requests are not touched.
    pub fn add(&mut self, request: Request) -> Result<RequestId> {
        self.admit(request, None)
    }

    fn admit(&mut self, request: Request, probe: Option<Probe>) -> Result<RequestId> {
        let Request {
            prompt,
            max_tokens,
            sampling,
            penalties,
            logit_bias,
            stop_tokens,
            stop_strings,
            domain,
        } = request;
        self.check_tokens(&prompt)?;
        sampling.check()?;
        let adjustment = self.adjustment(penalties, &prompt, logit_bias)?;
        let text = AnswerText::new(self.tokenizer(), &stop_strings)?;
        // A probe reads from every row, and rows of a reused prefix are not computed.
        let prefix_reuse = if probe.is_some() { PrefixReuse::Off } else { PrefixReuse::On };
        let scheduled = schedule::Request::new(prompt, max_tokens)
            .stop_tokens(stop_tokens)
            .domain(domain)
            .prefix_reuse(prefix_reuse);
        let id = self.scheduler.add(scheduled)?;
        let text = (!stop_strings.is_empty()).then_some(text);
        self.active.insert(id, Active { sampling, adjustment, text, probe });
        Ok(id)
    }

    fn adjustment(
        &self,
        penalties: Penalties,
        prompt: &[u32],
        logit_bias: BTreeMap<u32, f32>,
    ) -> Result<Option<Adjustment>> {
        let biases = logit_bias.len();
        if biases > MAX_LOGIT_BIASES {
            return Err(EngineError::option("logit_bias", "at most 1024 tokens", biases.to_string()));
        }
        let adjustment = Adjustment::of(penalties, prompt, logit_bias.into_iter().collect());
        if let Some(adjustment) = &adjustment {
            adjustment.row().check(&LogitsSpec::new(self.runner.info().vocabulary))?;
        }
        Ok(adjustment)
    }

    fn check_tokens(&self, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.runner.info().vocabulary;
        match tokens.iter().position(|&id| id as usize >= vocabulary) {
            Some(index) => Err(EngineError::UnknownToken { index, id: tokens[index], vocabulary }),
            None => Ok(()),
        }
    }

    /// Ends a request that nobody wants any more. `None`: it is not known, or ended before; no event names it later.
    pub fn cancel(&mut self, id: RequestId) -> Option<Finished> {
        self.active.remove(&id);
        self.pending.retain(|event| id_of(event) != id);
        self.scheduler.cancel(id)
    }

    /// Whether there is nothing to compute and nothing to tell.
    pub fn is_idle(&self) -> bool {
        !self.scheduler.has_unfinished() && self.pending.is_empty()
    }

    /// Requests that run.
    pub fn running(&self) -> usize {
        self.scheduler.running()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }

    /// The most requests that wait; [`add`](Self::add) refuses further ones.
    pub fn max_waiting(&self) -> usize {
        self.scheduler.config().max_waiting
    }

    /// KV blocks by what they are used for.
    pub fn blocks(&self) -> BlockCounts {
        self.scheduler.blocks()
    }

    /// The runner beneath, for what the engine has no words for: exporting and importing KV blocks.
    ///
    /// Writing to blocks that the scheduler has handed out changes answers.
    pub fn runner(&mut self) -> &mut dyn Runner {
        &mut *self.runner
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("model", self.describe())
            .field("blocks", &self.blocks())
            .finish_non_exhaustive()
    }
}

/// The request that an event is about.
fn id_of(event: &Event) -> RequestId {
    match event {
        StepEvent::Token { id, .. } => *id,
        StepEvent::Finished(finished) => finished.id,
    }
}

/// A key for the prefix cache that nobody outside this process can know: the standard library seeds `RandomState`
/// from the operating system. It decides which digests blocks get, and no answer.
fn secret_key() -> CacheKey {
    let state = RandomState::new();
    let halves = [state.hash_one(0u8), state.hash_one(1u8)];
    let mut bytes = [0; 16];
    for (to, from) in bytes.chunks_exact_mut(8).zip(halves) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    CacheKey::from_bytes(bytes)
}
