//! The bodies of requests to the server.
#![no_main]

use halite_server::serve::request::{parse_chat, parse_completion};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    _ = parse_chat(input);
    _ = parse_completion(input);
});
