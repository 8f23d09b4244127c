//! `aclnnClamp`: values between two numbers.

use super::call::phase_one;
use super::{phase_two, unary};
use crate::element::Element;
use crate::handle::Handle;

/// The types that are modelled; others CANN may take.
const TYPES: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::I32];
const DOCUMENT: &str = "aclnnClamp.md, 2026-08-22";

/// min(max(self, clipValueMin), clipValueMax). What becomes of NaN the document does not say: it stays, or becomes the
/// lower bound.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnClampGetWorkspaceSize(
    this: Handle,
    clip_value_min: Handle,
    clip_value_max: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnClamp", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("self", this)?, call.tensor("out", out)?];
        // One of the two may be null.
        let low = call.scalar("clipValueMin", clip_value_min)?;
        let high = call.scalar("clipValueMax", clip_value_max)?;
        unary::plan_of(call, &TYPES, args, move |value| {
            if value.is_nan() && unary::either() { value } else { value.max(low).min(high) }
        })
    })
}

phase_two!(aclnnClamp);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::array;
    use crate::testing::Session;

    #[test]
    fn values_stay_between() {
        let session = Session::new();
        let x = session.tensor(&[3], Element::F32, &[-3.0, 0.5, f64::INFINITY]);
        let out = session.empty(&[3], Element::F32);
        let [low, high] = [-1_f32, 2.0].map(|value| array::aclCreateScalar(value.to_le_bytes().as_ptr(), 0));
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnClampGetWorkspaceSize(x, low, high, out, size, executor)
        };
        session.run(first, aclnnClamp).unwrap();
        assert_eq!(session.read(out), [-1.0, 0.5, 2.0]);
        assert_eq!([low, high].map(|scalar| array::aclDestroyScalar(scalar)), [0, 0]);
    }
}
