//! Two tensors of which dimensions of 1 are repeated, as `aclnnAdd`, `aclnnDiv` and `aclnnMul` take them.

use super::call::{Arg, Call, Plan};
use crate::element::Element;
use crate::runtime::error::Failure;

/// The types that are modelled; others CANN may take.
const TYPES: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::I32];

/// The shape of both together; dimensions are compared from the last one.
pub(super) fn joined(left: &[i64], right: &[i64]) -> Option<Vec<i64>> {
    let rank = left.len().max(right.len());
    let dim = |dims: &[i64], at: usize| (at + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    let pick = |at| match (dim(left, at), dim(right, at)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    };
    (0..rank).map(pick).collect()
}

/// Where an element of the result comes from.
pub(super) fn source(mut index: usize, result: &[i64], dims: &[i64]) -> usize {
    let (mut at, mut step) = (0, 1);
    for (place, &whole) in result.iter().enumerate().rev() {
        let coordinate = index % whole as usize;
        index /= whole as usize;
        if let Some(&dim) = (place + dims.len()).checked_sub(result.len()).and_then(|place| dims.get(place)) {
            at += if dim == 1 { 0 } else { coordinate * step };
            step *= dim as usize;
        }
    }
    at
}

/// out = `of`(left, right), element by element.
pub(super) fn plan(
    call: &Call,
    [left, right, out]: [Arg; 3],
    of: impl Fn(f64, f64) -> f64 + Send + Sync + 'static,
) -> Result<Plan, Failure> {
    call.element(&left, &TYPES)?;
    for arg in [&left, &right, &out] {
        call.rank(arg, 0..=8)?;
        if arg.element != left.element {
            call.unmodelled(&format!("{} and {} together", left.element.name(), arg.element.name()))?;
        }
    }
    let shape = joined(&left.dims, &right.dims);
    call.require(shape.is_some(), || format!("other: shape {:?} beside {:?}", right.dims, left.dims))?;
    let shape = shape.unwrap_or_default();
    call.shape(&out, &shape)?;
    Plan::new(0, move || {
        let (a, b) = (left.values()?, right.values()?);
        let at = |index| of(a[source(index, &shape, &left.dims)], b[source(index, &shape, &right.dims)]);
        out.write(&(0..out.count()).map(at).collect::<Vec<_>>())
    })
}
