//! Files that nobody will ask for again.

use super::ENDING;
use super::table::Table;
use crate::mapped_file;
use std::fs::{self, OpenOptions};
use std::path::Path;

/// What the names of unfinished files end in.
pub(super) const PART: &str = ".part";

/// Removes weights of models that are not there any more, weights that nobody can read, and what a writer left that did not
/// come to its end. (Weights of a model that changed are replaced by the next ones, which have the same name.) What cannot
/// be removed stays.
pub(super) fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let stale =
            if name.ends_with(PART) { is_left(&path) } else { name.ends_with(ENDING) && is_orphan(&path) };
        if stale && fs::remove_file(&path).is_ok() {
            tracing::debug!(file = %path.display(), "removed: nobody will ask for these weights again");
        }
    }
}

/// Whether no writer holds it any more.
fn is_left(path: &Path) -> bool {
    OpenOptions::new().write(true).open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Whether its model is gone.
fn is_orphan(path: &Path) -> bool {
    let Ok(map) = mapped_file::map(path) else { return false };
    match Table::read(path, &map) {
        Ok(table) => !table.key.path.exists(),
        Err(error) => {
            tracing::debug!(%error, "kept weights that cannot be read");
            true
        }
    }
}
