//! `aclnnCast`: another element type.

use super::call::{Plan, phase_one};
use super::phase_two;
use super::unary::either;
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnCast.md, 2026-08-22";

/// To floats to the nearest, ties to even. Of floats to integers the document says that a NaN is 0, and nothing of fractions and
/// of what is beyond the type: fractions are cut off or rounded, and the rest is garbage.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnCastGetWorkspaceSize(
    this: Handle,
    dtype: i32,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnCast", DOCUMENT, workspace, executor, |call| {
        let [this, out] = [call.tensor("self", this)?, call.tensor("out", out)?];
        call.require(Element::of(dtype) == Some(out.element), || {
            format!("dtype {dtype}, out is of {}", out.element.name())
        })?;
        call.shape(&out, &this.dims)?;
        let to_integers = this.element.is_float() && !out.element.is_float();
        let element = out.element;
        Plan::new(0, move || {
            let mut values = this.values()?;
            if to_integers {
                values.iter_mut().for_each(|value| *value = whole(*value, element));
            }
            out.write(&values)
        })
    })
}

phase_two!(aclnnCast);

/// What an integer type makes of a float.
fn whole(value: f64, element: Element) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    let cut = if either() { value.trunc() } else { value.round() };
    let kept = element.value(&element.bytes(cut));
    if kept == cut || either() { kept } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Session;

    #[test]
    fn values_are_rounded_to_the_nearest() {
        let session = Session::new();
        let from = session.tensor(&[3], Element::F32, &[1.0 + 1.0 / 512.0, -3.0, 1e30]);
        let to = session.empty(&[3], Element::F16);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnCastGetWorkspaceSize(from, Element::F16.code(), to, size, executor)
        };
        session.run(first, aclnnCast).unwrap();
        assert_eq!(session.read(to), [1.0 + 1.0 / 512.0, -3.0, f64::INFINITY]);
        let code = aclnnCastGetWorkspaceSize(from, Element::Bf16.code(), to, Some(&mut 0), Some(&mut 0));
        assert_eq!(code, 161_002);
    }

    #[test]
    fn integers_are_kept_and_nan_is_zero() {
        let session = Session::new();
        let from = session.tensor(&[4], Element::F32, &[-127.0, 126.0, f64::NAN, -0.0]);
        let to = session.empty(&[4], Element::I8);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnCastGetWorkspaceSize(from, Element::I8.code(), to, size, executor)
        };
        session.run(first, aclnnCast).unwrap();
        assert_eq!(session.read(to), [-127.0, 126.0, 0.0, 0.0]);
    }
}
