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

/// Before a file's data, so that half a file is not taken for one: 8 bytes that say what it is, and its length.
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
        // SAFETY: the data is what `PipelineCache::get_data` gave for an adapter of this key, whole: its length stands
        // before it. The driver checks its own header against the device, and starts empty where it does not fit.
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
        let length = (data.len() as u64).to_le_bytes();
        let bytes = [&MAGIC[..], &length, &data].concat();
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
    let (length, data) = rest.split_first_chunk::<8>()?;
    (magic == MAGIC && u64::from_le_bytes(*length) == data.len() as u64).then(|| data.to_vec())
}
