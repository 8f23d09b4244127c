//! Compiled pipelines on disk, where the driver can hand them over, so that the next process starts at once.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The driver's cache, and the file that it comes from and goes to.
pub(crate) struct DiskCache {
    cache: Option<wgpu::PipelineCache>,
    file: Option<PathBuf>,
}

/// A file is 8 bytes that say what it is, the data's length and checksum, and the data: drivers need not survive half of it.
const MAGIC: &[u8; 8] = b"halitepc";

impl DiskCache {
    /// The cache of an adapter in `folder`; in no folder, one that is gone with the process.
    pub(crate) fn open(device: &wgpu::Device, adapter: &wgpu::AdapterInfo, folder: Option<&Path>) -> Self {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return DiskCache { cache: None, file: None };
        }
        let file = folder.zip(wgpu::util::pipeline_cache_key(adapter)).map(|(folder, key)| folder.join(key));
        let data = file.as_deref().and_then(read);
        let descriptor = wgpu::PipelineCacheDescriptor { label: None, data: data.as_deref(), fallback: true };
        // SAFETY: the data is what `PipelineCache::get_data` gave for an adapter of this key, whole: its length and its
        // checksum stand before it. The driver checks its own header against the device, and starts empty where it does
        // not fit.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        DiskCache { cache: Some(cache), file }
    }

    pub(crate) fn get(&self) -> Option<&wgpu::PipelineCache> {
        self.cache.as_ref()
    }

    /// Writes the file, whole or not at all. A folder that cannot be written is no error: the next start is slower.
    pub(crate) fn save(&self) {
        let Some((file, data)) =
            self.file.as_deref().zip(self.cache.as_ref().and_then(|cache| cache.get_data()))
        else {
            return;
        };
        let (length, sum) = ((data.len() as u64).to_le_bytes(), checksum(&data).to_le_bytes());
        let bytes = [&MAGIC[..], &length, &sum, &data].concat();
        let unfinished = file.with_extension(std::process::id().to_string());
        let written =
            file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&unfinished, bytes));
        if written.and_then(|()| fs::rename(&unfinished, file)).is_err() {
            let _ = fs::remove_file(&unfinished);
        }
    }
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(file).ok()?;
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (sum, data) = rest.split_first_chunk::<8>()?;
    let whole =
        u64::from_le_bytes(*length) == data.len() as u64 && u64::from_le_bytes(*sum) == checksum(data);
    (magic == MAGIC && whole).then(|| data.to_vec())
}

/// FNV-1a, against damage and not against people.
fn checksum(data: &[u8]) -> u64 {
    data.iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Wgpu, testing};

    /// The only file of a folder.
    fn file(folder: &Path) -> PathBuf {
        let mut files = fs::read_dir(folder).unwrap();
        let file = files.next().expect("a file").unwrap().path();
        assert!(files.next().is_none(), "one file, and no unfinished one");
        file
    }

    fn device(folder: &Path) -> Wgpu {
        Wgpu::new(Options::default().pipeline_cache(folder)).unwrap()
    }

    #[test]
    fn a_second_device_reads_what_the_first_kept_and_no_damaged_file() {
        if testing::gpu("the pipeline cache").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made/when/needed");
        // The self-test is compiled already.
        drop(device(&folder));
        let kept = fs::read(file(&folder)).unwrap();
        assert!(read(&file(&folder)).is_some_and(|data| !data.is_empty()), "the driver keeps pipelines");
        drop(device(&folder));
        assert!(read(&file(&folder)).is_some());

        let mut flipped = kept.clone();
        flipped[kept.len() - 1] ^= 1;
        let mut renamed = kept.clone();
        renamed[0] ^= 1;
        let longer = [&kept[..], &[0]].concat();
        for damaged in [&kept[..kept.len() - 1], &kept[..20], &[], &flipped, &renamed, &longer] {
            fs::write(file(&folder), damaged).unwrap();
            assert_eq!(read(&file(&folder)), None);
            // It starts as if there were none, and the next one finds a whole file.
            drop(device(&folder));
            assert!(read(&file(&folder)).is_some());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        if testing::gpu("the pipeline cache").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let below_a_file = folder.path().join("file");
        fs::write(&below_a_file, "no folder").unwrap();
        drop(device(&below_a_file.join("cache")));
        assert_eq!(fs::read(&below_a_file).unwrap(), b"no folder");
    }
}
