//! Files made to do harm: each is refused, by name, without a panic and without memory to match its claims.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "../src/gguf/test_writer.rs"]
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};

use halite_engine::gguf::{GgufError, GgufFile};
use writer::{Writer, string};

const STRING: u32 = 8;
const ARRAY: u32 = 9;
const F32: u32 = 0;
const Q8_0: u32 = 8;
const HUGE: [u64; 5] = [1_000_000_000, 1 << 32, u64::MAX / 8 + 1, u64::MAX - 7, u64::MAX];

/// The error a file gives, having shown that it takes no more memory than a small file may.
fn refused(bytes: Vec<u8>) -> GgufError {
    let limit = 4096 + 16 * bytes.len() as u64;
    let mut result = None;
    let memory = allocation_counter::measure(|| result = Some(GgufFile::from_bytes(bytes)));
    assert!(memory.bytes_max <= limit, "took {} bytes, limit {limit}", memory.bytes_max);
    result.unwrap().unwrap_err()
}

fn array(element: u32, count: u64) -> Vec<u8> {
    [&element.to_le_bytes()[..], &count.to_le_bytes()].concat()
}

#[track_caller]
fn says(error: &GgufError, parts: &[&str]) {
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} does not name {part:?}");
    }
}

#[test]
fn wrong_magic() {
    let error = refused(b"version https://git-lfs.github.com/spec/v1".to_vec());
    assert!(matches!(error, GgufError::BadMagic { .. }));
    says(&error, &["\"vers\"", "\"GGUF\""]);
}

#[test]
fn wrong_versions() {
    for version in [0, 1, 4, 65_535, u32::MAX] {
        let error = refused(Writer::with(version, 32).bytes());
        assert!(matches!(error, GgufError::UnsupportedVersion { version: got } if got == version), "{error}");
    }
    for version in [1u32, 2, 3] {
        let error = refused(Writer::with(version.swap_bytes(), 32).bytes());
        assert!(matches!(error, GgufError::BigEndian { version: got } if got == version), "{error}");
    }
    for version in [2, 3] {
        let file = GgufFile::from_bytes(Writer::with(version, 32).bytes()).unwrap();
        assert_eq!((file.version(), file.tensors().len(), file.metadata().is_empty()), (version, 0, true));
    }
}

#[test]
fn counts_beyond_the_file() {
    for (at, what) in [(8, "number of tensors"), (16, "number of metadata entries")] {
        for count in HUGE.into_iter().chain([1, 2]) {
            let mut bytes = Writer::new().bytes();
            bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
            let error = refused(bytes);
            assert!(matches!(error, GgufError::CountTooLarge { .. }), "{error}");
            says(&error, &[what, &count.to_string()]);
        }
    }
}

#[test]
fn a_billion_entry_vocabulary() {
    for element in 0..=12 {
        for count in HUGE {
            let padding = [0; 100];
            let value = [&array(element, count)[..], &padding].concat();
            let error = refused(Writer::new().entry("tokenizer.ggml.tokens", ARRAY, value).bytes());
            assert!(matches!(error, GgufError::CountTooLarge { .. }), "{element}: {error}");
            says(&error, &["tokenizer.ggml.tokens", &count.to_string()]);
        }
    }
}

#[test]
fn string_lengths_beyond_the_file() {
    for len in HUGE.into_iter().chain([1]) {
        let error = refused(Writer::new().entry("k", STRING, len.to_le_bytes()).bytes());
        assert!(matches!(error, GgufError::Truncated { needed, .. } if needed == len), "{error}");
        says(&error, &["\"k\"", "cut short"]);

        let value = [array(STRING, 1), len.to_le_bytes().to_vec()].concat();
        let error = refused(Writer::new().entry("k", ARRAY, value).bytes());
        assert!(matches!(error, GgufError::Truncated { .. }), "{error}");
        says(&error, &["element 0", "\"k\""]);
    }
    for len in [65_536, u64::MAX] {
        let mut bytes = Writer::new().entry("k", 0, [1]).bytes();
        bytes[24..32].copy_from_slice(&len.to_le_bytes());
        let error = refused(bytes);
        assert!(matches!(error, GgufError::NameTooLong { limit: 65_535, .. }), "{error}");
    }
}

#[test]
fn arrays_nested_without_end() {
    let nest = |depth: usize| {
        let inner = [array(0, 1), vec![7]].concat();
        let value = [array(ARRAY, 1).repeat(depth - 1), inner].concat();
        Writer::new().entry("deep", ARRAY, value).bytes()
    };
    assert!(GgufFile::from_bytes(nest(4)).is_ok());
    for depth in [5, 100_000] {
        let error = refused(nest(depth));
        assert!(matches!(error, GgufError::NestingTooDeep { limit: 4, .. }), "{error}");
        says(&error, &["\"deep\""]);
    }
}

