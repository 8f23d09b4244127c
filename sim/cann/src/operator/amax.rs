//! `aclnnAmax`: the greatest of each slice.

use super::call::{Plan, phase_one};
use super::phase_two;
use super::unary::{FLOATS, either};
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnAmax.md, 2026-08-22";

/// The dimensions of `dim` become 1, or are gone where `keepDim` is false. What a NaN does the document does not say: it is
/// the greatest, or is passed over.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnAmaxGetWorkspaceSize(
    this: Handle,
    dim: Handle,
    keep_dim: bool,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnAmax", DOCUMENT, workspace, executor, |call| {
        let [this, out] = [call.tensor("self", this)?, call.tensor("out", out)?];
        let dims = call.integers("dim", dim)?.unwrap_or_default();
        call.element(&this, &FLOATS)?;
        call.element(&out, &[this.element])?;
        call.rank(&this, 1..=8)?;
        let rank = this.dims.len() as i64;
        let known = dims.iter().all(|dim| (-rank..rank).contains(dim));
        call.require(known, || format!("dim {dims:?}, limit {} to {}", -rank, rank - 1))?;
        if !keep_dim || dims.is_empty() {
            call.unmodelled(&format!("dim {dims:?}, keepDim {keep_dim}"))?;
        }
        let mut kept = this.dims.clone();
        dims.iter().for_each(|dim| kept[dim.rem_euclid(rank) as usize] = 1);
        call.shape(&out, &kept)?;
        call.not_empty(&[&this])?;
        Plan::new(0, move || {
            let mut greatest = vec![f64::NEG_INFINITY; out.count()];
            for (index, value) in this.values()?.into_iter().enumerate() {
                let place = &mut greatest[slice(index, &this.dims, &kept)];
                let nan = value.is_nan() && either();
                *place = if nan || place.is_nan() { f64::NAN } else { place.max(value) };
            }
            out.write(&greatest)
        })
    })
}

phase_two!(aclnnAmax);

/// Which result an element belongs to.
fn slice(mut index: usize, dims: &[i64], kept: &[i64]) -> usize {
    let (mut at, mut step) = (0, 1);
    for (&whole, &kept) in dims.iter().zip(kept).rev() {
        at += if kept == 1 { 0 } else { index % whole as usize * step };
        index /= whole as usize;
        step *= kept as usize;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::array::{aclCreateIntArray, aclDestroyIntArray};
    use crate::element::Element;
    use crate::testing::{Session, message};

    fn amax(session: &Session, dims: &[i64], kept: &[i64]) -> Vec<f64> {
        let x = session.tensor(&[2, 3], Element::F32, &[1.0, 5.0, -2.0, -4.0, -3.0, -9.0]);
        let out = session.empty(kept, Element::F32);
        let dims = aclCreateIntArray(dims.as_ptr(), dims.len() as u64);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnAmaxGetWorkspaceSize(x, dims, true, out, size, executor)
        };
        session.run(first, aclnnAmax).unwrap();
        assert_eq!(aclDestroyIntArray(dims), 0);
        session.read(out)
    }

    #[test]
    fn rows_columns_and_all() {
        let session = Session::new();
        assert_eq!(amax(&session, &[1], &[2, 1]), [5.0, -3.0]);
        assert_eq!(amax(&session, &[0], &[1, 3]), [1.0, 5.0, -2.0]);
        assert_eq!(amax(&session, &[0, -1], &[1, 1]), [5.0]);
    }

    #[test]
    fn other_dimensions_are_refused() {
        let session = Session::new();
        let x = session.empty(&[2, 3], Element::F32);
        let dims = aclCreateIntArray([2].as_ptr(), 1);
        assert_eq!(aclnnAmaxGetWorkspaceSize(x, dims, true, x, Some(&mut 0), Some(&mut 0)), 161_002);
        assert!(message().contains("dim [2], limit -2 to 1"), "{}", message());
        assert_eq!(aclDestroyIntArray(dims), 0);
    }
}
