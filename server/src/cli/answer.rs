//! What an answer is: how long, where it ends, how its tokens are chosen.

use super::{LoadArgs, SamplingArgs, at_least_one};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use halite_engine::{Engine, EngineOptions, KvCapacity, Request, SamplingParams};

/// For the commands that answer one request at a time.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The most tokens of an answer [default: 256; in a chat 1024]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one())]
    max_tokens: Option<usize>,

    /// End an answer just before this text; may be given several times
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,

    /// The most tokens of prompt and answer together [default: the model's own, up to 8192]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model options")]
    context: Option<usize>,
}

impl AnswerArgs {
    /// The most tokens of an answer, where `usual` is the command's own number.
    pub(crate) fn max_tokens(&self, usual: usize) -> usize {
        self.max_tokens.unwrap_or(usual)
    }

    /// The options of an engine for one sequence.
    pub(crate) fn options(&self, load: &LoadArgs) -> EngineOptions {
        let options = load.options().max_sequences(1);
        match self.context {
            Some(context) => options.context(context).kv(KvCapacity::Tokens(context)),
            None => options,
        }
    }

    /// A request that ends where the model and these arguments say.
    pub(crate) fn request(
        &self,
        engine: &Engine,
        prompt: Vec<u32>,
        max_tokens: usize,
        sampling: SamplingParams,
    ) -> Request {
        Request::new(prompt, max_tokens)
            .sampling(sampling)
            .stop_tokens(engine.stop_tokens())
            .stop_strings(&self.stop)
    }
}
