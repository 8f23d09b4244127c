//! `aclnnCast`: another element type.

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnCast.md, 2026-08-22";

/// To floats to the nearest, ties to even; floats to integers is not modelled.
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
        if this.element.is_float() && !out.element.is_float() {
            call.unmodelled(&format!("{} to {}", this.element.name(), out.element.name()))?;
        }
        Plan::new(0, move || out.write(&this.values()?))
    })
}

phase_two!(aclnnCast);

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
}
