//! No probe of arithmetic is written for this architecture.

type Work = fn() -> f64;

pub(super) fn int8() -> Option<Work> {
    None
}

pub(super) fn bf16() -> Option<Work> {
    None
}

pub(super) fn f32() -> Option<Work> {
    None
}
