//! `aclnnRmsNorm`: y = x / sqrt(mean(x^2) + epsilon) * gamma over the last dimensions.

use super::call::{Arg, Call, Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::Failure;

const DOCUMENT: &str = "aclnnRmsNorm.md, 2026-08-22";

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnRmsNormGetWorkspaceSize(
    x: Handle,
    gamma: Handle,
    epsilon: f64,
    y_out: Handle,
    rstd_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnRmsNorm", DOCUMENT, workspace, executor, |call| {
        let [x, gamma] = [call.tensor("x", x)?, call.tensor("gamma", gamma)?];
        let [y, rstd] = [call.tensor("yOut", y_out)?, call.tensor("rstdOut", rstd_out)?];
        call.element(&x, &[Element::F32, Element::F16, Element::Bf16])?;
        call.element(&gamma, &[x.element, Element::F32])?;
        check(call, &x, &gamma, &y, &rstd)?;
        let width = gamma.count();
        Plan::new(512, move || {
            let (values, gamma) = (x.values()?, gamma.values()?);
            let (mut rows, mut inverses) = (Vec::new(), Vec::new());
            for row in values.chunks(width) {
                let (normed, inverse) = normalize(row, &gamma, epsilon);
                rows.extend(normed);
                inverses.push(inverse);
            }
            y.write(&rows)?;
            rstd.write(&inverses)
        })
    })
}

phase_two!(aclnnRmsNorm);

/// Shapes and types that this operator and its fusion with an addition have in common.
pub(super) fn check(call: &Call, x: &Arg, gamma: &Arg, y: &Arg, rstd: &Arg) -> Result<(), Failure> {
    call.element(y, &[x.element])?;
    call.element(rstd, &[Element::F32])?;
    call.not_empty(&[gamma])?;
    let normed = gamma.dims.len();
    let rank = x.dims.len();
    let outer = rank.saturating_sub(normed);
    call.tiles((1..=8).contains(&rank) && x.dims.get(outer..) == Some(&gamma.dims[..]), || {
        format!("gamma: shape {:?}, which is no end of x's {:?}", gamma.dims, x.dims)
    })?;
    call.tiles(y.dims == x.dims, || format!("yOut: shape {:?}, expected {:?}", y.dims, x.dims))?;
    let mut expected = x.dims.clone();
    expected.iter_mut().skip(outer).for_each(|dim| *dim = 1);
    call.tiles(rstd.dims == expected, || format!("rstdOut: shape {:?}, expected {expected:?}", rstd.dims))
}

/// A row over its root mean square, times gamma, and the inverse of that root.
pub(super) fn normalize(row: &[f64], gamma: &[f64], epsilon: f64) -> (Vec<f64>, f64) {
    let squares: f64 = row.iter().map(|value| value * value).sum();
    let inverse = 1.0 / (squares / row.len() as f64 + epsilon).sqrt();
    (row.iter().zip(gamma).map(|(value, gamma)| value * inverse * gamma).collect(), inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close, message};

    #[test]
    fn rows_are_normalised_by_hand() {
        let session = Session::new();
        let x = session.tensor(&[2, 2], Element::F16, &[3.0, 4.0, 0.0, 2.0]);
        let gamma = session.tensor(&[2], Element::F32, &[1.0, 2.0]);
        let (y, rstd) = (session.empty(&[2, 2], Element::F16), session.empty(&[2, 1], Element::F32));
        session
            .run(
                |size, executor| aclnnRmsNormGetWorkspaceSize(x, gamma, 0.5, y, rstd, size, executor),
                aclnnRmsNorm,
            )
            .unwrap();
        // Mean squares 12.5 and 2, with epsilon inside the root.
        let inverses = [1.0 / 13_f64.sqrt(), 1.0 / 2.5_f64.sqrt()];
        assert_close(&session.read(rstd), &inverses, 1e-6);
        let expected = [3.0 * inverses[0], 8.0 * inverses[0], 0.0, 4.0 * inverses[1]];
        assert_close(&session.read(y), &expected, 1e-3);
    }

    #[test]
    fn shapes_and_types_are_those_of_the_document() {
        let session = Session::new();
        let x = session.tensor(&[2, 2], Element::F16, &[0.0; 4]);
        let y = session.empty(&[2, 2], Element::F16);
        let of =
            |gamma, rstd| aclnnRmsNormGetWorkspaceSize(x, gamma, 0.5, y, rstd, Some(&mut 0), Some(&mut 0));
        let (gamma, rstd) = (session.empty(&[2], Element::F16), session.empty(&[2, 1], Element::F32));
        assert_eq!(of(0, rstd), 161_001);
        assert_eq!(message(), "aclnnRmsNorm: gamma: aclTensor is null");
        assert_eq!(of(session.empty(&[2], Element::Bf16), rstd), 161_002);
        let text = "gamma: dtype BFLOAT16, limit FLOAT16, FLOAT (aclnnRmsNorm.md, 2026-08-22)";
        assert!(message().contains(text));
        assert_eq!(of(session.empty(&[3], Element::F16), rstd), 561_002);
        assert_eq!(of(gamma, session.empty(&[2], Element::F32)), 561_002);
        assert!(message().contains("rstdOut: shape [2], expected [2, 1]"));
    }
}
