//! Chat templates: the Jinja program in a model file that lays a conversation out as one text.

use std::borrow::Cow;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use fancy_regex::{Captures, Regex};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, ErrorKind};

use super::bounded_printing::BoundedOutput;
use super::chat_input::ChatInput;
use super::error::TextError;
use super::namespace_use;
use super::python_methods::python_method;
use super::template_functions::{self, Raised};
use crate::quoted::shortened;

const NAME: &str = "chat_template";

/// Stack of the thread a template runs on. Templates can nest lists as deep as their fuel lasts, and comparing or
/// printing them recurses; this holds the deepest that the default fuel can build. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 20;

/// Bounds on a template, as it comes from a file that may be wrong or hostile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateLimits {
    /// Longest template, in bytes. The longest in use have about 20,000.
    pub source_bytes: usize,
    /// Longest text it may write, in bytes.
    pub output_bytes: usize,
    /// Work: about one unit a step, and one for each 64 bytes made.
    pub fuel: u64,
    /// Depth of nested blocks and macro calls.
    pub recursion: usize,
    /// Longest time a caller waits. Lists that share their parts ([a, a] of [b, b] of ...) are cheap to make, and
    /// the engine charges no fuel for comparing them, or for turning them into text with the operators `~` and `in`
    /// (on the left of a text). The run cannot be stopped, so no further one is started while it lasts. What has
    /// no bound here is the memory that these two operators take then; whatever else prints a list looks at its size
    /// first.
    pub time: Duration,
}

impl Default for TemplateLimits {
    fn default() -> Self {
        Self {
            source_bytes: 256 << 10,
            output_bytes: 16 << 20,
            fuel: 1_000_000,
            recursion: 200,
            time: Duration::from_secs(10),
        }
    }
}

/// A compiled chat template.
///
/// The language is Jinja as the `transformers` package sets it up: blocks are trimmed, `{% break %}` and
/// `{% continue %}` work, strings and maps have the Python methods templates use, and there are `raise_exception`,
/// `tojson` and (if [`ChatInput::now`] is set) `strftime_now`. Templates read nothing but their input.
///
/// ```
/// use halite_engine::text::{ChatInput, ChatMessage, ChatTemplate};
///
/// let template = ChatTemplate::new("{% for m in messages %}<{{ m.role }}>{{ m.content.strip() }}{% endfor %}")?;
/// let text = template.render(&ChatInput::new(vec![ChatMessage::new("user", " hi ")]))?;
/// assert_eq!(text, "<user>hi");
/// # Ok::<(), halite_engine::text::TextError>(())
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Arc<Environment<'static>>,
    source: String,
    limits: TemplateLimits,
    /// Whether it asks for a message's content being none.
    knows_null: bool,
    /// The template for conversations with tools, where that is another one.
    tool_use: Option<Box<ChatTemplate>>,
    /// Runs that overstayed their time. While one goes on, no other is started.
    late: Mutex<Vec<JoinHandle<()>>>,
}

impl ChatTemplate {
    /// Compiles a template, with the default limits.
    pub fn new(source: &str) -> Result<Self, TextError> {
        Self::with_limits(source, TemplateLimits::default())
    }

    /// Compiles a template.
    ///
    /// # Errors
    /// [`TextError::TemplateTooLong`], or [`TextError::Template`] with the syntax error and its line.
    pub fn with_limits(source: &str, limits: TemplateLimits) -> Result<Self, TextError> {
        if source.len() > limits.source_bytes {
            return Err(TextError::TemplateTooLong { found: source.len(), limit: limits.source_bytes });
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        let syntax = syntax.map_err(|error| classify(&error, &limits))?;
        environment.set_syntax(syntax.clone());
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(limits.fuel));
        environment.set_recursion_limit(limits.recursion);
        environment.set_unknown_method_callback(python_method);
        template_functions::register(&mut environment, limits.output_bytes);
        let template = without_generation(source);
        namespace_use::check(&template, syntax)?;
        let compile = move || environment.add_template_owned(NAME, template).map(|()| environment);
        let compiled = on_deep_stack(compile)?.join().map_err(|_| failed("compiling it failed".into()))?;
        let environment = Arc::new(compiled.map_err(|error| classify(&error, &limits))?);
        let knows_null = asks_for_null(source);
        Ok(Self {
            environment,
            knows_null,
            source: source.into(),
            limits,
            tool_use: None,
            late: Mutex::default(),
        })
    }

    /// The same, with another template for conversations with tools.
    #[must_use]
    pub fn with_tool_use(mut self, template: ChatTemplate) -> Self {
        self.tool_use = Some(Box::new(template));
        self
    }

