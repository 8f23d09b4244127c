//! `aclnnQuantMatmulV5` and `V4`: INT8 rows times INT8 columns, scaled.

use super::call::{Arg, Call, Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::Failure;

const DOCUMENT_V5: &str = "aclnnQuantMatmulV5.md, 2026-08-22";
const DOCUMENT_V4: &str = "aclnnQuantMatmulV4.md, 2026-08-22";
/// The last dimension of x1 and x2, where no f32 scale of rows goes with f32 or BF16 scales of columns.
const LAST_DIMENSION: i64 = 65_535;

/// The operands of either version.
struct Operands {
    x1: Arg,
    x2: Arg,
    /// [n] or [1].
    columns: Option<Arg>,
    /// [m].
    rows: Option<Arg>,
    /// [n]: INT32 before scaling, floats after.
    bias: Option<Arg>,
    out: Arg,
    transposed: [bool; 2],
}

/// x1 [m, k], x2 [k, n] (or the other way round, when transposed), x1Scale [m], x2Scale [n] or [1], bias [n], out [m, n].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnQuantMatmulV5GetWorkspaceSize(
    x1: Handle,
    x2: Handle,
    x1_scale: Handle,
    x2_scale: Handle,
    y_scale: Handle,
    x1_offset: Handle,
    x2_offset: Handle,
    y_offset: Handle,
    bias: Handle,
    transpose_x1: bool,
    transpose_x2: bool,
    group_size: i64,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnQuantMatmulV5", DOCUMENT_V5, workspace, executor, |call| {
        let operands = Operands {
            x1: call.tensor("x1", x1)?,
            x2: call.tensor("x2", x2)?,
            columns: call.optional("x2Scale", x2_scale)?,
            rows: call.optional("x1Scale", x1_scale)?,
            bias: call.optional("bias", bias)?,
            out: call.tensor("out", out)?,
            transposed: [transpose_x1, transpose_x2],
        };
        let absent = [("yScale", y_scale), ("x1Offset", x1_offset), ("x2Offset", x2_offset)];
        call.absent(&absent)?;
        call.absent(&[("yOffset", y_offset)])?;
        call.require(group_size == 0, || format!("groupSize {group_size}, limit 0 with INT8"))?;
        plan(call, operands)
    })
}

phase_two!(aclnnQuantMatmulV5);

/// As V5, with one scale of columns and an offset of results.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnQuantMatmulV4GetWorkspaceSize(
    x1: Handle,
    x2: Handle,
    scale: Handle,
    offset: Handle,
    pertoken_scale: Handle,
    bias: Handle,
    transpose_x1: bool,
    transpose_x2: bool,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnQuantMatmulV4", DOCUMENT_V4, workspace, executor, |call| {
        let operands = Operands {
            x1: call.tensor("x1", x1)?,
            x2: call.tensor("x2", x2)?,
            columns: Some(call.tensor("scale", scale)?),
            rows: call.optional("pertokenScaleOptional", pertoken_scale)?,
            bias: call.optional("bias", bias)?,
            out: call.tensor("out", out)?,
            transposed: [transpose_x1, transpose_x2],
        };
        call.absent(&[("offset", offset)])?;
        plan(call, operands)
    })
}

phase_two!(aclnnQuantMatmulV4);

/// The rows of the documents' tables for A2 and A3 with INT8: what goes with which result.
fn check_types(call: &Call, operands: &Operands) -> Result<(), Failure> {
    let Operands { x1, x2, columns, rows, bias, out, .. } = operands;
    call.element(x1, &[Element::I8])?;
    call.element(x2, &[Element::I8])?;
    if let Some(rows) = rows {
        call.element(rows, &[Element::F32])?;
    }
    let columns = match columns {
        Some(columns) => columns,
        None => return call.require(false, || "x2Scale is null, INT8 needs it".to_owned()),
    };
    call.element(columns, &[Element::F32, Element::Bf16, Element::U64, Element::I64])?;
    let packed = matches!(columns.element, Element::U64 | Element::I64);
    let allowed: &[Element] = match (packed, columns.element, rows.is_some()) {
        (true, _, true) => &[],
        (true, _, false) => &[Element::F16],
        (_, Element::F32, true) => &[Element::Bf16, Element::F16],
        (_, _, true) => &[Element::Bf16],
        (_, _, false) => &[Element::Bf16, Element::I32],
    };
    call.element(out, allowed)?;
    if let Some(bias) = bias {
        let floats: &[Element] = match out.element {
            Element::Bf16 => &[Element::I32, Element::Bf16, Element::F32],
            Element::F16 if rows.is_some() => &[Element::I32, Element::F16, Element::F32],
            _ => &[Element::I32],
        };
        call.element(bias, floats)?;
    }
    Ok(())
}

