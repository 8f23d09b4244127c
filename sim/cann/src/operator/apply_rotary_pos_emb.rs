//! `aclnnApplyRotaryPosEmbV2`: queries and keys are turned where they are.

use std::ffi::c_char;

use super::call::{Arg, Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::foreign;
use crate::handle::Handle;
use crate::runtime::error::Failure;

const DOCUMENT: &str = "aclnnApplyRotaryPosEmbV2.md, 2026-08-21";
/// Layouts on A2 and A3.
const BSND: i64 = 1;
const TND: i64 = 4;

/// query [.., n, d], key [.., m, d], cos and sin [.., 1, d]: the first half of d is paired with the second.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnApplyRotaryPosEmbV2GetWorkspaceSize(
    query: Handle,
    key: Handle,
    cos: Handle,
    sin: Handle,
    layout: i64,
    rotary_mode: *const c_char,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let mode = foreign::text(rotary_mode).unwrap_or_default();
    phase_one("aclnnApplyRotaryPosEmbV2", DOCUMENT, workspace, executor, |call| {
        let [query, key] = [call.tensor("queryRef", query)?, call.tensor("keyRef", key)?];
        let [cos, sin] = [call.tensor("cos", cos)?, call.tensor("sin", sin)?];
        call.require(matches!(layout, BSND | TND), || format!("layout {layout}, limit 1 (BSND), 4 (TND)"))?;
        call.require(mode == "half", || format!("rotaryMode `{mode}`, limit `half` on A2 and A3"))?;
        call.element(&query, &[Element::Bf16, Element::F16, Element::F32])?;
        call.not_empty(&[&query, &key, &cos, &sin])?;
        let rank = if layout == TND { 3 } else { 4 };
        for arg in [&query, &key, &cos, &sin] {
            call.rank(arg, rank..=rank)?;
            call.element(arg, &[query.element])?;
            let (outer, last) = (rank - 2, arg.last());
            call.require(matches!(last, 64 | 128), || format!("a head of {last}, limit 64 or 128"))?;
            call.require(last == query.last(), || format!("heads of {last} and {}", query.last()))?;
            call.require(arg.dims[..outer] == query.dims[..outer], || {
                format!("rows {:?} and {:?}", &arg.dims[..outer], &query.dims[..outer])
            })?;
        }
        for arg in [&cos, &sin] {
            let heads = arg.dims[rank - 2];
            call.require(heads == 1, || format!("cos, sin: {heads} heads, limit 1"))?;
        }
        Plan::new(2048, move || {
            let (cos, sin) = (cos.values()?, sin.values()?);
            turn(&query, &cos, &sin)?;
            turn(&key, &cos, &sin)
        })
    })
}

phase_two!(aclnnApplyRotaryPosEmbV2);

fn turn(arg: &Arg, cos: &[f64], sin: &[f64]) -> Result<(), Failure> {
    let width = arg.last();
    let heads = arg.dims[arg.dims.len() - 2] as usize;
    let mut turned = Vec::new();
    for (index, row) in arg.values()?.chunks(width).enumerate() {
        let at = index / heads * width;
        for (place, value) in row.iter().enumerate() {
            let half = width / 2;
            let pair = if place < half { -row[place + half] } else { row[place - half] };
            turned.push(value * cos[at + place] + pair * sin[at + place]);
        }
    }
    arg.write(&turned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, message};

    const D: i64 = 64;

    fn call(session: &Session, d: i64, mode: &std::ffi::CStr) -> Result<[Handle; 2], (i32, String)> {
        let ramp = |count: i64| (0..count).map(|at| at as f64).collect::<Vec<_>>();
        let query = session.tensor(&[2, 2, d], Element::F32, &ramp(4 * d));
        let key = session.tensor(&[2, 1, d], Element::F32, &ramp(2 * d));
        // The first token stays, the second makes a quarter of a turn.
        let turn = |first: f64, second: f64| [vec![first; d as usize], vec![second; d as usize]].concat();
        let cos = session.tensor(&[2, 1, d], Element::F32, &turn(1.0, 0.0));
        let sin = session.tensor(&[2, 1, d], Element::F32, &turn(0.0, 1.0));
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnApplyRotaryPosEmbV2GetWorkspaceSize(query, key, cos, sin, 4, mode.as_ptr(), size, executor)
        };
        session.run(first, aclnnApplyRotaryPosEmbV2).map(|()| [query, key])
    }

    #[test]
    fn halves_are_turned_together() {
        let session = Session::new();
        let [query, key] = call(&session, D, c"half").unwrap();
        let (query, key) = (session.read(query), session.read(key));
        assert_eq!(query[..2], [0.0, 1.0]);
        // The second token's second head begins at 3 D.
        assert_eq!(query[192], -(192.0 + 32.0));
        assert_eq!(query[192 + 32], 192.0);
        assert_eq!((key[64], key[96]), (-96.0, 64.0));
    }

    #[test]
    fn other_widths_and_modes_are_refused() {
        let session = Session::new();
        assert_eq!(call(&session, 96, c"half").unwrap_err().0, 161_002);
        let (code, text) = call(&session, D, c"interleave").unwrap_err();
        assert_eq!(code, 161_002);
        assert!(text.contains("rotaryMode `interleave`, limit `half` on A2 and A3"), "{text}");
        assert_eq!(message(), "");
    }
}
