//! `aclnnNanToNum`: other values for NaN and the infinities.

use super::call::phase_one;
use super::{phase_two, unary};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnNanToNum&aclnnInplaceNanToNum.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnNanToNumGetWorkspaceSize(
    this: Handle,
    nan: f32,
    posinf: f32,
    neginf: f32,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnNanToNum", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("self", this)?, call.tensor("out", out)?];
        unary::plan(call, args, move |value| match value {
            value if value.is_nan() => f64::from(nan),
            f64::INFINITY => f64::from(posinf),
            f64::NEG_INFINITY => f64::from(neginf),
            value => value,
        })
    })
}

phase_two!(aclnnNanToNum);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::testing::Session;

    #[test]
    fn each_has_a_value_of_its_own() {
        let session = Session::new();
        let x = session.tensor(&[4], Element::F32, &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5.0]);
        let out = session.empty(&[4], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnNanToNumGetWorkspaceSize(x, 1.0, 2.0, f32::NEG_INFINITY, out, size, executor)
        };
        session.run(first, aclnnNanToNum).unwrap();
        assert_eq!(session.read(out), [1.0, 2.0, f64::NEG_INFINITY, 5.0]);
    }
}
