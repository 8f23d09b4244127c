//! Matrices in 4 bits, against the operator that multiplies them.

use super::*;
use crate::gguf::GgufFile;
use halite_cpu::Cpu;
use halite_hal::{Device, Stream};
use halite_kernels::linear::{Activations, Epilogue, Linear, LinearArgs, LinearSpec};
use halite_kernels::{DType, Tensor};

#[path = "../gguf/test_writer.rs"]
#[allow(dead_code, reason = "files with metadata are others' business")]
mod gguf_writer;

/// Two blocks of 256 a row.
const COLUMNS: usize = 512;
const ROWS: usize = 35;

/// A file with one matrix of random blocks.
fn file(ty: u32, format: WeightFormat) -> GgufFile {
    let block = format.block().unwrap();
    let mut state = 7u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let mut data: Vec<u8> = (0..ROWS * COLUMNS / block.values * block.bytes).map(|_| byte()).collect();
    // Scales and minima of either sign, none of them infinite.
    for block in data.chunks_exact_mut(block.bytes) {
        (block[1], block[3]) = (block[1] & 0xBF, block[3] & 0xBF);
    }
    let dims = [COLUMNS as u64, ROWS as u64];
    GgufFile::from_bytes(gguf_writer::Writer::new().tensor("m", &dims, ty, 0).data(data).bytes()).unwrap()
}

/// The operator's own weights: each row of activations is one 1 among zeros, so that a result is one weight.
fn kept(matrix: &HostMatrix, format: MatrixFormat) -> Vec<f32> {
    let device = Cpu::new(Default::default()).unwrap();
    let mut stream = device.stream().unwrap();
    let spec: LinearSpec = format.spec(COLUMNS, ROWS);
    let packed = device.linear_pack(&mut stream, matrix.weights().check(&spec).unwrap()).unwrap();
    let mut ones = vec![0i8; COLUMNS * COLUMNS];
    (0..COLUMNS).for_each(|i| ones[i * COLUMNS + i] = 1);
    let q = Tensor::from_slice(&mut stream, &ones, &[COLUMNS, COLUMNS]).unwrap();
    let scales = Tensor::from_slice(&mut stream, &vec![1f32; COLUMNS], &[COLUMNS]).unwrap();
    stream.reserve(device.linear_workspace(&packed, COLUMNS)).unwrap();
    let out = Tensor::new(&device, DType::F32, &[COLUMNS, ROWS]).unwrap();
    let x = Activations::int8_per_token(&q, &scales);
    let args = LinearArgs { x, weights: &packed, epilogue: Epilogue::default(), out: &out };
    device.linear(&mut stream, args.check().unwrap()).unwrap();
    let columns: Vec<f32> = out.to_vec(&mut stream).unwrap();
    (0..ROWS * COLUMNS).map(|i| columns[i % COLUMNS * ROWS + i / COLUMNS]).collect()
}

#[test]
fn stored_blocks_keep_their_values_exactly() {
    for (ty, format) in [(2, WeightFormat::Q4_0), (3, WeightFormat::Q4_1), (12, WeightFormat::Q4K)] {
        let file = file(ty, format);
        let part = SourceTensor::Gguf(file.tensor("m").unwrap());
        let matrix_format = MatrixFormat::Blocks(format);
        let matrix = HostMatrix::read(std::slice::from_ref(&part), matrix_format).unwrap();
        let (got, expected) = (kept(&matrix, matrix_format), part.to_f32().unwrap());
        assert!(expected.iter().any(|&w| w < 0.0) && expected.iter().any(|&w| w > 0.0));
        assert!(got == expected, "{format:?}");

        // Rounded to groups of our own they are others, but near.
        let matrix = HostMatrix::read(std::slice::from_ref(&part), MatrixFormat::Int4).unwrap();
        let again = kept(&matrix, MatrixFormat::Int4);
        let square =
            |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x).powi(2)).sum::<f64>();
        let error = square(&mut again.iter().zip(&expected).map(|(a, b)| a - b));
        let share = (error / square(&mut expected.iter().copied())).sqrt();
        assert!((1e-4..0.2).contains(&share), "{format:?}: {share}");
    }
}

#[test]
fn rows_of_several_parts_stand_one_below_the_other() {
    let file = file(2, WeightFormat::Q4_0);
    let view = file.tensor("m").unwrap();
    let part = |rows| SourceTensor::GgufRows { view, rows };
    let format = MatrixFormat::Blocks(WeightFormat::Q4_0);
    let parts = [part(3..20), part(20..35), part(0..3)];
    let all = SourceTensor::Gguf(view).to_f32().unwrap();
    let expected = [&all[3 * COLUMNS..], &all[..3 * COLUMNS]].concat();
    assert!(kept(&HostMatrix::read(&parts, format).unwrap(), format) == expected);
    // What the file has otherwise is not taken for blocks of this kind.
    let other = HostMatrix::read(&parts, MatrixFormat::Blocks(WeightFormat::Q4_1)).unwrap_err().to_string();
    assert!(other.contains("Q4_1") && other.contains("in m"), "{other}");
}

#[test]
fn blocks_that_are_no_numbers_are_named() {
    for (ty, format, number) in
        [(2, WeightFormat::Q4_0, 0), (3, WeightFormat::Q4_1, 2), (12, WeightFormat::Q4K, 2)]
    {
        let block = format.block().unwrap();
        let row_bytes = COLUMNS / block.values * block.bytes;
        let sound = file(ty, format);
        let mut data = sound.tensor("m").unwrap().data().to_vec();
        data[5 * row_bytes + number..][..2].copy_from_slice(&f16::NAN.to_le_bytes());
        let dims = [COLUMNS as u64, ROWS as u64];
        let writer = gguf_writer::Writer::new().tensor("m", &dims, ty, 0).data(data);
        let file = GgufFile::from_bytes(writer.bytes()).unwrap();
        let part = [SourceTensor::Gguf(file.tensor("m").unwrap())];
        let error = HostMatrix::read(&part, MatrixFormat::Blocks(format)).unwrap_err().to_string();
        assert!(error.contains("`m`") && error.contains("row 5"), "{error}");
    }
}
