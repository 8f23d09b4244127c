//! `aclnnSilu`: x / (1 + e^-x).

use super::call::phase_one;
use super::{phase_two, unary};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnSilu.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnSiluGetWorkspaceSize(
    this: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnSilu", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("self", this)?, call.tensor("out", out)?];
        unary::plan(call, args, super::swi_glu::silu)
    })
}

phase_two!(aclnnSilu);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::testing::{Session, assert_close, message};

    #[test]
    fn known_values() {
        let session = Session::new();
        let x = session.tensor(&[3], Element::F32, &[-1.0, 0.0, 2.0]);
        let out = session.empty(&[3], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnSiluGetWorkspaceSize(x, out, size, executor)
        };
        session.run(first, aclnnSilu).unwrap();
        assert_close(&session.read(out), &[-0.268_941_42, 0.0, 1.761_594_2], 1e-6);
        let other = session.empty(&[3], Element::F16);
        assert_eq!(aclnnSiluGetWorkspaceSize(x, other, Some(&mut 0), Some(&mut 0)), 161_002);
        assert!(message().contains("out: dtype FLOAT16, limit FLOAT"), "{}", message());
    }
}
