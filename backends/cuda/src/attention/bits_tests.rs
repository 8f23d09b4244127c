//! The tensor cores' kernel: rows the same to the last bit in every tile, and values that are not finite.

use half::bf16;
use halite_hal::{DType, Device, Result};
use halite_kernels::{
    attention::AttentionSpec,
    cache::{KvFormat, KvSpec},
};

use super::testing::{Sequence, by_tensor_cores, by_words};
use crate::testing;

fn spec(group: usize, head_dim: usize, value_dim: usize, format: KvFormat) -> AttentionSpec {
    let kv = KvSpec::new(1, 2, head_dim).with_value_head_dim(value_dim).with_format(format);
    AttentionSpec::causal(2 * group, kv).with_dtype(DType::Bf16)
}

#[test]
fn a_row_has_the_same_bits_in_every_tile() -> Result<()> {
    let Some(cuda) = testing::cuda("attention by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let (float, int8) = (KvFormat::Float(DType::Bf16), KvFormat::Int8PerTokenHead);
    let shapes = [
        (64, 80, float),
        (32, 48, int8),
        (80, 256, float),
        (16, 144, int8),
        (128, 128, float),
        (48, 64, float),
    ];
    for (number, (head_dim, value_dim, format)) in shapes.into_iter().enumerate() {
        // In one part, and in several: those are read by several blocks where rows are few.
        let (split, dtype) = [(256, DType::Bf16), (48, DType::F16)][number % 2];
        let format = if format == float { KvFormat::Float(dtype) } else { format };
        let spec = spec(3, head_dim, value_dim, format).with_dtype(dtype).with_kv_split(split);
        let sequence = Sequence::new(&cuda, stream, &spec, 90, &[])?;
        let all = sequence.run(stream, 23, |stream, call| call.run(stream))?;
        for rows in [1, 6] {
            let got = sequence.run(stream, rows, |stream, call| call.run(stream))?;
            assert!(got == all[all.len() - got.len()..], "{spec:?}, {rows} rows");
        }
    }
    Ok(())
}

#[test]
fn both_kernels_have_the_same_numbers() -> Result<()> {
    let Some(cuda) = testing::cuda("attention by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let (float, int8) = (KvFormat::Float(DType::Bf16), KvFormat::Int8PerTokenHead);
    for (head_dim, value_dim, format) in [(128, 128, float), (256, 256, float), (64, 96, int8)] {
        let spec = spec(3, head_dim, value_dim, format);
        let sequence = Sequence::new(&cuda, stream, &spec, 90, &[])?;
        let got = sequence.run(stream, 4, by_tensor_cores)?;
        let expected = sequence.run(stream, 4, by_words)?;
        for (index, (got, expected)) in got.into_iter().zip(expected).enumerate() {
            let (got, expected) = (bf16::from_bits(got).to_f32(), bf16::from_bits(expected).to_f32());
            // Both are rounded once.
            let most = expected.abs() / 128.0 + 1e-5;
            assert!((got - expected).abs() <= most, "{spec:?}, {index}: {got}, {expected}");
        }
    }
    Ok(())
}

#[test]
fn values_that_are_not_finite_are_for_rows_that_see_them() -> Result<()> {
    let Some(cuda) = testing::cuda("attention by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let spec = spec(2, 32, 48, KvFormat::Float(DType::Bf16));
    // The values of both heads are 96 elements.
    let spoilt =
        [(83, 5, f32::NAN), (85, 17, f32::INFINITY), (87, 47, f32::NEG_INFINITY), (88, 47, f32::INFINITY)];
    let expected = Sequence::new(&cuda, stream, &spec, 90, &[])?.run(stream, 20, by_tensor_cores)?;
    let got = Sequence::new(&cuda, stream, &spec, 90, &spoilt)?.run(stream, 20, by_tensor_cores)?;
    let mut met = 0;
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let (position, head, column) = (70 + index / (4 * 48), index / 48 % 4, index % 48);
        let element = head / 2 * 48 + column;
        let sum: f32 = spoilt
            .iter()
            .filter(|&&(at, of, _)| position >= at && element == of)
            .fold(0.0, |sum, &(_, _, value)| sum + value);
        if sum == 0.0 {
            assert_eq!(*got, expected, "position {position}, element {element}");
        } else {
            let got = bf16::from_bits(*got).to_f32();
            assert!(
                got == sum || got.is_nan() && sum.is_nan(),
                "position {position}, element {element}: {got}"
            );
            met += 1;
        }
    }
    assert_eq!(met, 2 * (7 + 5 + 3));
    Ok(())
}
