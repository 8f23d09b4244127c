//! What the fuzz targets share: a folder in memory, and inputs of several files.

use std::path::Path;
use tempfile::TempDir;

/// Files of an input are apart by this line. Seeds are text, so a fuzzer keeps it often enough.
const BORDER: &[u8] = b"\n=====\n";

/// A folder that the inputs of a target are written into, on a file system in memory where there is one.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    folder.expect("a folder for the inputs")
}

/// The files that an input is made of, at most `COUNT`; those it does not have are empty.
pub fn files<const COUNT: usize>(input: &[u8]) -> [&[u8]; COUNT] {
    let mut rest = Some(input);
    std::array::from_fn(|index| {
        let bytes = rest.take().unwrap_or_default();
        let border = bytes.windows(BORDER.len()).position(|window| window == BORDER);
        match border.filter(|_| index + 1 < COUNT) {
            Some(at) => {
                rest = Some(&bytes[at + BORDER.len()..]);
                &bytes[..at]
            }
            None => bytes,
        }
    })
}

/// Writes a file, or removes it where there is nothing to write.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    if bytes.is_empty() {
        _ = std::fs::remove_file(path);
    } else {
        std::fs::write(path, bytes).expect("a file of the input");
    }
}
