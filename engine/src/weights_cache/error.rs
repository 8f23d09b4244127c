//! Why kept weights are not taken.

use std::io;
use std::path::PathBuf;

/// Why converted weights that were kept are not taken. Loading goes on without them, and logs it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsCacheError {
    /// Nothing was kept.
    #[error("there is no {}", path.display())]
    Nothing {
        /// The file that would be taken.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} holds no converted weights: it does not begin with {expected:?}", path.display())]
    NotWeights {
        /// The file.
        path: PathBuf,
        /// What such a file begins with.
        expected: &'static str,
    },
    /// The file is of another version of the format.
    #[error("{} is of another version: expected {expected:?}, got {got:?}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// This version's name.
        expected: &'static str,
        /// The file's.
        got: String,
    },
    /// The file ends too early.
    #[error("{} ends after {bytes} bytes, without its end mark: it was not written to the end", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// A checksum is wrong, or what has to be there is not.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, and how.
        what: String,
    },
    /// Whole, but made of something else.
    #[error("{} was made by or of another {what}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// "program", "backend", "weights format", "model path" or "model file".
        what: &'static str,
    },
}
