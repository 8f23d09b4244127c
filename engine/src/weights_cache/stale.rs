//! Files that nobody will ask for again.

use super::table::Table;
use super::{ENDING, WeightsCacheError};
use crate::mapped_file;
use std::fs::{self, File, OpenOptions};
use std::path::Path;

/// What the names of unfinished files end in.
pub(super) const PART: &str = ".part";

/// Removes weights of models that are not there any more, weights that are damaged, and what a writer left that did not come
/// to its end: only files with names as [`WeightsCache::file`](super::WeightsCache::file) gives them, and never what this
/// version does not know. (Weights of a model that changed are replaced by the next ones, which have the same name.) What
/// cannot be removed stays.
pub(super) fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Not a link, and not a pipe, which would be waited for.
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // Held until the file is gone: whoever is about to lock it sees that somebody took it.
        let mut lock = None;
        let stale = match whole_of_part(&name) {
            Some(whole) => {
                lock = is_ours(whole).then(|| left(&path)).flatten();
                lock.is_some()
            }
            None => is_ours(&name) && is_orphan(&path),
        };
        if stale && fs::remove_file(&path).is_ok() {
            tracing::debug!(file = %path.display(), "removed: nobody will ask for these weights again");
        }
        drop(lock);
    }
}

/// The name that an unfinished file would have got, of a name with the number of a process and of a writer.
fn whole_of_part(name: &str) -> Option<&str> {
    let (whole, numbers) = name.strip_suffix(PART)?.rsplit_once('.')?;
    let (process, writer) = numbers.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(writer)).then_some(whole)
}

/// Whether a name is the model's, its path's hash, and what the weights are for.
fn is_ours(name: &str) -> bool {
    let Some(name) = name.strip_suffix(ENDING) else { return false };
    let is_hash = |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split('-').skip(1).any(is_hash)
}

/// A part that no writer holds any more, locked.
fn left(path: &Path) -> Option<File> {
    let file = OpenOptions::new().write(true).open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// Whether its model is gone, or it is damaged. Another version's is left to that.
fn is_orphan(path: &Path) -> bool {
    let Ok(map) = mapped_file::map(path) else { return false };
    match Table::read(path, &map) {
        // A model that cannot be looked for may be there.
        Ok(table) => table.key.path.try_exists().is_ok_and(|there| !there),
        Err(error @ (WeightsCacheError::Damaged { .. } | WeightsCacheError::Truncated { .. })) => {
            tracing::debug!(%error, "kept weights that cannot be read");
            true
        }
        Err(_) => false,
    }
}
