//! `aclnnAdd`: out = self + alpha * other.

use super::call::phase_one;
use super::{broadcast, phase_two};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnAdd&aclnnInplaceAdd.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnAddGetWorkspaceSize(
    this: Handle,
    other: Handle,
    alpha: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnAdd", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("self", this)?, call.tensor("other", other)?, call.tensor("out", out)?];
        let alpha = call.scalar("alpha", alpha)?;
        broadcast::plan(call, args, move |left, right| left + alpha * right)
    })
}

phase_two!(aclnnAdd);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::array;
    use crate::element::Element;
    use crate::testing::{Session, message};

    fn add(session: &Session, args: [Handle; 3], alpha: f32) -> Result<(), (i32, String)> {
        let alpha = array::aclCreateScalar(alpha.to_le_bytes().as_ptr(), 0);
        let [left, right, out] = args;
        let result = session.run(
            |size, executor| aclnnAddGetWorkspaceSize(left, right, alpha, out, size, executor),
            aclnnAdd,
        );
        assert_eq!(array::aclDestroyScalar(alpha), 0);
        result
    }

    #[test]
    fn rows_are_repeated() {
        let session = Session::new();
        let left = session.tensor(&[2, 2], Element::F32, &[1.0, 2.0, 3.0, 4.0]);
        let right = session.tensor(&[1, 2], Element::F32, &[10.0, 20.0]);
        let out = session.empty(&[2, 2], Element::F32);
        add(&session, [left, right, out], 0.5).unwrap();
        assert_eq!(session.read(out), [6.0, 12.0, 8.0, 14.0]);
        // In place.
        add(&session, [left, out, left], 1.0).unwrap();
        assert_eq!(session.read(left), [7.0, 14.0, 11.0, 18.0]);
    }

    #[test]
    fn the_scalar_lives_until_phase_two() {
        let session = Session::new();
        let x = session.tensor(&[1], Element::F32, &[1.0]);
        let alpha = array::aclCreateScalar(2f32.to_le_bytes().as_ptr(), 0);
        let planned = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            let code = aclnnAddGetWorkspaceSize(x, x, alpha, x, size, executor);
            assert_eq!(array::aclDestroyScalar(alpha), 0);
            code
        };
        let (code, text) = session.run(planned, aclnnAdd).unwrap_err();
        assert_eq!(
            (code, text.as_str()),
            (361_001, "aclnnAdd: alpha: aclScalar was destroyed before phase two")
        );
    }

    #[test]
    fn shapes_that_do_not_go_together_are_refused() {
        let session = Session::new();
        let left = session.empty(&[2, 2], Element::F32);
        let right = session.empty(&[3], Element::F32);
        let (code, text) = add(&session, [left, right, left], 1.0).unwrap_err();
        assert_eq!(code, 161_002);
        assert!(text.contains("other: shape [3] beside [2, 2]"), "{text}");
        let code = aclnnAddGetWorkspaceSize(left, left, 0, left, Some(&mut 0), Some(&mut 0));
        assert_eq!((code, message().as_str()), (161_001, "aclnnAdd: alpha: array or scalar is null"));
    }
}
