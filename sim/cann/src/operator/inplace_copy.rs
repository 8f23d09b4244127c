//! `aclnnInplaceCopy`: a view's elements to another view.

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnInplaceCopy.md, 2026-08-22";

/// Shapes and types are the same; repetition and conversion are not modelled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnInplaceCopyGetWorkspaceSize(
    this: Handle,
    source: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnInplaceCopy", DOCUMENT, workspace, executor, |call| {
        let [this, source] = [call.tensor("selfRef", this)?, call.tensor("src", source)?];
        if this.dims != source.dims || this.element != source.element {
            call.unmodelled(&format!("a copy of {:?} to {:?}", source.dims, this.dims))?;
        }
        Plan::new(0, move || this.write_raw_at(0, &source.raw_at(0, source.count())?))
    })
}

phase_two!(aclnnInplaceCopy);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::tensor::aclDestroyTensor;
    use crate::element::Element;
    use crate::testing::Session;

    #[test]
    fn a_view_is_turned() {
        let session = Session::new();
        let from = session.tensor(&[2, 3], Element::I8, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let to = session.empty(&[3, 2], Element::I8);
        let turned = session.view(session.data(from), &[3, 2], Some(&[1, 3]), Element::I8, &[6]);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnInplaceCopyGetWorkspaceSize(to, turned, size, executor)
        };
        session.run(first, aclnnInplaceCopy).unwrap();
        assert_eq!(session.read(to), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(aclDestroyTensor(turned), 0);
    }
}
