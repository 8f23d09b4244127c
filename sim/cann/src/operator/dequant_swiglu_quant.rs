//! `aclnnDequantSwigluQuant`: sums of INT8 products to floats, gated, to INT8 again.

use std::ffi::c_char;

use super::call::{Arg, Call, Plan, phase_one};
use super::dynamic_quant::quantize;
use super::phase_two;
use super::swi_glu::silu;
use crate::element::Element;
use crate::foreign;
use crate::handle::Handle;
use crate::runtime::error::Failure;

/// Of A2; the same page says that A3 does not have this operator.
const DOCUMENT: &str = "aclnnDequantSwigluQuant.md, 2026-08-22";
/// Bytes that a row and the scales may take together, as the document adds them up.
const BYTES: i64 = 192 * 1024;

/// x INT32 [.., 2n], weightScale [2n], activationScale [.., 1], y INT8 [.., n], scale [..].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnDequantSwigluQuantGetWorkspaceSize(
    x: Handle,
    weight_scale: Handle,
    activation_scale: Handle,
    bias: Handle,
    quant_scale: Handle,
    quant_offset: Handle,
    group_index: Handle,
    activate_left: bool,
    quant_mode: *const c_char,
    y_out: Handle,
    scale_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let mode = foreign::text(quant_mode).unwrap_or_else(|| "static".to_owned());
    phase_one("aclnnDequantSwigluQuant", DOCUMENT, workspace, executor, |call| {
        let x = call.tensor("x", x)?;
        let [y, scale] = [call.tensor("yOut", y_out)?, call.tensor("scaleOut", scale_out)?];
        call.absent(&[
            ("biasOptional", bias),
            ("quantScaleOptional", quant_scale),
            ("quantOffsetOptional", quant_offset),
            ("groupIndexOptional", group_index),
        ])?;
        call.require(matches!(mode.as_str(), "static" | "dynamic"), || {
            format!("quantMode `{mode}`, limit static, dynamic")
        })?;
        if mode == "static" {
            call.unmodelled("quantMode `static`")?;
        }
        call.element(&x, &[Element::F16, Element::Bf16, Element::I32])?;
        if x.element != Element::I32 {
            call.unmodelled("x of floats")?;
        }
        let columns = call.tensor("weightScaleOptional", weight_scale)?;
        let rows = call.tensor("activationScaleOptional", activation_scale)?;
        check(call, [&x, &columns, &rows, &y, &scale])?;
        let width = x.last();
        Plan::new(512, move || {
            let (columns, rows) = (columns.values()?, rows.values()?);
            let (mut bytes, mut scales) = (Vec::new(), Vec::new());
            for (row, values) in rows.iter().zip(x.values()?.chunks(width)) {
                let floats: Vec<f64> =
                    values.iter().zip(&columns).map(|(sum, scale)| sum * scale * row).collect();
                let (left, right) = floats.split_at(width / 2);
                let (gates, linear) = if activate_left { (left, right) } else { (right, left) };
                let gated: Vec<f64> =
                    gates.iter().zip(linear).map(|(gate, value)| silu(*gate) * value).collect();
                let (quantized, scale) = quantize(&gated);
                bytes.extend(quantized);
                scales.push(scale);
            }
            y.write(&bytes)?;
            scale.write(&scales)
        })
    })
}

phase_two!(aclnnDequantSwigluQuant);

fn check(call: &Call, [x, columns, rows, y, scale]: [&Arg; 5]) -> Result<(), Failure> {
    call.rank(x, 2..=8)?;
    call.contiguous(&[x, columns, rows, y, scale])?;
    call.not_empty(&[x])?;
    for floats in [columns, rows, scale] {
        call.element(floats, &[Element::F32])?;
    }
    call.element(y, &[Element::I8])?;
    let (outer, width) = (&x.dims[..x.dims.len() - 1], x.last() as i64);
    call.require(width % 2 == 0, || format!("x: {width} columns, an even number is halved"))?;
    call.shape(columns, &[width])?;
    call.shape(rows, &[outer, &[1]].concat())?;
    call.shape(y, &[outer, &[width / 2]].concat())?;
    call.shape(scale, outer)?;
    let tokens: i64 = outer.iter().product();
    let bytes = 4 * width + 8 * tokens / 40 + 40 * width;
    call.tiles(bytes < BYTES, || {
        format!("x: {tokens} rows of {width} take {bytes} bytes of a core, limit {BYTES} (without the last)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close, message};

    fn run(session: &Session, width: i64, left: bool) -> Result<[Vec<f64>; 2], (i32, String)> {
        let sums: Vec<f64> = (0..width).map(|at| (10 * (at + 1)) as f64).collect();
        let x = session.tensor(&[1, width], Element::I32, &sums);
        let columns = session.tensor(&[width], Element::F32, &vec![0.5; width as usize]);
        let rows = session.tensor(&[1, 1], Element::F32, &[0.2]);
        let y = session.empty(&[1, width / 2], Element::I8);
        let scale = session.empty(&[1], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            let mode = c"dynamic".as_ptr();
            aclnnDequantSwigluQuantGetWorkspaceSize(
                x, columns, rows, 0, 0, 0, 0, left, mode, y, scale, size, executor,
            )
        };
        session.run(first, aclnnDequantSwigluQuant)?;
        Ok([session.read(y), session.read(scale)])
    }

    #[test]
    fn either_half_is_the_gate() {
        let session = Session::new();
        // Floats 1, 2, 3, 4.
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let [bytes, scale] = run(&session, 4, true).unwrap();
        let gated = [3.0 * sigmoid(1.0), 8.0 * sigmoid(2.0)];
        assert_close(&scale, &[gated[1] / 127.0], 1e-6);
        assert_eq!(bytes, [(gated[0] / gated[1] * 127.0).round(), 127.0]);
        let [_, scale] = run(&session, 4, false).unwrap();
        assert_close(&scale, &[8.0 * sigmoid(4.0) / 127.0], 1e-6);
    }

    #[test]
    fn rows_fit_a_core() {
        let session = Session::new();
        let (code, text) = run(&session, 4480, true).unwrap_err();
        assert_eq!(code, 561_002);
        assert!(text.contains("x: 1 rows of 4480 take 197120 bytes of a core, limit 196608"), "{text}");
        assert_eq!(message(), "");
    }
}
