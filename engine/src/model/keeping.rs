//! Whether weights come from what an earlier start kept, and whether they are kept for a later one.

use crate::WeightsFormat;
use crate::weights_cache::{KeptWeights, WeightsCache, WeightsCacheError, WeightsWriter};
use std::fmt::Display;
use std::path::Path;

/// What a loader does beside converting.
pub(super) enum Kept {
    /// It takes what was kept, and converts nothing.
    Restored(KeptWeights),
    /// It keeps what it converts.
    Written(WeightsWriter),
    /// Nothing.
    Off,
}

impl Kept {
    /// Begins to keep, where that can be.
    pub(super) fn begin(cache: &WeightsCache, format: WeightsFormat, backend: &str) -> Self {
        match cache.create(format, backend) {
            Ok(writer) => Self::Written(writer),
            Err(error) => {
                not_kept(&cache.file(format, backend), &error);
                Self::Off
            }
        }
    }

    /// Keeps a section. The first that cannot be kept is the last: then nothing is, and loading goes on.
    pub(super) fn keep<T: AsRef<[u8]>>(&mut self, name: &str, bytes: impl FnOnce() -> halite_hal::Result<T>) {
        let Self::Written(writer) = self else { return };
        let kept = match bytes() {
            Ok(bytes) => writer.push(name, bytes.as_ref()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = kept {
            not_kept(writer.path(), &error);
            *self = Self::Off;
        }
    }

    /// All is there: what was kept is for later starts from now on, if the model is still the one that was opened.
    pub(super) fn finish(self, cache: &WeightsCache) {
        let Self::Written(writer) = self else { return };
        let path = writer.path().to_owned();
        if !cache.is_current() {
            not_kept(&path, &"the model's file changed meanwhile");
        } else if let Err(error) = writer.finish() {
            not_kept(&path, &error);
        }
    }
}

/// What was kept, where it can be taken; where not, the reason is said, the louder the less it was to be expected.
pub(super) fn kept(cache: &WeightsCache, format: WeightsFormat, backend: &str) -> Option<KeptWeights> {
    match cache.open(format, backend) {
        Ok(kept) => return Some(kept),
        Err(error @ WeightsCacheError::Nothing { .. }) => tracing::debug!(%error, "converting the weights"),
        Err(error @ (WeightsCacheError::Other { .. } | WeightsCacheError::Version { .. })) => {
            tracing::info!(%error, "converting the weights again");
        }
        Err(error) => not_taken(&error),
    }
    None
}

/// Says that kept weights are of no use.
pub(super) fn not_taken(error: &impl Display) {
    tracing::warn!(%error, "the kept weights are not used, and converted again");
}

fn not_kept(path: &Path, error: &impl Display) {
    let path = path.display();
    tracing::warn!(
        "the converted weights are not kept in {path}: {error}; the next start converts them again \
         (--no-weights-cache does without)"
    );
}
