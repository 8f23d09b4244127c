//! A safetensors folder: an index and two shards, each of them hostile.
#![no_main]

use halite_engine::safetensors::SafetensorsFolder;
use halite_fuzz::{files, folder, write};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// A shard from its header and its tensors' bytes, so that lengths need not be guessed; or the bytes as they are.
fn shard(header: &[u8], data: &[u8]) -> Vec<u8> {
    if header.is_empty() {
        data.to_vec()
    } else {
        [&(header.len() as u64).to_le_bytes(), header, data].concat()
    }
}

fuzz_target!(|input: &[u8]| {
    let [index, header, data, second] = files(input);
    FOLDER.with(|cell| {
        let folder = cell.get_or_init(folder).path();
        write(folder, "model.safetensors.index.json", index);
        write(folder, "model.safetensors", &shard(header, data));
        write(folder, "b.safetensors", second);
        let Ok(model) = SafetensorsFolder::open(folder) else { return };
        let mut bytes = 0;
        for tensor in model.tensors() {
            assert!(model.tensor(tensor.name()).is_some());
            bytes += tensor.data().len() as u64;
            _ = tensor.to_f32();
            _ = tensor.as_i8();
        }
        assert!(bytes <= model.bytes());
    });
});
