//! Small files and an index, cut and damaged everywhere: an error or a usable model, never a panic, never much memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "support/safetensors_folder.rs"]
mod safetensors_folder;

use halite_engine::safetensors::{ElementType, SafetensorsError, SafetensorsFolder};
use proptest::prelude::*;
use safetensors::{Dtype, SafeTensors};
use safetensors_folder::{TestFolder, f32s, safetensors};

fn file() -> Vec<u8> {
    safetensors(&[
        ("w", Dtype::F32, &[2, 1], f32s(&[1.0, 2.0])),
        ("b", Dtype::BF16, &[2], vec![1, 2, 3, 4]),
        ("q", Dtype::I8, &[1, 2], vec![1, 0xFF]),
        ("none", Dtype::F16, &[0, 3], vec![]),
    ])
}

/// Opens the folder and, where that works, asks for everything there is.
fn exercise(folder: &TestFolder, len: usize) -> Result<(), SafetensorsError> {
    let mut opened = None;
    let memory = allocation_counter::measure(|| opened = Some(SafetensorsFolder::open(folder.path())));
    assert!(memory.bytes_max <= 16_384 + 16 * len as u64, "{} bytes for {len}", memory.bytes_max);
    let model = opened.unwrap()?;
    let mut bytes = 0;
    for tensor in model.tensors() {
        bytes += tensor.data().len();
        assert_eq!(model.tensor(tensor.name()).unwrap().data().as_ptr(), tensor.data().as_ptr());
        let floats = matches!(tensor.dtype(), ElementType::F32 | ElementType::F16 | ElementType::Bf16);
        match tensor.to_f32() {
            Ok(values) => assert_eq!((values.len(), floats), (tensor.elements(), true)),
            Err(error) => assert!(matches!(error, SafetensorsError::WrongType { .. }) && !floats, "{error}"),
        }
        if let (&[rows, cols], true) = (tensor.shape(), floats) {
            tensor.rows_to_f32(rows / 2..rows, &mut vec![0.0; (rows - rows / 2) * cols]).unwrap();
        }
        assert_eq!(tensor.as_i8().is_ok(), tensor.dtype() == ElementType::I8);
    }
    assert!(bytes <= len, "{bytes} bytes of tensors out of {len}");
    assert_eq!(bytes as u64, model.bytes());
    Ok(())
}

/// One file, damaged: what opens here also opens in the format's own crate, with the same tensors.
fn exercise_file(folder: &TestFolder, bytes: &[u8]) {
    folder.file("model.safetensors", bytes);
    let own = exercise(folder, bytes.len());
    if own.is_ok() {
        let theirs = SafeTensors::deserialize(bytes).unwrap();
        let ours = SafetensorsFolder::open(folder.path()).unwrap();
        assert_eq!(ours.tensors().len(), theirs.len());
        for tensor in ours.tensors() {
            let other = theirs.tensor(tensor.name()).unwrap();
            assert_eq!((tensor.shape(), tensor.data()), (other.shape(), other.data()));
            assert_eq!(tensor.dtype().to_string(), other.dtype().to_string());
        }
    }
}

#[test]
fn cut_at_every_byte() {
    let (folder, whole) = (TestFolder::new(), file());
    for len in 0..whole.len() {
        folder.file("model.safetensors", &whole[..len]);
        exercise(&folder, len).unwrap_err();
    }
    exercise_file(&folder, &whole);
}

#[test]
fn every_bit_flipped() {
    let (folder, whole) = (TestFolder::new(), file());
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        exercise_file(&folder, &bytes);
    }
}

/// Bytes of `whole` replaced, inserted and taken away.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(b"{}[]\":,0123456789-.eF\\u".to_vec())];
    let edits = proptest::collection::vec((any::<proptest::sample::Index>(), 0..4, byte), 1..8);
    edits.prop_map(move |edits| {
        let mut bytes = whole.clone();
        for (at, kind, byte) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                // A piece said twice.
                _ => {
                    let end = (at + byte as usize).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    })
}

/// As [`damaged`], with the header's length made right again, so that the header is read.
fn damaged_header() -> impl Strategy<Value = Vec<u8>> {
    let whole = file();
    let end = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let data = whole[end..].to_vec();
    damaged(whole[8..end].to_vec())
        .prop_map(move |header| [&(header.len() as u64).to_le_bytes(), &header[..], &data].concat())
}

const INDEX: &str = r#"{"metadata":{"total_size":26},"weight_map":{"w":"1.safetensors","b":"1.safetensors","q":"2.safetensors"}}"#;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn random_faults(bytes in damaged(file())) {
        exercise_file(&TestFolder::new(), &bytes);
    }

    #[test]
    fn random_faults_in_the_header(bytes in damaged_header()) {
        exercise_file(&TestFolder::new(), &bytes);
    }

    #[test]
    fn random_faults_in_the_index(json in damaged(INDEX.into())) {
        let folder = TestFolder::new();
        let all = 2 * file().len() + json.len();
        folder.file("1.safetensors", safetensors(&[
            ("w", Dtype::F32, &[1, 2], f32s(&[1.0, 2.0])),
            ("b", Dtype::BF16, &[2], vec![1, 2, 3, 4]),
        ]));
        folder.file("2.safetensors", safetensors(&[("q", Dtype::I8, &[2], vec![1, 2])]));
        folder.file("model.safetensors.index.json", &json);
        let _ = exercise(&folder, all);
    }
}