    /// The template as given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the template mentions `name`, as one does that has a place for "tools" or the role "developer": the
    /// template that lays out conversations with tools, or the one for those without.
    pub fn mentions(&self, name: &str, with_tools: bool) -> bool {
        self.choose(with_tools).source.contains(name)
    }

    /// The template that lays out this conversation.
    pub(crate) fn of(&self, input: &ChatInput) -> &Self {
        self.choose(input.tools.is_some())
    }

    fn choose(&self, with_tools: bool) -> &Self {
        self.tool_use.as_deref().filter(|_| with_tools).unwrap_or(self)
    }

    /// Lays out a conversation.
    ///
    /// # Errors
    /// [`TextError::TemplateRefused`] with the template's own message where it calls `raise_exception`;
    /// [`TextError::TemplateOutOfFuel`], [`TextError::TemplateOutputTooLong`] or [`TextError::TemplateTooSlow`] at a
    /// limit; [`TextError::Template`] for everything else.
    pub fn render(&self, input: &ChatInput) -> Result<String, TextError> {
        self.of(input).run(input)
    }

    fn run(&self, input: &ChatInput) -> Result<String, TextError> {
        let too_slow = TextError::TemplateTooSlow { limit: self.limits.time };
        if self.late_runs(|runs| !runs.is_empty()) {
            return Err(too_slow);
        }
        let context = input.context(self.knows_null);
        let (environment, limits) = (Arc::clone(&self.environment), self.limits.clone());
        let (sender, receiver) = sync_channel(1);
        let job = move || {
            // Nobody receives a result that comes too late.
            let _ = sender.send(run(&environment, context, &limits));
        };
        let thread = on_deep_stack(job)?;
        match receiver.recv_timeout(self.limits.time) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                self.late_runs(|runs| runs.push(thread));
                Err(too_slow)
            }
            Err(RecvTimeoutError::Disconnected) => Err(failed("its thread ended without a result".into())),
        }
    }

    fn late_runs<T>(&self, then: impl FnOnce(&mut Vec<JoinHandle<()>>) -> T) -> T {
        let mut runs = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|run| !run.is_finished());
        then(&mut runs)
    }
}

/// Whether a template distinguishes a message without content from one with an empty text.
fn asks_for_null(source: &str) -> bool {
    static ASKS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"\bcontent['"\]]*\s*(?:==|!=|is|is\s+not)\s*[Nn]one\b"#).ok());
    ASKS.as_ref().is_some_and(|asks| asks.is_match(source).unwrap_or(false))
}

/// Turns the blocks that mark what the assistant generates, which are for training, into blocks without effect.
fn without_generation(source: &str) -> String {
    static TAG: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}").ok());
    let block = |tag: &Captures<'_>| {
        let sign = |group| tag.get(group).map_or("", |sign| sign.as_str());
        let keyword = if tag.get(2).is_some() { "endif" } else { "if true" };
        format!("{{%{} {keyword} {}%}}", sign(1), sign(3))
    };
    let replaced = TAG.as_ref().map(|tag| tag.try_replacen(source, 0, block));
    replaced.and_then(Result::ok).map_or_else(|| source.to_owned(), Cow::into_owned)
}

fn on_deep_stack<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, TextError> {
    let thread = Builder::new().name(NAME.into()).stack_size(STACK_BYTES).spawn(job);
    thread.map_err(|e| failed(format!("cannot start a thread for it: {e}")))
}

fn run(environment: &Environment<'_>, context: Value, limits: &TemplateLimits) -> Result<String, TextError> {
    let mut output = BoundedOutput::new(limits.output_bytes);
    let template = environment.get_template(NAME).map_err(|error| classify(&error, limits))?;
    let rendered = template.render_captured_to(context, &mut output).map(drop);
    if output.is_full() {
        return Err(TextError::TemplateOutputTooLong { limit: limits.output_bytes });
    }
    rendered.map_err(|error| classify(&error, limits))?;
    String::from_utf8(output.into_bytes()).map_err(|e| failed(e.to_string()))
}

fn failed(message: String) -> TextError {
    TextError::Template { message }
}

/// Finds the cause of an error: the engine wraps it once for every macro and block it passes.
fn classify(error: &minijinja::Error, limits: &TemplateLimits) -> TextError {
    let mut message = error.to_string();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            return TextError::TemplateRefused { message: shortened(message) };
        }
        if current.downcast_ref::<minijinja::Error>().is_some_and(|e| e.kind() == ErrorKind::OutOfFuel) {
            return TextError::TemplateOutOfFuel { fuel: limits.fuel };
        }
        cause = current.source();
        if let Some(cause) = cause {
            message = format!("{message}: {cause}");
        }
    }
    failed(shortened(message))
}
