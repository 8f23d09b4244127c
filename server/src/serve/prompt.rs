//! From a parsed request to what the engine takes. It may take a while, so it does not run on the threads that serve
//! connections.

use super::error::{ApiError, echo};
use super::request::{ChatRequest, CompletionPrompt, CompletionRequest, Generation, StreamOptions};
use super::sampling_defaults::SamplingDefaults;
use super::wire::Dialect;
use axum::http::StatusCode;
use halite_engine::model_file::ModelTexts;
use halite_engine::schedule::AdmissionError;
use halite_engine::{Engine, EngineError, Request};
use std::time::SystemTime;

/// The most tokens of a completion where a request does not say: OpenAI's number. A chat may fill the context.
const COMPLETION_TOKENS: usize = 16;

/// The served model, apart from what computes.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) fingerprint: String,
    pub(super) context: usize,
    texts: ModelTexts,
    stop_tokens: Vec<u32>,
    /// The most answers that the engine's queue ever has room for.
    max_waiting: usize,
    defaults: SamplingDefaults,
}

/// A request ready for the engine.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) dialect: Dialect,
    /// `n` for each prompt, prompt by prompt.
    pub(super) requests: Vec<Request>,
    pub(super) n: usize,
    pub(super) stop: Vec<String>,
    pub(super) stream: Option<StreamOptions>,
    /// What each answer begins with; empty where prompts are not repeated.
    pub(super) echoes: Vec<String>,
}

impl Model {
    pub(super) fn new(id: String, created: u64, engine: &Engine, defaults: SamplingDefaults) -> Self {
        let info = engine.describe();
        let device = &info.device;
        Self {
            id,
            created,
            fingerprint: format!(
                "halite-{}-{}-{}-{}",
                env!("CARGO_PKG_VERSION"),
                info.weights,
                device.backend,
                device.tier
            ),
            context: info.context,
            texts: engine.texts(),
            stop_tokens: engine.stop_tokens(),
            max_waiting: engine.max_waiting(),
            defaults,
        }
    }

    pub(super) fn texts(&self) -> &ModelTexts {
        &self.texts
    }

    /// Whether a request means this model.
    pub(super) fn check_name(&self, name: &str) -> Result<(), ApiError> {
        if name == self.id {
            return Ok(());
        }
        let message = format!("there is no model {}; this server has {}", echo(name), echo(&self.id));
        Err(ApiError::refused(StatusCode::NOT_FOUND, "model_not_found", message).about("model"))
    }

    pub(super) fn chat(&self, request: ChatRequest) -> Result<Prepared, ApiError> {
        self.check_name(&request.model)?;
        let template = self.texts.template().ok_or_else(|| ApiError::from(&EngineError::NoChatTemplate))?;
        let ChatRequest { mut messages, tools, variables, generation, .. } = request;
        if tools.is_some() && !template.mentions("tools", true) {
            let message = "this model's chat template has no place for tools; leave them out";
            return Err(ApiError::unsupported("tools", message));
        }
        if !template.mentions("developer", tools.is_some()) {
            let developers = messages.iter_mut().filter(|message| message.role == "developer");
            developers.for_each(|message| "system".clone_into(&mut message.role));
        }
        let mut input = self.texts.chat_input(messages);
        (input.tools, input.variables, input.now) = (tools, variables, Some(SystemTime::now()));
        let prompt = self.texts.chat_prompt(&input).map_err(|error| about("messages", &error))?;
        self.check_length(&prompt, "messages")?;
        let requests = self.requests(&generation, vec![prompt], self.context)?;
        Ok(Prepared::new(Dialect::Chat, requests, generation, Vec::new()))
    }

    pub(super) fn completion(&self, request: CompletionRequest) -> Result<Prepared, ApiError> {
        self.check_name(&request.model)?;
        let CompletionRequest { prompts, echo, generation, .. } = request;
        let mut ids = Vec::with_capacity(prompts.len());
        let mut echoes = Vec::new();
        for prompt in prompts {
            let (prompt_ids, text) = match prompt {
                CompletionPrompt::Text(text) => {
                    let ids = self.texts.prompt(&text).map_err(|error| about("prompt", &error))?;
                    (ids, text)
                }
                CompletionPrompt::Tokens(ids) => {
                    let text = if echo { self.decode(&ids)? } else { String::new() };
                    (ids, text)
                }
            };
            // Before anything of it is copied.
            self.check_length(&prompt_ids, "prompt")?;
            ids.push(prompt_ids);
            if echo {
                echoes.extend(std::iter::repeat_n(text, generation.n));
            }
        }
        let requests = self.requests(&generation, ids, COMPLETION_TOKENS)?;
        Ok(Prepared::new(Dialect::Completion, requests, generation, echoes))
    }

    /// The engine's own check, early: a prompt is copied for each of its answers.
    fn check_length(&self, prompt: &[u32], param: &str) -> Result<(), ApiError> {
        let (got, limit) = (prompt.len(), self.context.saturating_sub(1));
        if got <= limit {
            return Ok(());
        }
        Err(about(param, &AdmissionError::PromptExceedsContext { limit, got }.into()))
    }

    fn decode(&self, ids: &[u32]) -> Result<String, ApiError> {
        let decoded = self.texts.tokenizer().decode(ids);
        decoded.map_err(|error| ApiError::parameter("prompt", format!("`prompt`: {error}")))
    }

    fn requests(
        &self,
        generation: &Generation,
        prompts: Vec<Vec<u32>>,
        max_tokens: usize,
    ) -> Result<Vec<Request>, ApiError> {
        let count = prompts.len() * generation.n;
        if count > self.max_waiting {
            let limit = self.max_waiting;
            let message =
                format!("the request asks for {count} answers; this server's queue has room for {limit}");
            return Err(ApiError::parameter("n", message));
        }
        let max_tokens = generation.max_tokens.unwrap_or(max_tokens);
        // The same for every prompt, so that each gets what it would get alone.
        let choices = self.defaults.choices(generation);
        let each = prompts.into_iter().flat_map(|prompt| {
            choices.iter().map(move |sampling| {
                Request::new(prompt.clone(), max_tokens)
                    .sampling(sampling.clone())
                    .penalties(generation.penalties)
                    .logit_bias(generation.logit_bias.clone())
                    .stop_tokens(&*self.stop_tokens)
                    .stop_strings(&generation.stop)
            })
        });
        Ok(each.collect())
    }
}

impl Prepared {
    fn new(dialect: Dialect, requests: Vec<Request>, generation: Generation, echoes: Vec<String>) -> Self {
        let Generation { n, stop, stream, .. } = generation;
        Self { dialect, requests, n, stop, stream, echoes }
    }

    /// The parameter that prompts come from.
    pub(super) fn source(&self) -> &'static str {
        match self.dialect {
            Dialect::Chat => "messages",
            Dialect::Completion => "prompt",
        }
    }
}

fn about(param: &str, error: &EngineError) -> ApiError {
    let error = ApiError::from(error);
    if error.status == 400 { error.about(param) } else { error }
}