#[test]
fn invalid_utf8() {
    let bad = b"ab\xFFc";
    let key = refused(Writer::new().entry("fine", 0, [1]).entry(bad, 0, [1]).bytes());
    says(&key, &["the key of metadata entry 1"]);
    let value = refused(Writer::new().entry("general.name", STRING, string(bad)).bytes());
    says(&value, &["general.name"]);
    let tokens = [array(STRING, 2), string("fine"), string(bad)].concat();
    let element = refused(Writer::new().entry("tokens", ARRAY, tokens).bytes());
    says(&element, &["element 1", "\"tokens\""]);
    let tensor = refused(Writer::new().tensor(bad, &[1], F32, 0).data([0; 4]).bytes());
    says(&tensor, &["the name of tensor 0"]);
    for error in [key, value, element, tensor] {
        let GgufError::InvalidUtf8 { offset, bad_byte, .. } = error else { panic!("{error}") };
        assert_eq!(bad_byte, offset + 2);
    }
}

#[test]
fn values_that_do_not_exist() {
    for byte in [2, 255] {
        let error = refused(Writer::new().entry("flag", 7, [byte]).bytes());
        assert!(
            matches!(error, GgufError::InvalidBool { value, offset: 40, .. } if value == byte),
            "{error}"
        );
        let error =
            refused(Writer::new().entry("flags", ARRAY, [&array(7, 3)[..], &[0, 1, byte]].concat()).bytes());
        says(&error, &["element 2", "\"flags\"", &byte.to_string()]);
    }
    for id in [13, u32::MAX] {
        let error = refused(Writer::new().entry("odd", id, [0; 16]).bytes());
        assert!(
            matches!(error, GgufError::UnknownValueType { id: got, offset: 35, .. } if got == id),
            "{error}"
        );
        let error = refused(Writer::new().entry("odd", ARRAY, array(id, 0)).bytes());
        assert!(
            matches!(error, GgufError::UnknownValueType { id: got, offset: 39, .. } if got == id),
            "{error}"
        );
    }
}

#[test]
fn names_that_occur_twice() {
    let error = refused(Writer::new().entry("k", 0, [1]).entry("j", 0, [1]).entry("k", 0, [1]).bytes());
    assert!(matches!(error, GgufError::DuplicateKey { .. }), "{error}");
    says(&error, &["\"k\""]);
    let twice = Writer::new().tensor("t", &[1], F32, 0).tensor("s", &[1], F32, 32).tensor("t", &[1], F32, 64);
    let error = refused(twice.data([0; 68]).bytes());
    assert!(matches!(error, GgufError::DuplicateTensor { .. }), "{error}");
    says(&error, &["\"t\""]);
}

#[test]
fn alignments_that_are_none() {
    for value in [0u32, 3, 31, 96, u32::MAX] {
        let error = refused(Writer::new().entry("general.alignment", 4, value.to_le_bytes()).bytes());
        assert!(
            matches!(error, GgufError::BadAlignment { value: got } if got == u64::from(value)),
            "{error}"
        );
    }
    let error = refused(Writer::new().entry("general.alignment", STRING, string("32")).bytes());
    assert!(matches!(error, GgufError::WrongType { .. }), "{error}");
    let error = refused(Writer::new().entry("general.alignment", 5, (-32i32).to_le_bytes()).bytes());
    assert!(matches!(error, GgufError::OutOfRange { .. }), "{error}");
    // A power of two, but nothing lies inside a file from there on.
    for shift in [20, 63] {
        let writer = Writer::new().entry("general.alignment", 10, (1u64 << shift).to_le_bytes());
        let error = refused(writer.tensor("t", &[1], F32, 0).data([0; 64]).bytes());
        assert!(matches!(error, GgufError::OutsideFile { .. }), "{error}");
    }
}

#[test]
fn the_alignment_in_the_metadata_places_the_data() {
    for alignment in [1u32, 8, 256] {
        let writer = Writer::with(3, alignment as usize);
        let writer = writer.entry("general.alignment", 4, alignment.to_le_bytes());
        let offset = u64::from(alignment.max(4));
        let data = [&1f32.to_le_bytes()[..], &vec![0; offset as usize - 4], &2f32.to_le_bytes()].concat();
        let writer = writer.tensor("a", &[1], F32, 0).tensor("b", &[1], F32, offset).data(data);
        let file = GgufFile::from_bytes(writer.bytes()).unwrap();
        assert_eq!(file.tensor("a").unwrap().to_f32().unwrap(), [1.0]);
        assert_eq!(file.tensor("b").unwrap().to_f32().unwrap(), [2.0]);
    }
}

