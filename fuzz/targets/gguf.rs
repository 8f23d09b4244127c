//! A GGUF file: header, metadata, tensors, and what a model is made from.
#![no_main]

use halite_engine::gguf::{GgufFile, dequantize_rows};
use halite_engine::model_file::ModelFile;
use libfuzzer_sys::fuzz_target;

/// Values dequantised of one input.
const VALUES: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Ok(file) = GgufFile::from_bytes(input.to_vec()) else { return };
    for tensor in file.tensors() {
        let Ok(view) = file.tensor(tensor.name()) else { continue };
        let rows = view.rows().min(VALUES / view.row_len().max(1));
        let mut values = vec![0.0; rows * view.row_len()];
        dequantize_rows(&view, 0..rows, &mut values).expect("rows that are there");
    }
    // Whatever they say: they must say it.
    _ = file.config().map(|config| config.parameters());
    _ = file.texts();
    _ = file.stored_tensors();
});
