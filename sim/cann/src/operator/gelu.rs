//! `aclnnGeluV2`: x times the probability that a normal number is below it.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use super::call::phase_one;
use super::{phase_two, unary};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnGeluV2.md, 2026-08-22";

/// `approximate` 0: by the error function; 1: by a hyperbolic tangent.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnGeluV2GetWorkspaceSize(
    x: Handle,
    approximate: i64,
    y: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnGeluV2", DOCUMENT, workspace, executor, |call| {
        let args = [call.tensor("x", x)?, call.tensor("y", y)?];
        call.require(matches!(approximate, 0 | 1), || format!("approximate {approximate}, limit 0 to 1"))?;
        unary::plan(call, args, if approximate == 0 { by_error_function } else { by_tangent })
    })
}

phase_two!(aclnnGeluV2);

fn by_error_function(x: f64) -> f64 {
    x / 2.0 * erfc(-x * FRAC_1_SQRT_2)
}

/// x/2 (1 + tanh(u)) = x / (1 + e^-2u): nothing is lost where the tangent is near -1.
fn by_tangent(x: f64) -> f64 {
    let u = (2.0 / PI).sqrt() * (x + 0.044_715 * x.powi(3));
    x / (1.0 + (-2.0 * u).exp())
}

/// 1 - erf(x): its series, and beyond 2 the continued fraction.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return 1.0 - FRAC_2_SQRT_PI * sum;
    }
    let fraction = (1..200).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    (-x * x).exp() / PI.sqrt() / fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::testing::{Session, assert_close};

    /// Abramowitz and Stegun, table 7.1 and 7.3.
    #[test]
    fn the_error_function_is_that_of_the_tables() {
        let expected =
            [0.479_500_122_186_953_5, 0.157_299_207_050_285_1, 4.677_734_981_047_266e-3, 1.537e-12];
        let got = [0.5, 1.0, 2.0, 5.0].map(erfc);
        assert_close(&got[..3], &expected[..3], 1e-10);
        assert!((got[3] / expected[3] - 1.0).abs() < 1e-3, "{}", got[3]);
    }

    #[test]
    fn both_forms() {
        let session = Session::new();
        let x = session.tensor(&[3], Element::F32, &[-1.0, 0.5, 3.0]);
        for (form, expected) in
            [(0, [-0.158_655_25, 0.345_731_23, 2.995_950_3]), (1, [-0.158_808, 0.345_714_01, 2.996_362_6])]
        {
            let y = session.empty(&[3], Element::F32);
            let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
                aclnnGeluV2GetWorkspaceSize(x, form, y, size, executor)
            };
            session.run(first, aclnnGeluV2).unwrap();
            assert_close(&session.read(y), &expected, 1e-5);
        }
        assert_eq!(aclnnGeluV2GetWorkspaceSize(x, 2, x, Some(&mut 0), Some(&mut 0)), 161_002);
    }
}
