//! A chat template over a conversation with everything in it: bounded in time and output, whatever it says.
#![no_main]

use halite_engine::text::{ChatInput, ChatMessage, ChatTemplate};
use halite_fuzz::files;
use libfuzzer_sys::fuzz_target;
use std::time::SystemTime;

fuzz_target!(|input: &[u8]| {
    let [template, said] = files(input);
    let Ok(template) = std::str::from_utf8(template) else { return };
    let Ok(template) = ChatTemplate::new(template) else { return };
    let said = String::from_utf8_lossy(said).into_owned();
    let mut chat = ChatInput::new(vec![
        ChatMessage::new("system", "Be brief."),
        ChatMessage::new("user", said.clone()),
        ChatMessage::new("assistant", "Yes."),
        ChatMessage::new("tool", said),
    ]);
    chat.bos_token = "<s>".to_owned();
    chat.eos_token = "</s>".to_owned();
    chat.now = Some(SystemTime::UNIX_EPOCH);
    if let Ok(text) = template.render(&chat) {
        assert!(text.len() <= 64 << 20, "{} bytes", text.len());
    }
});
