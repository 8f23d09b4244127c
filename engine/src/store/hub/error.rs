//! What can go wrong between the hub and the cache.

use std::fmt;
use std::path::PathBuf;

use crate::safetensors::SafetensorsError;

/// An error of the hub. Its message says what helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// Not the name of a model on the hub.
    #[error("{asked:?} is not the name of a model on the hub: {reason}")]
    BadName {
        /// What was asked for.
        asked: String,
        /// Why it is no name.
        reason: &'static str,
    },
    /// Not the name of a GGUF file.
    #[error("{file:?} is not the path of a .gguf file in a repository")]
    BadFile {
        /// What was asked for.
        file: String,
    },
    /// `HF_ENDPOINT` or the token cannot be used.
    #[error("{what} is {value:?}; {expected}")]
    BadSetting {
        /// The setting.
        what: &'static str,
        /// Its value; empty for a token, which is never shown.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The hub knows no such repository, or hides it.
    #[error(
        "{endpoint} has no model {repo}, or it is private{}; there is no file or folder of that name here either",
        if *with_token { " and not for the token that was sent" } else { " (a token in HF_TOKEN would be sent)" }
    )]
    NoSuchRepo {
        /// The repository.
        repo: String,
        /// The hub.
        endpoint: String,
        /// Whether a token was sent.
        with_token: bool,
    },
    /// The repository has no such branch, tag or commit.
    #[error("{repo} has no revision {revision:?}; see {endpoint}/{repo}/tree/main for its branches and tags")]
    NoSuchRevision {
        /// The repository.
        repo: String,
        /// The revision.
        revision: String,
        /// The hub.
        endpoint: String,
    },
    /// The repository is gated or private.
    #[error(
        "{endpoint} refuses {repo} (status {status}): it is gated or private, and {}; accept its conditions at \
         {endpoint}/{repo}, make a token that may read it at {endpoint}/settings/tokens, and give the token in the \
         environment variable HF_TOKEN{}",
        if *with_token { "the token that was sent may not read it" } else { "no token was sent" },
        TokenFile(token_file)
    )]
    NeedsToken {
        /// The repository.
        repo: String,
        /// The hub.
        endpoint: String,
        /// 401 or 403.
        status: u16,
        /// Whether a token was sent.
        with_token: bool,
        /// Where a token is looked for.
        token_file: Option<PathBuf>,
    },
    /// The hub cannot be reached.
    #[error("cannot reach {host}: {reason}{}", Behind(cached))]
    Unreachable {
        /// The host.
        host: String,
        /// What happened.
        reason: String,
        /// What is there without it, and what to do; `None` while it is tried again.
        cached: Option<String>,
    },
    /// The hub answers with a status that means no file.
    #[error("{url} answers with status {status}{}", if *status == 429 { ": too many requests, wait a while" } else { "" })]
    Status {
        /// What was asked for.
        url: String,
        /// The status.
        status: u16,
    },
    /// An answer makes no sense.
    #[error("{url} answers with something that is not what a hub answers: {reason}")]
    BadAnswer {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A name of a file that leads out of the folder.
    #[error(
        "{repo} lists a file {name:?}, which leads out of the model's folder or into hidden files; nothing was fetched"
    )]
    HostileName {
        /// The repository.
        repo: String,
        /// The name.
        name: String,
    },
    /// The repository holds nothing that can be run.
    #[error("{repo} has no model that can be run: {reason}")]
    NoModel {
        /// The repository.
        repo: String,
        /// What is there, or missing.
        reason: String,
    },
    /// Several GGUF files and no choice.
    #[error(
        "{repo} has several .gguf files; choose one with `halite pull {repo} --file NAME`:{}",
        FileList(files)
    )]
    ChooseFile {
        /// The repository.
        repo: String,
        /// Names and, if known, sizes in bytes.
        files: Vec<(String, Option<u64>)>,
    },
    /// The file asked for is not there.
    #[error("{repo} has no file {file}; its .gguf files:{}", FileList(files))]
    NoSuchFile {
        /// The repository.
        repo: String,
        /// The file.
        file: String,
        /// Names and, if known, sizes in bytes.
        files: Vec<(String, Option<u64>)>,
    },
    /// The repository's index of shards is wrong.
    #[error("{repo}: {source}")]
    BadIndex {
        /// The repository.
        repo: String,
        /// What is wrong.
        #[source]
        source: Box<SafetensorsError>,
    },
    /// The connection broke, again and again.
    #[error(
        "{file} came only to {bytes} of {total} bytes: {reason}; what came is kept, run `halite pull` again to go on \
         from there"
    )]
    Interrupted {
        /// The file.
        file: String,
        /// Bytes that are here.
        bytes: u64,
        /// Bytes of the file.
        total: u64,
        /// What happened last.
        reason: String,
    },
    /// A file is not what the hub says it is.
    #[error(
        "{file} has the wrong {property}: expected {expected}, got {got}; it was deleted, run `halite pull` again"
    )]
    Mismatch {
        /// The file.
        file: String,
        /// "size" or "SHA-256".
        property: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// The disk is too small.
    #[error("{} bytes are missing in {}: {needed} are needed and {free} are free", needed.saturating_sub(*free), folder.display())]
    NoSpace {
        /// The cache folder.
        folder: PathBuf,
        /// Bytes still to be fetched.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
}

struct FileList<'a>(&'a [(String, Option<u64>)]);

impl fmt::Display for FileList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, bytes) in self.0 {
            match bytes {
                Some(bytes) => write!(f, "\n  {name} ({} MB)", bytes.div_ceil(1_000_000))?,
                None => write!(f, "\n  {name}")?,
            }
        }
        Ok(())
    }
}

/// What comes behind a semicolon, if there is any.
struct Behind<'a>(&'a Option<String>);

impl fmt::Display for Behind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => write!(f, "; {text}"),
            None => Ok(()),
        }
    }
}

struct TokenFile<'a>(&'a Option<PathBuf>);

impl fmt::Display for TokenFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, " or in the file {}", path.display()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_where_there_is_nothing_to_add() {
        let unreachable = |cached: Option<&str>| {
            let (host, reason, cached) = ("hub".into(), "timeout".into(), cached.map(str::to_owned));
            HubError::Unreachable { host, reason, cached }.to_string()
        };
        assert_eq!(unreachable(None), "cannot reach hub: timeout");
        assert_eq!(unreachable(Some("it is here")), "cannot reach hub: timeout; it is here");
    }
}
