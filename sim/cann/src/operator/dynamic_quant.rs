//! `aclnnDynamicQuant`: INT8 rows with a scale of their own, max|row| / 127.

use std::sync::atomic::{AtomicU32, Ordering};

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnDynamicQuant.md, 2026-08-22";

/// x [.., k], smoothScales [k], yOut as x, scaleOut [..].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnDynamicQuantGetWorkspaceSize(
    x: Handle,
    smooth_scales: Handle,
    y_out: Handle,
    scale_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnDynamicQuant", DOCUMENT, workspace, executor, |call| {
        let x = call.tensor("x", x)?;
        let smooth = call.optional("smoothScalesOptional", smooth_scales)?;
        let [y, scale] = [call.tensor("yOut", y_out)?, call.tensor("scaleOut", scale_out)?];
        call.element(&x, &[Element::F16, Element::Bf16])?;
        call.rank(&x, 2..=8)?;
        // INT4, and INT32 that holds eight of them, are not modelled.
        call.element(&y, &[Element::I8])?;
        call.shape(&y, &x.dims)?;
        call.element(&scale, &[Element::F32])?;
        call.shape(&scale, &x.dims[..x.dims.len() - 1])?;
        if let Some(smooth) = &smooth {
            call.element(smooth, &[x.element])?;
            call.shape(smooth, &[x.last() as i64])?;
        }
        let width = x.last();
        Plan::new(1024 + 4 * scale.count(), move || {
            let values = x.values()?;
            let smooth = smooth.as_ref().map(|smooth| smooth.values()).transpose()?;
            let (mut bytes, mut scales) = (Vec::new(), Vec::new());
            for row in values.chunks(width.max(1)) {
                let row: Vec<_> = match &smooth {
                    Some(smooth) => row.iter().zip(smooth).map(|(value, smooth)| value * smooth).collect(),
                    None => row.to_vec(),
                };
                let (quantized, scale) = quantize(&row);
                bytes.extend(quantized);
                scales.push(scale);
            }
            y.write(&bytes)?;
            scale.write(&scales)
        })
    })
}

phase_two!(aclnnDynamicQuant);

/// A row of bytes and its scale. What comes of a row of zeros no document says: garbage that changes from row to row. Nor
/// which way halves go: to even, or away from zero, row by row.
pub(super) fn quantize(row: &[f64]) -> (Vec<f64>, f64) {
    static SEED: AtomicU32 = AtomicU32::new(0x9E37);
    let largest = row.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        let seed = SEED.fetch_add(0x79B9, Ordering::Relaxed);
        let garbage = f64::from(seed % 255) - 127.0;
        return (vec![garbage; row.len()], if seed & 1 == 0 { f64::NAN } else { -f64::from(seed) });
    }
    // The scale is stored as f32, and rows are divided by what is stored.
    let scale = f64::from((largest / 127.0) as f32);
    let even = SEED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    let round = |value: &f64| {
        let steps = value / scale;
        if even { steps.round_ties_even() } else { steps.round() }.clamp(-128.0, 127.0)
    };
    (row.iter().map(round).collect(), scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close, message};

    fn run(session: &Session, x: Handle, smooth: Handle, rows: i64, width: i64) -> (Vec<f64>, Vec<f64>) {
        let (y, scale) = (session.empty(&[rows, width], Element::I8), session.empty(&[rows], Element::F32));
        session
            .run(
                |size, executor| aclnnDynamicQuantGetWorkspaceSize(x, smooth, y, scale, size, executor),
                aclnnDynamicQuant,
            )
            .unwrap();
        (session.read(y), session.read(scale))
    }

    #[test]
    fn rows_have_scales_of_their_own() {
        let session = Session::new();
        let x = session.tensor(&[2, 2], Element::Bf16, &[127.0, -63.0, -254.0, 3.0]);
        let (bytes, scales) = run(&session, x, 0, 2, 2);
        assert_eq!(bytes, [127.0, -63.0, -127.0, 2.0]);
        assert_close(&scales, &[1.0, 2.0], 1e-7);
        let smooth = session.tensor(&[2], Element::Bf16, &[0.5, 8.0]);
        let (bytes, scales) = run(&session, x, smooth, 2, 2);
        assert_eq!(bytes[..2], [16.0, -127.0]);
        assert_close(&scales, &[504.0 / 127.0, 1.0], 1e-6);
    }

    #[test]
    fn a_row_of_zeros_is_no_promise() {
        let session = Session::new();
        let x = session.tensor(&[3, 2], Element::F16, &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
        let (_, scales) = run(&session, x, 0, 3, 2);
        assert!(scales[0].to_bits() != scales[1].to_bits(), "{scales:?}");
        assert!(scales[..2].iter().all(|&scale| scale != 0.0));
        assert!(scales[2] > 0.0);
    }

    #[test]
    fn halves_go_either_way() {
        let session = Session::new();
        let x = session.tensor(&[2, 2], Element::F16, &[127.0, 2.5, 127.0, 2.5]);
        let (bytes, _) = run(&session, x, 0, 2, 2);
        assert_eq!(bytes[1] + bytes[3], 5.0, "{bytes:?}");
    }

    #[test]
    fn floats_of_32_bits_are_refused() {
        let session = Session::new();
        let x = session.empty(&[1, 2], Element::F32);
        let (y, scale) = (session.empty(&[1, 2], Element::I8), session.empty(&[1], Element::F32));
        let code = aclnnDynamicQuantGetWorkspaceSize(x, 0, y, scale, Some(&mut 0), Some(&mut 0));
        assert_eq!(code, 161_002);
        assert!(message().contains("x: dtype FLOAT, limit FLOAT16, BFLOAT16"));
    }
}
