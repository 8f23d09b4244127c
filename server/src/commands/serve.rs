//! `halite serve`: the OpenAI-compatible server.

use crate::cli::{LoadArgs, at_least_one};
use crate::figures::Place;
use crate::load;
use crate::model_file::DEFAULT_MODEL;
use crate::output;
use crate::progress::{Progress, line};
use crate::serve::{Limits, SamplingDefaults, ServeOptions, Server};
use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use halite_engine::KvCapacity;
use std::path::Path;
use std::time::Duration;

const ABOUT_KEYS: &str = "\
The API key may also be given as the environment variable HALITE_API_KEY, which other users of this machine do not see.

Paths: /health, /v1/models, /v1/chat/completions, /v1/completions; streaming and not.";

/// The environment's API key.
const KEY_VARIABLE: &str = "HALITE_API_KEY";

/// Serve a model to OpenAI's clients over HTTP
///
/// Prints the address once the model is loaded. Ctrl-C or SIGTERM refuses new requests and finishes those that run.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_KEYS)]
pub(crate) struct ServeArgs {
    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or a model's folder
    #[arg(short, long, default_value = DEFAULT_MODEL)]
    model: String,

    /// What requests call the model [default: its name, or its file's name without the ending]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,

    /// The address to listen on; 0.0.0.0 for every network
    #[arg(long, default_value = "127.0.0.1")]
    host: String,

    /// The port to listen on; 0 for any that is free
    #[arg(long, default_value_t = 8080)]
    port: u16,

    /// What clients have to send as `Authorization: Bearer KEY`
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    api_key: Option<String>,

    /// Requests computed at once; further ones wait
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = at_least_one(), help_heading = "Limits")]
    max_sequences: usize,

    /// Requests that wait; further ones are refused with status 429
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one(), help_heading = "Limits")]
    max_waiting: usize,

    /// Connections at once
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one(), help_heading = "Limits")]
    max_connections: usize,

    /// Bytes of a request's body
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = at_least_one(), help_heading = "Limits")]
    max_body: usize,

    /// Bytes of all bodies that arrive or wait to be read; what goes beyond is refused with status 503
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20, value_parser = at_least_one(), help_heading = "Limits")]
    max_bodies: usize,

    /// Seconds in which a request has to arrive
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds, allow_negative_numbers = true, help_heading = "Limits")]
    read_timeout: Duration,

    /// Seconds after which a client that takes nothing of its answer is given up
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, allow_negative_numbers = true, help_heading = "Limits")]
    write_timeout: Duration,

    /// Seconds that running requests have to end when the server is to stop
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds, allow_negative_numbers = true, help_heading = "Limits")]
    shutdown_timeout: Duration,

    /// The most tokens of prompt and answer together [default: the model's own, up to 8192]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model options")]
    context: Option<usize>,

    /// Room in the KV cache, in tokens over all requests [default: one context, or 256 for each of --max-sequences]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model options")]
    kv_tokens: Option<usize>,

    #[command(flatten)]
    load: LoadArgs,
}

/// A time of more than nothing and at most a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected a number above 0, up to 86400".to_owned())
}

pub(crate) fn execute(args: &ServeArgs, progress: &Progress) -> anyhow::Result<()> {
    let mut options = args.load.options().max_sequences(args.max_sequences).max_waiting(args.max_waiting);
    options = options.clone().max_batch_tokens(options.max_batch_tokens.max(args.max_sequences));
    if let Some(context) = args.context {
        options = options.context(context);
    }
    if let Some(tokens) = args.kv_tokens {
        options = options.kv(KvCapacity::Tokens(tokens));
    }
    let name = args.name.clone().unwrap_or_else(|| name(&args.model));
    let key = args.api_key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok());
    let limits = Limits::new()
        .body_bytes(args.max_body)
        .all_body_bytes(args.max_bodies)
        .connections(args.max_connections)
        .read_timeout(args.read_timeout)
        .write_timeout(args.write_timeout)
        .shutdown(args.shutdown_timeout);
    let serving = ServeOptions::new(&name).api_key(key).limits(limits);
    let open_to_all = serving.api_key.is_none();
    // The port first: one that is taken should not be found out after loading.
    let mut server = Server::bind(&args.host, args.port, serving)
        .with_context(|| format!("cannot listen on {}, port {}", args.host, args.port))?;
    let model = load::open(&args.model, &args.load, progress)?;
    let engine = load::load(&model, &options, progress)?;
    let place = Place(engine.describe()).to_string();
    let has_template = engine.has_chat_template();
    let context = engine.describe().context;
    let makers = model.file.generation().with_context(|| format!("cannot serve {}", model.path.display()))?;
    server.serve(engine, SamplingDefaults::of_model(&makers)).context("cannot start the engine")?;

    let address = server.address();
    if open_to_all && !address.ip().is_loopback() {
        line("warning: whoever reaches this address can use the server; --api-key keeps others out");
    }
    let ready = format!(
        "listening on http://{address}\nmodel {name}: {place}, context {context} tokens\ntry: {}\n",
        example(&address.to_string(), &name, has_template, !open_to_all),
    );
    // A server without a reader of its output is still a server.
    server.run(|| _ = output::write(&ready)).context("cannot watch for signals")
}

/// A model's name, of a file the stem, of a folder its own name.
fn name(model: &str) -> String {
    let path = Path::new(model);
    let is_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if is_file => stem.to_owned(),
        _ if path.is_dir() => folder_name(path).unwrap_or_else(|| model.to_owned()),
        _ => model.to_owned(),
    }
}

fn folder_name(path: &Path) -> Option<String> {
    Some(path.canonicalize().ok()?.file_name()?.to_str()?.to_owned())
}

/// A line for a shell.
fn example(address: &str, model: &str, chat: bool, key: bool) -> String {
    let (path, question) = if chat {
        ("chat/completions", serde_json::json!([{ "role": "user", "content": "Hello!" }]))
    } else {
        ("completions", "Hello".into())
    };
    let field = if chat { "messages" } else { "prompt" };
    let body = serde_json::json!({ "model": model, field: question }).to_string().replace('\'', "'\\''");
    let key = if key { "-H 'Authorization: Bearer KEY' " } else { "" };
    format!("curl http://{address}/v1/{path} {key}-H 'Content-Type: application/json' -d '{body}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_by_their_stem() {
        assert_eq!(name("smollm2-135m"), "smollm2-135m");
        assert_eq!(name("/models/Some.Model-Q4.gguf"), "Some.Model-Q4");
        assert_eq!(name("org/name"), "org/name");
    }

    #[test]
    fn times_are_bounded() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "NaN", "inf", "1e300", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_example_survives_a_shell() {
        let line = example("127.0.0.1:1", "it's", true, true);
        assert!(line.contains(r#""model":"it'\''s""#) && line.contains("Authorization"), "{line}");
    }
}
