//! `aclnnSWhere`: elements of one tensor or of another.

use super::broadcast::{joined, source};
use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;

/// The types that are modelled; others CANN may take.
const TYPES: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::I32];
const DOCUMENT: &str = "aclnnSWhere.md, 2026-08-22";

/// out = condition ? self : other; dimensions of 1 are repeated. Elements are moved, not computed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnSWhereGetWorkspaceSize(
    condition: Handle,
    this: Handle,
    other: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnSWhere", DOCUMENT, workspace, executor, |call| {
        let condition = call.tensor("condition", condition)?;
        let [this, other] = [call.tensor("self", this)?, call.tensor("other", other)?];
        let out = call.tensor("out", out)?;
        call.element(&condition, &[Element::Bool, Element::U8])?;
        call.element(&this, &TYPES)?;
        for arg in [&other, &out] {
            call.element(arg, &[this.element])?;
        }
        let shape = joined(&this.dims, &other.dims).and_then(|dims| joined(&dims, &condition.dims));
        call.require(shape.as_ref() == Some(&out.dims), || {
            format!("out: shape {:?} of {:?}, {:?}, {:?}", out.dims, condition.dims, this.dims, other.dims)
        })?;
        call.not_empty(&[&out])?;
        Plan::new(0, move || {
            let chosen = condition.values()?;
            let (a, b) = (this.raw_at(0, this.count())?, other.raw_at(0, other.count())?);
            let size = out.element.size();
            let mut bytes = Vec::new();
            for index in 0..out.count() {
                let at = |dims: &[i64]| source(index, &out.dims, dims);
                let (from, place) = match chosen[at(&condition.dims)] != 0.0 {
                    true => (&a, at(&this.dims)),
                    false => (&b, at(&other.dims)),
                };
                bytes.extend_from_slice(&from[place * size..][..size]);
            }
            out.write_raw_at(0, &bytes)
        })
    })
}

phase_two!(aclnnSWhere);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, message};

    #[test]
    fn rows_are_chosen() {
        let session = Session::new();
        let condition = session.tensor(&[2, 1], Element::Bool, &[1.0, 0.0]);
        let x = session.tensor(&[2, 2], Element::F32, &[1.0, 2.0, f64::NAN, 4.0]);
        let zero = session.tensor(&[1], Element::F32, &[0.0]);
        let out = session.empty(&[2, 2], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnSWhereGetWorkspaceSize(condition, x, zero, out, size, executor)
        };
        session.run(first, aclnnSWhere).unwrap();
        assert_eq!(session.read(out), [1.0, 2.0, 0.0, 0.0]);
        assert_eq!(
            aclnnSWhereGetWorkspaceSize(condition, x, zero, zero, Some(&mut 0), Some(&mut 0)),
            161_002
        );
        assert!(message().contains("out: shape [1]"), "{}", message());
    }
}
