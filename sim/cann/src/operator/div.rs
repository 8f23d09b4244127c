//! `aclnnDiv`: out = self / other.

use super::call::phase_one;
use super::unary::FLOATS;
use super::{broadcast, phase_two};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnDiv&aclnnInplaceDiv.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnDivGetWorkspaceSize(
    this: Handle,
    other: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnDiv", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("self", this)?, call.tensor("other", other)?, call.tensor("out", out)?];
        // Integers would be divided to floats.
        call.element(&args[0], &FLOATS)?;
        broadcast::plan(call, args, |left, right| left / right)
    })
}

phase_two!(aclnnDiv);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::testing::Session;

    #[test]
    fn columns_are_repeated() {
        let session = Session::new();
        let left = session.tensor(&[2, 2], Element::Bf16, &[2.0, 4.0, 3.0, 4.0]);
        let right = session.tensor(&[2, 1], Element::Bf16, &[0.5, -1.0]);
        let out = session.empty(&[2, 2], Element::Bf16);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnDivGetWorkspaceSize(left, right, out, size, executor)
        };
        session.run(first, aclnnDiv).unwrap();
        assert_eq!(session.read(out), [4.0, 8.0, -3.0, -4.0]);
    }
}
