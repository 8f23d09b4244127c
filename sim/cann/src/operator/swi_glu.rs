//! `aclnnSwiGlu`: the sigmoid linear unit of the first half, times the second half.

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnSwiGlu.md, 2026-08-22";

/// x [.., 2n, ..] is halved at dimension `dim`; out [.., n, ..].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnSwiGluGetWorkspaceSize(
    x: Handle,
    dim: i64,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnSwiGlu", DOCUMENT, workspace, executor, |call| {
        let [x, out] = [call.tensor("x", x)?, call.tensor("out", out)?];
        call.element(&x, &[Element::F32, Element::F16, Element::Bf16])?;
        call.element(&out, &[x.element])?;
        call.rank(&x, 1..=8)?;
        let rank = x.dims.len() as i64;
        call.require((-rank..rank).contains(&dim), || format!("dim {dim}, limit {} to {}", -rank, rank - 1))?;
        let at = dim.rem_euclid(rank) as usize;
        let whole = x.dims[at];
        call.require(whole % 2 == 0, || format!("x: {whole} at dimension {at}, an even number is halved"))?;
        let mut halved = x.dims.clone();
        halved[at] = whole / 2;
        call.shape(&out, &halved)?;
        let inner = x.dims[at + 1..].iter().product::<i64>() as usize;
        let half = (whole / 2) as usize * inner;
        Plan::new(256, move || {
            let values = x.values()?;
            let mut gated = Vec::new();
            for block in values.chunks(2 * half.max(1)) {
                let (gates, linear) = block.split_at(half);
                gated.extend(gates.iter().zip(linear).map(|(gate, value)| silu(*gate) * value));
            }
            out.write(&gated)
        })
    })
}

phase_two!(aclnnSwiGlu);

/// x / (1 + e^-x).
pub(super) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close, message};

    #[test]
    fn the_first_half_is_the_gate() {
        let session = Session::new();
        let x = session.tensor(&[2, 4], Element::F32, &[1.0, 0.0, 3.0, 5.0, -2.0, 4.0, 10.0, 0.5]);
        let out = session.empty(&[2, 2], Element::F32);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnSwiGluGetWorkspaceSize(x, -1, out, size, executor)
        };
        session.run(first, aclnnSwiGlu).unwrap();
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let expected = [3.0 * sigmoid(1.0), 0.0, -20.0 * sigmoid(-2.0), 2.0 * sigmoid(4.0)];
        assert_close(&session.read(out), &expected, 1e-6);
    }

    #[test]
    fn odd_widths_are_refused() {
        let session = Session::new();
        let x = session.empty(&[2, 3], Element::F32);
        let out = session.empty(&[2, 1], Element::F32);
        let code = aclnnSwiGluGetWorkspaceSize(x, 1, out, Some(&mut 0), Some(&mut 0));
        assert_eq!(code, 161_002);
        assert!(message().contains("x: 3 at dimension 1, an even number is halved"));
    }
}
