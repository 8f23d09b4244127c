//! Types without blocks: F32, F16, BF16. Widening is exact.

use half::f16;
use half::slice::HalfFloatSliceExt;

pub(super) fn f32s(bytes: &[u8], out: &mut [f32]) {
    for (value, word) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_le_bytes(*word);
    }
}

pub(super) fn f16s(bytes: &[u8], out: &mut [f32]) {
    // In runs, because `half` looks for the CPU's conversion instruction once a call.
    const RUN: usize = 64;
    let mut run = [f16::ZERO; RUN];
    for (values, words) in out.chunks_mut(RUN).zip(bytes.as_chunks().0.chunks(RUN)) {
        for (half, word) in run.iter_mut().zip(words) {
            *half = f16::from_le_bytes(*word);
        }
        if let Some(halves) = run.get(..values.len()) {
            halves.convert_to_f32_slice(values);
        }
    }
}

pub(super) fn bf16s(bytes: &[u8], out: &mut [f32]) {
    for (value, word) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_bits(u32::from(u16::from_le_bytes(*word)) << 16);
    }
}
