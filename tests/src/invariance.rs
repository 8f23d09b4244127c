//! Batch invariance (rule 8 of docs/numerics.md), for backends that claim it: a row has the same bits alone, in any
//! batch, and in any chunks.

mod activation;
mod attention;
mod embedding;
mod linear;
mod logits;
mod lora;
mod mla;
mod moe;
mod norm;
mod quantize;
mod rope;
mod rows;
mod sampling;
mod top_k;

use crate::{
    case::{Failure, Fault, Group, Verdict},
    judge::same_bits,
};
use halite_kernels::Backend;

/// All groups of this family.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::bodies("invariance", "linear", linear::bodies()),
        Group::bodies("invariance", "rows", rows::bodies()),
        Group::bodies("invariance", "attention", attention::bodies()),
        Group::bodies("invariance", "mla", mla::bodies()),
        Group::bodies("invariance", "moe", moe::bodies()),
        Group::bodies("invariance", "quantize", quantize::bodies()),
        Group::bodies(
            "invariance",
            "letter",
            vec![
                ("quantisation is the documented F32 formula", quantize::letter),
                ("so is quantisation with zero points", quantize::asymmetric_letter),
                ("norms and activations that quantise give the bits of two calls", quantize::two_calls),
                ("so is the cache's, in INT8", crate::cache::int8::letter),
                ("ranks are added up in ascending order", crate::collectives::in_order),
            ],
        ),
    ]
}

/// Runs the family.
///
/// # Errors
/// The first failure.
pub fn suite<B: Backend>(device: &B) -> Result<(), Failure> {
    groups::<B>().iter().try_for_each(|group| group.run_all(device))
}

/// Two devices that must give the same bits: the same backend and tier with other numbers of threads.
///
/// # Errors
/// The first operator whose bits differ.
pub fn across<B: Backend>(left: &B, right: &B) -> Verdict {
    let (left, right) = (prints(left)?, prints(right)?);
    left.iter().zip(&right).try_for_each(|((what, left), (_, right))| same_bits(what, left, right))
}

/// The results of one call of each operator that reduces, as bytes, with what each is.
fn prints<B: Backend>(device: &B) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let mut prints = linear::prints(device)?;
    prints.extend(attention::prints(device)?);
    prints.extend(mla::prints(device)?);
    prints.extend(moe::prints(device)?);
    Ok(prints)
}
