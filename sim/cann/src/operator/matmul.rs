//! `aclnnMatmul`: products of matrices of floats.

use super::call::{Plan, phase_one};
use super::phase_two;
use super::unary::FLOATS;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnMatmul.md, 2026-08-22";

/// self [m, k], mat2 [k, n], out [m, n]; `cubeMathType` 0: as the types are. Sums are f64 and are rounded once.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnMatmulGetWorkspaceSize(
    this: Handle,
    mat2: Handle,
    out: Handle,
    cube_math_type: i8,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnMatmul", DOCUMENT, workspace, executor, |call| {
        let [this, mat2] = [call.tensor("self", this)?, call.tensor("mat2", mat2)?];
        let out = call.tensor("out", out)?;
        call.require(matches!(cube_math_type, 0..=3), || {
            format!("cubeMathType {cube_math_type}, limit 0 to 3")
        })?;
        if cube_math_type != 0 || [&this, &mat2, &out].iter().any(|arg| arg.dims.len() != 2) {
            call.unmodelled(&format!("cubeMathType {cube_math_type}, {:?} x {:?}", this.dims, mat2.dims))?;
        }
        call.element(&this, &FLOATS)?;
        for arg in [&mat2, &out] {
            if arg.element != this.element {
                call.unmodelled(&format!("{} and {} together", this.element.name(), arg.element.name()))?;
            }
        }
        let (m, k, n) = (this.dims[0], this.dims[1], mat2.dims[1]);
        call.require(mat2.dims[0] == k, || format!("mat2: {} rows, self has {k} columns", mat2.dims[0]))?;
        call.shape(&out, &[m, n])?;
        call.not_empty(&[&this, &mat2])?;
        Plan::new(4096, move || {
            let (left, right) = (this.values()?, mat2.values()?);
            let (k, n) = (k as usize, n as usize);
            let mut sums = vec![0.0; left.len() / k * n];
            for (row, sums) in left.chunks(k).zip(sums.chunks_mut(n)) {
                for (value, row) in row.iter().zip(right.chunks(n)) {
                    sums.iter_mut().zip(row).for_each(|(sum, other)| *sum += value * other);
                }
            }
            out.write(&sums)
        })
    })
}

phase_two!(aclnnMatmul);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::tensor::aclDestroyTensor;
    use crate::element::Element;
    use crate::testing::{Session, message};

    #[test]
    fn the_right_one_may_be_turned() {
        let session = Session::new();
        let x = session.tensor(&[1, 2], Element::F32, &[2.0, 3.0]);
        let w = session.tensor(&[3, 2], Element::F32, &[1.0, 0.0, 0.0, 1.0, 5.0, -1.0]);
        let turned = session.view(session.data(w), &[2, 3], Some(&[1, 2]), Element::F32, &[6]);
        let out = session.empty(&[1, 3], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnMatmulGetWorkspaceSize(x, turned, out, 0, size, executor)
        };
        session.run(first, aclnnMatmul).unwrap();
        assert_eq!(session.read(out), [2.0, 3.0, 7.0]);
        assert_eq!(aclnnMatmulGetWorkspaceSize(x, w, out, 0, Some(&mut 0), Some(&mut 0)), 161_002);
        assert!(message().contains("mat2: 3 rows, self has 2 columns"), "{}", message());
        assert_eq!(aclDestroyTensor(turned), 0);
    }
}
