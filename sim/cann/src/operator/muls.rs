//! `aclnnMuls`: out = self * other, which is a scalar.

use super::call::phase_one;
use super::{phase_two, unary};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnMuls&aclnnInplaceMuls.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnMulsGetWorkspaceSize(
    this: Handle,
    other: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnMuls", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("self", this)?, call.tensor("out", out)?];
        let other = call.scalar("other", other)?;
        unary::plan(call, args, move |value| value * other)
    })
}

phase_two!(aclnnMuls);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::array;
    use crate::element::Element;
    use crate::testing::{Session, message};

    #[test]
    fn known_values() {
        let session = Session::new();
        let x = session.tensor(&[2], Element::F32, &[-3.0, 0.5]);
        let out = session.empty(&[2], Element::F32);
        let other = array::aclCreateScalar(4_f32.to_le_bytes().as_ptr(), 0);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnMulsGetWorkspaceSize(x, other, out, size, executor)
        };
        session.run(first, aclnnMuls).unwrap();
        assert_eq!(session.read(out), [-12.0, 2.0]);
        assert_eq!(array::aclDestroyScalar(other), 0);
        assert_eq!(aclnnMulsGetWorkspaceSize(x, 0, out, Some(&mut 0), Some(&mut 0)), 161_001);
        assert!(message().contains("other"), "{}", message());
    }
}
