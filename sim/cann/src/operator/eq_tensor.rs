//! `aclnnEqTensor`: where two tensors are equal.

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnEqTensor&aclnnInplaceEqTensor.md, 2026-08-22";

/// out BOOL, of the shape of both; repetition is not modelled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnEqTensorGetWorkspaceSize(
    this: Handle,
    other: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnEqTensor", DOCUMENT, workspace, executor, |call| {
        let [this, other] = [call.tensor("self", this)?, call.tensor("other", other)?];
        let out = call.tensor("out", out)?;
        if this.element != other.element || this.dims != other.dims || out.element != Element::Bool {
            call.unmodelled(&format!("{:?} beside {:?}, to {}", this.dims, other.dims, out.element.name()))?;
        }
        call.shape(&out, &this.dims)?;
        Plan::new(0, move || {
            let pairs = this.values()?.into_iter().zip(other.values()?);
            out.write(&pairs.map(|(a, b)| f64::from(u8::from(a == b))).collect::<Vec<_>>())
        })
    })
}

phase_two!(aclnnEqTensor);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Session;

    #[test]
    fn equal_ones_are_true() {
        let session = Session::new();
        let x = session.tensor(&[3], Element::I32, &[1.0, -2.0, 3.0]);
        let y = session.tensor(&[3], Element::I32, &[1.0, 2.0, 3.0]);
        let out = session.empty(&[3], Element::Bool);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnEqTensorGetWorkspaceSize(x, y, out, size, executor)
        };
        session.run(first, aclnnEqTensor).unwrap();
        assert_eq!(session.read(out), [1.0, 0.0, 1.0]);
    }
}