fn plan(call: &Call, operands: Operands) -> Result<Plan, Failure> {
    check_types(call, &operands)?;
    let Operands { x1, x2, columns, rows, bias, out, transposed } = operands;
    for arg in [&x1, &x2, &out] {
        call.rank(arg, 2..=2)?;
    }
    // A batch is not modelled.
    call.not_empty(&[&x1, &x2])?;
    let pick = |arg: &Arg, transposed: bool| {
        if transposed { (arg.dims[1], arg.dims[0]) } else { (arg.dims[0], arg.dims[1]) }
    };
    let ((m, k), (inner, n)) = (pick(&x1, transposed[0]), pick(&x2, transposed[1]));
    call.require(k == inner, || format!("x2: {inner} rows, x1 has {k} columns"))?;
    call.shape(&out, &[m, n])?;
    let vectors = [(&columns, "x2Scale", n, true), (&rows, "x1Scale", m, false), (&bias, "bias", n, false)];
    for (arg, name, length, one) in vectors {
        let Some(arg) = arg else { continue };
        call.require(arg.dims == [length] || (one && arg.dims == [1]), || {
            format!("{name}: shape {:?}, expected [{length}]{}", arg.dims, if one { " or [1]" } else { "" })
        })?;
    }
    let floats = columns.as_ref().is_some_and(|columns| columns.element.is_float());
    let last = x1.last().max(x2.last()) as i64;
    call.require(last <= LAST_DIMENSION || (floats && rows.is_some()), || {
        format!(
            "x1, x2: a last dimension of {last}, limit {LAST_DIMENSION} without scales of rows and columns"
        )
    })?;
    call.contiguous(&[&out])?;
    let (m, k, n) = (m as usize, k as usize, n as usize);
    Plan::new(4 * m * n + 4096, move || {
        let (a, b) = (x1.integers()?, x2.integers()?);
        let vector = |values: &[i64], at: usize, step: usize, next: usize| -> Vec<i64> {
            (0..k).map(|q| values[at * step + q * next]).collect()
        };
        let a: Vec<_> =
            (0..m).map(|i| if transposed[0] { vector(&a, i, 1, m) } else { vector(&a, i, k, 1) }).collect();
        let b: Vec<_> =
            (0..n).map(|j| if transposed[1] { vector(&b, j, k, 1) } else { vector(&b, j, 1, n) }).collect();
        let columns = columns.as_ref().map(scales).transpose()?;
        let rows = rows.as_ref().map(|rows| rows.values()).transpose()?;
        let bias = bias.as_ref().map(|bias| Ok((bias.element, bias.values()?))).transpose()?;
        let mut results = Vec::with_capacity(m * n);
        for i in 0..m {
            for j in 0..n {
                let sum = a[i].iter().zip(&b[j]).map(|(left, right)| left * right).sum::<i64>() as f64;
                let scale = columns.as_ref().map_or(1.0, |scales| scales[j % scales.len()]);
                let scale = scale * rows.as_ref().map_or(1.0, |rows| rows[i]);
                results.push(match &bias {
                    Some((Element::I32, bias)) => (sum + bias[j]) * scale,
                    Some((_, bias)) => sum * scale + bias[j],
                    None => sum * scale,
                });
            }
        }
        out.write(&results)
    })
}

