//! `config.json` and `generation_config.json` of a model folder, over the tensors of a sound one.
#![no_main]

use halite_engine::WeightsFormat;
use halite_engine::model_file::{ModelFile, ModelFolder};
use halite_fuzz::{files, folder, write};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use tempfile::TempDir;

/// The tensors; small, and of the family whose configuration has most keys.
const TENSORS: &[u8] = include_bytes!("../../engine/tests/fixtures/models/gemma2/model.safetensors");

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

fuzz_target!(|input: &[u8]| {
    let [config, generation] = files(input);
    FOLDER.with(|cell| {
        let folder = cell.get_or_init(|| {
            let folder = folder();
            write(folder.path(), "model.safetensors", TENSORS);
            folder
        });
        write(folder.path(), "config.json", config);
        write(folder.path(), "generation_config.json", generation);
        let Ok(file) = ModelFolder::open(folder.path()) else { return };
        _ = file.architecture();
        _ = file.generation();
        if let Ok(config) = file.config() {
            assert_eq!(config.layer_kinds.len(), config.layers);
            assert!(config.layer_kinds.iter().all(|&kind| kind < config.attention_kinds.len()));
            let format = WeightsFormat::default();
            _ = config.memory(format, format.default_kv_format());
        }
    });
});
