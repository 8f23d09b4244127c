//! Every tensor type against what the `gguf` Python package makes of the same bytes.
//!
//! Bit for bit: both sides widen the f16 scales exactly and then do the same single precision operations in the same
//! order. NaN is the exception: which NaN an operation gives is not defined, so any NaN equals any other there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "../src/gguf/test_writer.rs"]
mod writer;

use std::path::PathBuf;

use halite_engine::gguf::{GgmlType, GgufError, GgufFile, dequantize_rows};
use writer::{Writer, string};

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file with one tensor `t` of `rows` rows that hold `blocks`.
fn file_of(ty: GgmlType, rows: usize, blocks: &[u8]) -> GgufFile {
    let values = blocks.len() / ty.block_bytes() * ty.block_len();
    let dims = [(values / rows) as u64, rows as u64];
    let bytes = Writer::new()
        .entry("general.architecture", 8, string("test"))
        .tensor("t", &dims, ty.id(), 0)
        .data(blocks)
        .bytes();
    GgufFile::from_bytes(bytes).unwrap()
}

fn compare(name: &str, ty: GgmlType) {
    let blocks = fixture(&format!("{name}.blocks"));
    let expected = fixture(&format!("{name}.f32"));
    let (expected, _) = expected.as_chunks::<4>();
    let file = file_of(ty, 1, &blocks);
    let got = file.tensor("t").unwrap().to_f32().unwrap();
    assert!(
        !got.is_empty() && got.len() == expected.len(),
        "{name}: {} against {}",
        got.len(),
        expected.len()
    );
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let expected = f32::from_le_bytes(*expected);
        assert!(
            got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
            "{name}, value {i} (block {}): got {got:e}, expected {expected:e}",
            i / ty.block_len(),
        );
    }
}

#[test]
fn every_type_gives_the_bits_of_the_gguf_package() {
    for ty in GgmlType::ALL {
        compare(&ty.name().to_lowercase(), ty);
    }
}

#[test]
fn scales_that_are_not_finite_follow_the_formula() {
    compare("nonfinite-q4_1", GgmlType::Q4_1);
    compare("nonfinite-q8_0", GgmlType::Q8_0);
    compare("nonfinite-q4_k", GgmlType::Q4K);
}

#[test]
fn numbers_and_names_lead_back_to_the_type() {
    for ty in GgmlType::ALL {
        assert_eq!(GgmlType::from_id(ty.id()), Some(ty));
        assert_eq!(ty.row_bytes(3 * ty.block_len()), Some(3 * ty.block_bytes()));
        let longest = usize::MAX / ty.block_len() * ty.block_len();
        assert_eq!(ty.row_bytes(longest).is_some(), ty.block_bytes() <= ty.block_len(), "{ty}");
        if ty.block_len() > 1 {
            assert_eq!(ty.row_bytes(ty.block_len() + 1), None);
        }
    }
    assert_eq!(GgmlType::from_id(4), None);
}

#[test]
fn row_ranges_are_cuts_of_the_whole() {
    for ty in GgmlType::ALL {
        let blocks = fixture(&format!("{}.blocks", ty.name().to_lowercase()));
        let rows = 5;
        let row_bytes = blocks.len() / ty.block_bytes() / rows * ty.block_bytes();
        let file = file_of(ty, rows, &blocks[..rows * row_bytes]);
        let view = file.tensor("t").unwrap();
        assert_eq!((view.rows(), view.shape()), (rows, &[rows, view.row_len()][..]));
        let whole: Vec<u32> = view.to_f32().unwrap().into_iter().map(f32::to_bits).collect();
        for start in 0..=rows {
            for end in start..=rows {
                let mut out = vec![f32::NAN; (end - start) * view.row_len()];
                dequantize_rows(&view, start..end, &mut out).unwrap();
                let out: Vec<u32> = out.into_iter().map(f32::to_bits).collect();
                assert_eq!(out, &whole[start * view.row_len()..end * view.row_len()], "{ty} {start}..{end}");
            }
        }
    }
}

#[test]
fn f16_rows_of_every_length_round_the_run_are_whole() {
    let bits: Vec<u16> = (0..200u16).map(|i| 0x3C00 + i).collect();
    for len in [1, 7, 63, 64, 65, 127, 128, 129, 200] {
        let bytes: Vec<u8> = bits[..len].iter().flat_map(|x| x.to_le_bytes()).collect();
        let got = file_of(GgmlType::F16, 1, &bytes).tensor("t").unwrap().to_f32().unwrap();
        let expected: Vec<f32> = (0..len).map(|i| 1.0 + i as f32 / 1024.0).collect();
        assert_eq!(got, expected);
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "callers can make them")]
fn wrong_rows_and_lengths_are_errors_that_name_the_tensor() {
    let file = file_of(GgmlType::Q8_0, 2, &fixture("q8_0.blocks")[..4 * 34]);
    let view = file.tensor("t").unwrap();
    let mut out = vec![7.0; 128];
    for rows in [0..3, 2..3, 3..3, 2..1, usize::MAX..usize::MAX, 0..usize::MAX] {
        let error = dequantize_rows(&view, rows.clone(), &mut out).unwrap_err();
        assert!(matches!(error, GgufError::RowsOutOfRange { have: 2, .. }), "{rows:?}: {error}");
    }
    for len in [0, 63, 65, 128] {
        let error = dequantize_rows(&view, 1..2, &mut out[..len]).unwrap_err();
        assert!(
            matches!(error, GgufError::OutputLength { expected: 64, got, .. } if got == len),
            "{len}: {error}"
        );
    }
    assert!(out.iter().all(|x| *x == 7.0), "an error leaves the output as it was");
    dequantize_rows(&view, 2..2, &mut []).unwrap();
}