/// Scales as numbers. Those of 64 bits hold an f32 in their lower half (aclnnTransQuantParamV2.md, 2026-08).
fn scales(arg: &Arg) -> Result<Vec<f64>, Failure> {
    if arg.element.is_float() {
        return arg.values();
    }
    Ok(arg.integers()?.into_iter().map(|bits| f64::from(f32::from_bits(bits as u32))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close, message};

    const X1: [f64; 6] = [1.0, 2.0, 3.0, -4.0, 5.0, 6.0];
    const X2: [f64; 6] = [1.0, 0.0, 2.0, -1.0, 3.0, 7.0];

    struct Case {
        x1: Handle,
        x2: Handle,
        rows: Handle,
        columns: Handle,
        bias: Handle,
        out: Handle,
    }

    fn case(session: &Session, bias: Element) -> Case {
        Case {
            x1: session.tensor(&[2, 3], Element::I8, &X1),
            x2: session.tensor(&[3, 2], Element::I8, &X2),
            rows: session.tensor(&[2], Element::F32, &[0.5, 2.0]),
            columns: session.tensor(&[2], Element::F32, &[1.0, 0.25]),
            bias: session.tensor(&[2], bias, &[8.0, -8.0]),
            out: session.empty(&[2, 2], Element::Bf16),
        }
    }

    fn v5(case: &Case, size: Option<&mut u64>, executor: Option<&mut Handle>) -> i32 {
        let Case { x1, x2, rows, columns, bias, out } = *case;
        aclnnQuantMatmulV5GetWorkspaceSize(
            x1, x2, rows, columns, 0, 0, 0, 0, bias, false, false, 0, out, size, executor,
        )
    }

    /// Sums of products: [[14, 19], [24, 37]].
    #[test]
    fn a_float_bias_comes_after_the_scales_and_an_integer_one_before() {
        let session = Session::new();
        for (bias, expected) in [
            (Element::F32, [7.0 + 8.0, 2.375 - 8.0, 48.0 + 8.0, 18.5 - 8.0]),
            (Element::I32, [11.0, 1.375, 64.0, 14.5]),
        ] {
            let case = case(&session, bias);
            session.run(|size, executor| v5(&case, size, executor), aclnnQuantMatmulV5).unwrap();
            assert_close(&session.read(case.out), &expected, 1.0 / 256.0);
        }
    }

    #[test]
    fn version_4_takes_columns_that_are_rows() {
        let session = Session::new();
        let Case { x1, rows, columns, out, .. } = case(&session, Element::F32);
        let x2 = session.tensor(&[2, 3], Element::I8, &[1.0, 2.0, 3.0, 0.0, -1.0, 7.0]);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnQuantMatmulV4GetWorkspaceSize(x1, x2, columns, 0, rows, 0, false, true, out, size, executor)
        };
        session.run(first, aclnnQuantMatmulV4).unwrap();
        assert_close(&session.read(out), &[7.0, 2.375, 48.0, 18.5], 1.0 / 256.0);
    }

    /// vllm-ascend issues 7443 and 6636.
    #[test]
    fn scales_of_16_bits_are_refused() {
        let session = Session::new();
        let mut case = case(&session, Element::F32);
        case.columns = session.tensor(&[2], Element::F16, &[1.0, 1.0]);
        assert_eq!(v5(&case, Some(&mut 0), Some(&mut 0)), 161_002);
        let text = "x2Scale: dtype FLOAT16, limit FLOAT, BFLOAT16, UINT64, INT64 (aclnnQuantMatmulV5.md, 2026-08-22)";
        assert_eq!(message(), format!("aclnnQuantMatmulV5: {text}"));
    }

    /// vllm-project/afd-plugin issue 210.
    #[test]
    fn rows_must_be_there() {
        let session = Session::new();
        let mut case = case(&session, Element::F32);
        case.x1 = session.empty(&[0, 3], Element::I8);
        assert_eq!(v5(&case, Some(&mut 0), Some(&mut 0)), 161_002);
        assert!(message().contains("x1: empty, [0, 3]"));
    }

    #[test]
    fn wide_rows_need_both_scales() {
        let session = Session::new();
        let wide = 65_536;
        let mut case = case(&session, Element::F32);
        case.x1 = session.empty(&[1, wide], Element::I8);
        case.x2 = session.empty(&[wide, 2], Element::I8);
        case.out = session.empty(&[1, 2], Element::Bf16);
        case.rows = 0;
        assert_eq!(v5(&case, Some(&mut 0), Some(&mut 0)), 161_002);
        assert!(message().contains("a last dimension of 65536, limit 65535"));
    }
}
