//! `aclnnAddRmsNorm`: x = x1 + x2, and the root mean square norm of x.

use super::call::{Plan, phase_one};
use super::phase_two;
use super::rms_norm::{check, normalize};
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnAddRmsNorm.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnAddRmsNormGetWorkspaceSize(
    x1: Handle,
    x2: Handle,
    gamma: Handle,
    epsilon: f64,
    y_out: Handle,
    rstd_out: Handle,
    x_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnAddRmsNorm", DOCUMENT, workspace, executor, |call| {
        let [x1, x2, gamma] = [call.tensor("x1", x1)?, call.tensor("x2", x2)?, call.tensor("gamma", gamma)?];
        let [y, rstd] = [call.tensor("yOut", y_out)?, call.tensor("rstdOut", rstd_out)?];
        let x = call.tensor("xOut", x_out)?;
        call.element(&x1, &[Element::F32, Element::F16, Element::Bf16])?;
        for other in [&x2, &gamma, &x] {
            call.element(other, &[x1.element])?;
        }
        call.shape(&x2, &x1.dims)?;
        call.shape(&x, &x1.dims)?;
        check(call, &x1, &gamma, &y, &rstd)?;
        let width = gamma.count();
        Plan::new(768, move || {
            let sums: Vec<f64> = x1.values()?.iter().zip(&x2.values()?).map(|(a, b)| a + b).collect();
            let gamma = gamma.values()?;
            // The norm is of the sum as computed; whether it is of the sum as stored no document says: both are within
            // a rounding of x.
            let (mut rows, mut inverses) = (Vec::new(), Vec::new());
            for row in sums.chunks(width) {
                let (normed, inverse) = normalize(row, &gamma, epsilon);
                rows.extend(normed);
                inverses.push(inverse);
            }
            x.write(&sums)?;
            y.write(&rows)?;
            rstd.write(&inverses)
        })
    })
}

phase_two!(aclnnAddRmsNorm);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close};

    #[test]
    fn the_sum_is_kept_and_normalised() {
        let session = Session::new();
        let x1 = session.tensor(&[1, 2], Element::F32, &[1.0, 5.0]);
        let x2 = session.tensor(&[1, 2], Element::F32, &[2.0, -1.0]);
        let gamma = session.tensor(&[2], Element::F32, &[1.0, 2.0]);
        let [y, x] = [session.empty(&[1, 2], Element::F32), session.empty(&[1, 2], Element::F32)];
        let rstd = session.empty(&[1, 1], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnAddRmsNormGetWorkspaceSize(x1, x2, gamma, 0.5, y, rstd, x, size, executor)
        };
        session.run(first, aclnnAddRmsNorm).unwrap();
        assert_eq!(session.read(x), [3.0, 4.0]);
        let inverse = 1.0 / 13_f64.sqrt();
        assert_close(&session.read(y), &[3.0 * inverse, 8.0 * inverse], 1e-6);
        let half = session.empty(&[1, 2], Element::F16);
        let code =
            aclnnAddRmsNormGetWorkspaceSize(x1, half, gamma, 0.5, y, rstd, x, Some(&mut 0), Some(&mut 0));
        assert_eq!(code, 161_002);
    }
}
