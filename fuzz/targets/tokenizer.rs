//! `tokenizer.json` and `tokenizer_config.json` of a model folder, and a text to encode.
#![no_main]

use halite_engine::text::{self, SpecialTokens};
use halite_fuzz::{files, folder, write};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

fuzz_target!(|input: &[u8]| {
    let [tokenizer, config, text] = files(input);
    FOLDER.with(|cell| {
        let folder = cell.get_or_init(folder).path();
        write(folder, "tokenizer.json", tokenizer);
        write(folder, "tokenizer_config.json", config);
        let Ok(texts) = text::read_folder(folder) else { return };
        let tokenizer = texts.tokenizer;
        let text = String::from_utf8_lossy(text);
        for special in [SpecialTokens::AsText, SpecialTokens::Parse] {
            let Ok(ids) = tokenizer.encode(&text, special) else { continue };
            let whole = tokenizer.decode(&ids).expect("ids of its own");
            let mut decoder = tokenizer.stream_decoder();
            let mut streamed = String::new();
            for &id in &ids {
                streamed.push_str(&decoder.push(id).expect("ids of its own"));
            }
            streamed.push_str(&decoder.finish());
            assert_eq!(streamed, whole, "piece by piece and as a whole");
        }
    });
});
