//! Where the files of a model's folder may really be: a folder from a stranger must not hand out files that are not its own.

use crate::mapped_file::open_regular;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Without links: the folder, and the blobs of the hub's cache if it is a snapshot there, whose files are links:
/// `MODEL/snapshots/COMMIT/file` to `MODEL/blobs/HASH`. `folder` must be without links itself.
pub(crate) fn homes(folder: &Path) -> Vec<PathBuf> {
    let snapshots =
        folder.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "snapshots"));
    let blobs = snapshots.and_then(Path::parent).map(|model| model.join("blobs"));
    [folder.to_owned()].into_iter().chain(blobs).collect()
}

/// Opens a regular file of a folder, or below it; a link is followed only to where the folder's files may be.
pub(crate) fn open(folder: &Path, name: &str) -> io::Result<File> {
    let path = folder.join(name);
    let target = path.canonicalize()?;
    let file = open_regular(&target)?;
    if homes(&folder.canonicalize()?).iter().any(|home| target.starts_with(home)) {
        Ok(file)
    } else {
        let message = format!("it is a link out of the model's folder, to {}", target.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}