fn one(dims: &[u64], ty: u32, offset: u64) -> GgufError {
    let error = refused(Writer::new().tensor("blk.0.w", dims, ty, offset).data([0; 256]).bytes());
    says(&error, &["\"blk.0.w\""]);
    error
}

#[test]
fn impossible_shapes() {
    for dims in [&[][..], &[1; 5], &[1; 100]] {
        let error = one(dims, F32, 0);
        assert!(matches!(error, GgufError::BadDimensionCount { limit: 4, .. }), "{error}");
    }
    for dims in [&[0][..], &[4, 0], &[0, u64::MAX, u64::MAX], &[u64::MAX, u64::MAX, 0, 1]] {
        let error = one(dims, F32, 0);
        assert!(matches!(error, GgufError::ZeroDimension { .. }), "{error}");
    }
    let half = 1 << 32;
    for (dims, ty) in [
        (&[half, half][..], F32),
        (&[u64::MAX, 2], F32),
        (&[u64::MAX; 4], F32),
        (&[1 << 62], F32),
        (&[1 << 31, 1 << 31], F32),
        (&[u64::MAX / 32 * 32], Q8_0),
        (&[u64::MAX, 2], 20),
    ] {
        let error = one(dims, ty, 0);
        assert!(matches!(error, GgufError::SizeOverflow { .. }), "{dims:?}: {error}");
    }
    for (row_len, ty, block) in [(31, Q8_0, 32), (33, 2, 32), (1, 14, 256), (128, 12, 256)] {
        let error = one(&[row_len, 256], ty, 0);
        assert!(matches!(error, GgufError::PartialBlock { block_len, .. } if block_len == block), "{error}");
    }
    let mut bytes = Writer::new().tensor("t", &[1], F32, 0).bytes();
    let at = bytes.windows(4).rposition(|w| w == 1u32.to_le_bytes()).unwrap();
    assert_eq!(at, 24 + 9 + 4, "the dimension, after the number of dimensions");
    bytes[at - 4..at].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(refused(bytes), GgufError::BadDimensionCount { got: u32::MAX, .. }));
}

#[test]
fn impossible_places() {
    for offset in [1, 4, 31, u64::MAX] {
        let error = one(&[1], F32, offset);
        assert!(matches!(error, GgufError::Misaligned { alignment: 32, .. }), "{error}");
    }
    let last = u64::MAX - 31;
    for (dims, ty, offset) in [
        ([65], F32, 0),
        ([1], F32, 256),
        ([33], F32, 128),
        ([1], F32, last),
        ([1 << 61], F32, 0),
        ([1], 20, last),
        // The end, counted in 64 bits, would come round to byte 32.
        ([1 << 61], F32, (1 << 63) - 32),
    ] {
        let error = one(&dims, ty, offset);
        assert!(matches!(error, GgufError::OutsideFile { .. }), "{dims:?} at {offset}: {error}");
    }
    // The last byte of the file belongs to the tensor.
    assert!(GgufFile::from_bytes(Writer::new().tensor("t", &[64], F32, 0).data([0; 256]).bytes()).is_ok());
}

#[test]
fn tensors_that_share_bytes() {
    for (first, second) in [((16, 0), (16, 0)), ((16, 0), (1, 32)), ((1, 32), (9, 0)), ((64, 0), (1, 224))] {
        let file =
            Writer::new().tensor("a", &[first.0], F32, first.1).tensor("b", &[second.0], F32, second.1);
        let error = refused(file.data([0; 256]).bytes());
        assert!(matches!(error, GgufError::Overlap { .. }), "{error}");
        says(&error, &["\"a\"", "\"b\""]);
    }
    let apart = Writer::new().tensor("b", &[8], F32, 32).tensor("a", &[8], F32, 0).data([0; 64]);
    assert!(GgufFile::from_bytes(apart.bytes()).is_ok(), "side by side, in any order");
}

#[test]
fn names_from_the_file_are_safe_to_print() {
    let name = format!("\u{1b}[2J\n{}", "x".repeat(60_000));
    let message = refused(Writer::new().tensor(name, &[0], F32, 0).bytes()).to_string();
    assert!(message.len() < 300 && !message.contains(char::is_control), "{message:?}");
}

#[test]
fn an_owner_whose_bytes_vanish_is_an_error() {
    struct Fickle(Vec<u8>, AtomicBool);
    impl AsRef<[u8]> for Fickle {
        fn as_ref(&self) -> &[u8] {
            if self.1.swap(true, Ordering::Relaxed) { &[] } else { &self.0 }
        }
    }
    let bytes = Writer::new().tensor("t", &[1], F32, 0).data([0; 4]).bytes();
    let file = GgufFile::from_bytes(Fickle(bytes, AtomicBool::new(false))).unwrap();
    assert!(matches!(file.tensor("t"), Err(GgufError::OutsideFile { .. })));
}
