//! What the approximate instructions return here: the f64 result, rounded. Devices differ from it within the error that
//! PTX states for each.

use crate::ir::UnaryOp;

/// The function's value, where it is one of these.
pub(super) fn value(op: UnaryOp, x: f64) -> Option<f64> {
    Some(match op {
        UnaryOp::Reciprocal => 1.0 / x,
        UnaryOp::SquareRoot => x.sqrt(),
        UnaryOp::ReciprocalSquareRoot => 1.0 / x.sqrt(),
        UnaryOp::Sine => x.sin(),
        UnaryOp::Cosine => x.cos(),
        UnaryOp::Logarithm => x.log2(),
        UnaryOp::Exponential => x.exp2(),
        UnaryOp::HyperbolicTangent => x.tanh(),
        _ => return None,
    })
}
