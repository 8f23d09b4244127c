//! A function of one element, as `aclnnAbs` and its like take them; and what the documents leave open.

use std::sync::atomic::{AtomicU32, Ordering};

use super::call::{Arg, Call, Plan};
use crate::element::Element;
use crate::runtime::error::Failure;

/// The types that are modelled; others CANN may take.
pub(super) const FLOATS: [Element; 3] = [Element::F32, Element::F16, Element::Bf16];

/// out = `of`(this), element by element: floats of one type and shape.
pub(super) fn plan(
    call: &Call,
    args: [Arg; 2],
    of: impl Fn(f64) -> f64 + Send + Sync + 'static,
) -> Result<Plan, Failure> {
    plan_of(call, &FLOATS, args, of)
}

/// The same, of these types.
pub(super) fn plan_of(
    call: &Call,
    types: &[Element],
    [this, out]: [Arg; 2],
    of: impl Fn(f64) -> f64 + Send + Sync + 'static,
) -> Result<Plan, Failure> {
    call.element(&this, types)?;
    call.element(&out, &[this.element])?;
    call.rank(&this, 0..=8)?;
    call.shape(&out, &this.dims)?;
    Plan::new(0, move || out.write(&this.values()?.into_iter().map(&of).collect::<Vec<_>>()))
}

/// True and false in turns, for what no document says.
pub(super) fn either() -> bool {
    static TURNS: AtomicU32 = AtomicU32::new(0);
    TURNS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
}
