//! The texts of a Hugging Face model folder: its tokenizer and its chat template.

use std::io::{ErrorKind, Read};
use std::path::Path;

use super::chat_template::ChatTemplate;
use super::error::TextError;
use super::tokenizer::Tokenizer;
use super::tokenizer_config::TokenizerConfig;
use super::tokenizer_file::TokenizerFile;
use crate::folder_files;

/// Longest `tokenizer.json`, in bytes. The longest in use have about 35 million.
const MAX_TOKENIZER_BYTES: u64 = 128 << 20;
/// Longest of the other files, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

const DEFAULT_TEMPLATE: &str = "chat_template.jinja";
const TOOL_TEMPLATE: &str = "additional_chat_templates/tool_use.jinja";

/// What [`read_folder`] finds.
#[derive(Debug)]
#[non_exhaustive]
pub struct FolderTexts {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The chat template; base models have none.
    pub template: Option<ChatTemplate>,
}

/// Reads the tokenizer and the chat template of a model folder.
///
/// The tokenizer comes from `tokenizer.json`, with what `tokenizer_config.json` and `special_tokens_map.json` say
/// about it. The template is `chat_template.jinja`, with `additional_chat_templates/tool_use.jinja` where tools are
/// given, or `chat_template` in `tokenizer_config.json`: one template, or several of which "default" is used, and
/// "tool_use" where tools are given.
///
/// # Errors
/// [`TextError::NoTokenizer`] without a `tokenizer.json`; [`TextError::Read`] or [`TextError::FileTooLarge`];
/// as [`Tokenizer::from_files`] and [`ChatTemplate::new`].
pub fn read_folder(folder: &Path) -> Result<FolderTexts, TextError> {
    let tokenizer = read(folder, "tokenizer.json", MAX_TOKENIZER_BYTES)?;
    let tokenizer = tokenizer.ok_or_else(|| TextError::NoTokenizer { folder: folder.to_owned() })?;
    let file = TokenizerFile::read(&tokenizer)?;
    drop(tokenizer);
    let config = read(folder, "tokenizer_config.json", MAX_FILE_BYTES)?;
    let map = read(folder, "special_tokens_map.json", MAX_FILE_BYTES)?;
    let config = TokenizerConfig::read(config.as_deref(), map.as_deref())?;
    let template = match read(folder, DEFAULT_TEMPLATE, MAX_FILE_BYTES)? {
        Some(default) => {
            let for_tools = read(folder, TOOL_TEMPLATE, MAX_FILE_BYTES)?;
            let for_tools = for_tools.map(|jinja| source(jinja, TOOL_TEMPLATE)).transpose()?;
            Some(template(&source(default, DEFAULT_TEMPLATE)?, for_tools.as_deref())?)
        }
        None => configured(&config)?,
    };
    Ok(FolderTexts { tokenizer: Tokenizer::from_sources(file, &config)?, template })
}

fn source(jinja: Vec<u8>, file: &'static str) -> Result<String, TextError> {
    String::from_utf8(jinja).map_err(|e| TextError::File { file, reason: e.to_string() })
}

fn template(default: &str, for_tools: Option<&str>) -> Result<ChatTemplate, TextError> {
    let template = ChatTemplate::new(default)?;
    Ok(match for_tools {
        Some(for_tools) => template.with_tool_use(ChatTemplate::new(for_tools)?),
        None => template,
    })
}

fn configured(config: &TokenizerConfig) -> Result<Option<ChatTemplate>, TextError> {
    let Some(source) = &config.chat_template else { return Ok(None) };
    let Some(default) = source.default() else {
        let reason = "chat_template: expected one of the templates to be named \"default\"".into();
        return Err(TextError::File { file: "tokenizer_config.json", reason });
    };
    template(default, source.named("tool_use")).map(Some)
}

/// The whole file; `None` if there is none.
fn read(folder: &Path, name: &'static str, limit: u64) -> Result<Option<Vec<u8>>, TextError> {
    let path = folder.join(name);
    let failed = |source| TextError::Read { path: path.clone(), source };
    let file = match folder_files::open(folder, name) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(TextError::FileTooLarge { path, limit });
    }
    Ok(Some(bytes))
}
