//! Models from the Hugging Face hub, in the cache that other programs use too.
//!
//! The layout of the cache, the addresses and the token file are those of the hf-hub crate. Requests are made here: see
//! `http`.

mod download;
mod error;
mod http;
mod layout;
mod listing;
mod name;
mod partial;
mod selection;
mod space;

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::HubError;
pub use name::HubModel;

use super::cache::Cache;
use super::cache_lock::CacheLock;
use super::error::{StoreError, folder_error};
use super::progress::Phase;
use crate::safetensors::index::MAX_INDEX_BYTES;
use download::{Download, Tally};
use http::{Endpoint, Http};
use layout::Layout;
use listing::{Listing, RemoteFile};
use selection::Selection;

const DEFAULT_ENDPOINT: &str = "https://huggingface.co";
/// The longest wait for a sign of life.
const SILENCE: Duration = Duration::from_secs(30);
const RETRIES: u32 = 4;
/// Names of cached models quoted in an error.
const SHOWN_MODELS: usize = 8;

/// The hub, and the folder that keeps what comes from it.
#[derive(Clone)]
pub struct Hub {
    folder: PathBuf,
    endpoint: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    offline: bool,
    silence: Duration,
    retries: u32,
}

impl Hub {
    /// The hub at `https://huggingface.co`, without a token, keeping files in `folder` (in the hub's own layout).
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            endpoint: DEFAULT_ENDPOINT.into(),
            token: None,
            token_file: None,
            offline: false,
            silence: SILENCE,
            retries: RETRIES,
        }
    }

    /// The hub as the environment has it: `HF_ENDPOINT`, `HF_TOKEN` or the token file that `huggingface-cli login`
    /// writes (`$HF_HOME/token`), `HF_HUB_OFFLINE`; files in [`Cache::hub_folder`].
    pub fn from_env(cache: &Cache) -> Self {
        let value =
            |name| env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let home = super::cache::hub_home().map(|home| hf_hub::Cache::new(home.join("hub")));
        let mut hub = Self::new(cache.hub_folder());
        hub.token = value("HF_TOKEN").or_else(|| home.as_ref()?.token());
        hub.token_file = home.map(|home| home.token_path());
        hub.offline = value("HF_HUB_OFFLINE")
            .is_some_and(|value| matches!(&*value.to_ascii_lowercase(), "1" | "true" | "yes" | "on"));
        match value("HF_ENDPOINT") {
            Some(endpoint) => hub.with_endpoint(endpoint),
            None => hub,
        }
    }

    /// Another hub: `http(s)://host[:port]`.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = endpoint.into();
        self
    }

    /// The token, which is sent to the hub and to no other host.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The longest wait for a connection, for an answer, and between two pieces of one; 30 seconds unless set.
    #[must_use]
    pub fn with_timeout(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// How often a broken download is taken up again before anybody is told. The count starts anew with every 256 KiB
    /// that come, unless it is 0; less is no sign of a connection that gets anywhere.
    #[must_use]
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// The model if all of it is here: its folder, or its GGUF file. Asks nobody.
    pub fn cached(&self, model: &HubModel) -> Option<PathBuf> {
        let layout = Layout::new(&self.folder, model);
        let commit = layout.commit(model.revision())?;
        let snapshot = layout.snapshot(&commit);
        if model.file().is_none() && layout.complete(&commit).is_some() {
            return Some(snapshot);
        }
        let ggufs = layout.ggufs(&commit);
        let chosen = match (model.file(), &*ggufs) {
            (Some(file), _) => ggufs.iter().find(|name| *name == file)?,
            (None, [only]) => only,
            (None, _) => return None,
        };
        Some(snapshot.join(chosen))
    }

    /// The model from the cache if all of it is there, else from the hub.
    ///
    /// # Errors
    /// Those of [`Self::pull`].
    pub fn obtain(&self, model: &HubModel, progress: &mut dyn FnMut(Phase)) -> Result<PathBuf, StoreError> {
        match self.cached(model) {
            Some(path) => Ok(path),
            None => self.pull(model, progress),
        }
    }

    /// Asks the hub what the revision is now and fetches what is not here yet. Returns the folder of the model, or its
    /// GGUF file.
    ///
    /// The folder holds the safetensors and, where the repository has them, `config.json`, `generation_config.json`,
    /// `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, `additional_chat_templates/tool_use.jinja` and
    /// `special_tokens_map.json`. Large files are checked against their SHA-256, small ones (kept in git itself) by
    /// their size. A file appears under its name only when it is whole; what came of an interrupted one is kept, and
    /// the next call asks for the rest.
    ///
    /// # Errors
    /// [`StoreError::Hub`] with what the hub says or does wrong, [`StoreError::Folder`] if the cache cannot be used.
    pub fn pull(&self, model: &HubModel, progress: &mut dyn FnMut(Phase)) -> Result<PathBuf, StoreError> {
        self.fetch(model, progress).map_err(|error| self.explained(model, error))
    }

    fn fetch(&self, model: &HubModel, progress: &mut dyn FnMut(Phase)) -> Result<PathBuf, StoreError> {
        progress(Phase::Listing);
        let http = Http::new(Endpoint::new(&self.endpoint)?, self.token.clone(), self.silence)?;
        if self.offline {
            let (host, reason) = (self.endpoint.clone(), "HF_HUB_OFFLINE is set".into());
            return Err(HubError::Unreachable { host, reason, cached: None }.into());
        }
        let listing = Listing::fetch(&http, model)?;
        let selection = selection::choose(&listing, model)?;

        let layout = Layout::new(&self.folder, model);
        let notes = layout.notes();
        fs::create_dir_all(&notes).map_err(folder_error("create", &notes))?;
        let _lock = CacheLock::acquire(&notes, progress)?;
        let commit = &listing.commit;
        let checked = layout.complete(commit);
        let mut download = Download {
            http: &http,
            model,
            layout: &layout,
            checked,
            retries: self.retries,
            tally: Tally::default(),
        };
        let remote = |file| listing.remote(&http, model, file);
        let (chosen, gguf) = match selection {
            Selection::Gguf(file) => (vec![remote(file)?], Some(&file.name)),
            Selection::Folder(files) => (files.into_iter().map(remote).collect::<Result<_, _>>()?, None),
            Selection::Sharded(index, beside) => {
                let index = remote(index)?;
                self.bring(&mut download, std::slice::from_ref(&index), progress)?;
                let json = read_index(&layout.blob(&index))?;
                let shards = selection::shards(&listing, &json)?;
                let others = beside.into_iter().chain(shards).map(remote);
                ([Ok(index)].into_iter().chain(others).collect::<Result<_, _>>()?, None)
            }
        };
        self.bring(&mut download, &chosen, progress)?;

        let snapshot = layout.snapshot(commit);
        for file in &chosen {
            layout.link(commit, file).map_err(folder_error("write", &snapshot))?;
        }
        if gguf.is_none() {
            layout.write_manifest(commit, &chosen).map_err(folder_error("write", &notes))?;
        }
        layout.set_commit(model.revision(), commit).map_err(folder_error("write", &snapshot))?;
        Ok(gguf.map_or_else(|| snapshot.clone(), |name| snapshot.join(name)))
    }

    /// Makes blobs of these files, having looked whether there is space for them.
    fn bring(
        &self,
        download: &mut Download<'_>,
        files: &[RemoteFile],
        progress: &mut dyn FnMut(Phase),
    ) -> Result<(), StoreError> {
        let mut missing = Vec::new();
        for file in files {
            if let Some(folder) = download.layout.blob(file).parent() {
                fs::create_dir_all(folder).map_err(folder_error("create", folder))?;
            }
            if !download.is_here(file, progress)? {
                missing.push(file.clone());
            }
        }
        let needed =
            missing.iter().map(|file| file.bytes - download.left_over(file)).fold(0, u64::saturating_add);
        match space::free_bytes(&self.folder) {
            Some(free) if free < needed => {
                return Err(HubError::NoSpace { folder: self.folder.clone(), needed, free }.into());
            }
            _ => {}
        }
        download.tally.expect(&missing);
        missing.iter().try_for_each(|file| download.fetch(file, progress))
    }

    /// Adds to an error what only the hub's owner knows.
    fn explained(&self, model: &HubModel, error: StoreError) -> StoreError {
        match error {
            StoreError::Hub(HubError::Unreachable { host, reason, .. }) => {
                HubError::Unreachable { host, reason, cached: Some(self.without_network(model)) }.into()
            }
            StoreError::Hub(HubError::NeedsToken { repo, endpoint, status, with_token, .. }) => {
                let token_file = self.token_file.clone();
                HubError::NeedsToken { repo, endpoint, status, with_token, token_file }.into()
            }
            error => error,
        }
    }

    /// What is there without a network, and what to do.
    fn without_network(&self, model: &HubModel) -> String {
        if let Some(path) = self.cached(model) {
            return format!("the model is in the cache and can be used without the hub: {}", path.display());
        }
        let folder = self.folder.display();
        let models = layout::models(&self.folder);
        let shown = models.iter().take(SHOWN_MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
        let there = match models.len() {
            0 => format!("{folder} has no whole model from the hub"),
            1..=SHOWN_MODELS => format!("{folder} has {shown}"),
            _ => format!("{folder} has {shown}, ..."),
        };
        format!(
            "{model} is no path here and not, or not all of it, in the cache; {there}; check the network connection, HF_ENDPOINT and \
             HTTPS_PROXY, or give the path of a model on this machine"
        )
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("folder", &self.folder)
            .field("endpoint", &self.endpoint)
            // Never the token.
            .field("has_token", &self.token.is_some())
            .finish_non_exhaustive()
    }
}

fn read_index(path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut json = Vec::new();
    let file = fs::File::open(path).map_err(folder_error("read", path))?;
    // One byte more than any index makes JSON that is cut short, and an error.
    file.take(MAX_INDEX_BYTES + 1).read_to_end(&mut json).map_err(folder_error("read", path))?;
    Ok(json)
}
