//! `aclnnAscendQuantV3`: INT8 by a scale that is known, which is multiplied: the inverse of the usual one.

use std::ffi::c_char;

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::foreign;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnAscendQuantV3.md, 2026-08-22";
/// `ACL_INT8`.
const INT8: i32 = 2;

/// x [.., n], scale and offset [n] or [1], y as x: round(x * scale + offset).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnAscendQuantV3GetWorkspaceSize(
    x: Handle,
    scale: Handle,
    offset: Handle,
    sqrt_mode: bool,
    round_mode: *const c_char,
    dst_type: i32,
    axis: i32,
    y: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let round_mode = foreign::text(round_mode);
    phase_one("aclnnAscendQuantV3", DOCUMENT, workspace, executor, |call| {
        let [x, scale] = [call.tensor("x", x)?, call.tensor("scale", scale)?];
        let offset = call.optional("offset", offset)?;
        let y = call.tensor("y", y)?;
        call.element(&x, &[Element::F32, Element::F16, Element::Bf16])?;
        call.element(&scale, &[x.element])?;
        call.rank(&x, 1..=8)?;
        let last = x.dims.len() as i32 - 1;
        if sqrt_mode || dst_type != INT8 || !(axis == -1 || axis == last) {
            call.unmodelled(&format!("sqrtMode {sqrt_mode}, dstType {dst_type}, axis {axis}"))?;
        }
        let mode = round_mode.unwrap_or_default();
        let known = ["round", "floor", "ceil", "trunc"];
        call.require(known.contains(&mode.as_str()), || {
            format!("roundMode `{mode}`, limit {}", known.join(", "))
        })?;
        if mode != "round" {
            call.unmodelled(&format!("roundMode `{mode}`"))?;
        }
        call.element(&y, &[Element::I8])?;
        call.shape(&y, &x.dims)?;
        let width = x.last();
        for vector in [Some(&scale), offset.as_ref()].into_iter().flatten() {
            call.element(vector, &[x.element])?;
            let fits = vector.dims == [width as i64] || vector.dims == [1];
            call.require(fits, || {
                format!("scale, offset: shape {:?}, expected [{width}] or [1]", vector.dims)
            })?;
        }
        Plan::new(0, move || {
            let (values, scale) = (x.values()?, scale.values()?);
            let offset =
                offset.as_ref().map(|offset| offset.values()).transpose()?.unwrap_or_else(|| vec![0.0]);
            let at = |(index, value): (usize, &f64)| {
                let column = index % width;
                value * scale[column % scale.len()] + offset[column % offset.len()]
            };
            y.write(&values.iter().enumerate().map(at).collect::<Vec<_>>())
        })
    })
}

phase_two!(aclnnAscendQuantV3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, message};

    #[test]
    fn the_scale_is_multiplied() {
        let session = Session::new();
        let x = session.tensor(&[2, 2], Element::F32, &[1.0, 2.6, -3.0, 100.0]);
        let scale = session.tensor(&[2], Element::F32, &[10.0, 2.0]);
        let offset = session.tensor(&[1], Element::F32, &[1.0]);
        let y = session.empty(&[2, 2], Element::I8);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            let mode = c"round".as_ptr();
            aclnnAscendQuantV3GetWorkspaceSize(x, scale, offset, false, mode, 2, -1, y, size, executor)
        };
        session.run(first, aclnnAscendQuantV3).unwrap();
        assert_eq!(session.read(y), [11.0, 6.0, -29.0, 127.0]);
        let (half, mode) = (session.empty(&[2], Element::F16), c"round".as_ptr());
        let (size, executor) = (Some(&mut 0), Some(&mut 0));
        let code = aclnnAscendQuantV3GetWorkspaceSize(x, half, 0, false, mode, 2, -1, y, size, executor);
        assert_eq!(code, 161_002);
        assert!(message().contains("scale: dtype FLOAT16, limit FLOAT"));
    }
}
