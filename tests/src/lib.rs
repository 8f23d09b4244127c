//! Halite's judge: an f64 oracle and one test body an operator, for any backend.
//!
//! A backend, made here or elsewhere, calls [`parity_tests!`] once for each of its instruction sets or devices and gets
//! one `#[test]` a group of cases. Each operator family has a module with its cases and their body. Beside them:
//!
//! | module | what it is |
//! |---|---|
//! | [`oracle`] | each operator's formula in f64, in plain loops |
//! | [`tolerance`] | the one table of what is close enough, and where each bound comes from |
//! | [`poison`] | memory full of poison round every tensor |
//! | [`random`] | the generator of random cases |
//! | [`judge`] | comparisons |
//! | [`onnx`] | node tests of ONNX, published by others |
//! | [`Report`] | what a backend runs, how near it comes to its bounds, and what is wrong |
//! | [`invariance`] | batch invariance, for backends that claim it |
//!
//! A failure prints its case and one line that repeats it; [`repeat`] is that line. What a backend's `supports` denies
//! must be refused with the typed error, and what it grants must run: the suites go through both.
//!
//! # Known breakages elsewhere
//!
//! Inputs that broke other projects, and where they are judged here.
//!
//! | input | group |
//! |---|---|
//! | more queries than keys; length 0 in a decode batch | `attention/known`, `attention/lengths`, `attention/mixed` |
//! | all logits below -5e4 | `attention/known`, `attention/extremes` |
//! | a row of 3,136 keys, cut at 3,072 | `attention/known`, `attention/lengths` |
//! | kv 9 in blocks of 16, 8 queries, 14 heads on 2 | `attention/known`, `attention/lengths` |
//! | blocks of 1 to 256; lengths round a block's edge in one batch | `attention/known`, `attention/blocks`, `attention/mixed` |
//! | NaN in unused slots, garbage in unused table entries | `attention/known`, every attention case |
//! | groups of 5, 6, 7, 16; head dims 56 to 576 | `attention/known`, `attention/heads` |
//! | a soft-cap over 65 positions where a tile is 64; NaN outside of a window | `attention/known`, `attention/soft_caps`, `attention/windows` |
//! | a sink far above every score | `attention/known`, `attention/sinks` |
//! | merging two empty states; 3,072 + 64 keys merged | `attention/known`, `attention/merge`, `attention/cascade`, `attention/states` |
//! | each sequence equal to itself alone | `invariance/attention` |
//! | slot -1; a slot beyond the cache | `cache/edges`, `cache/errors` |
//! | INT8 keys and values: rounding, scales of reused blocks | `cache/int8`, `attention/int8` |
//! | 255·127, 255·-128, -128·-128, every K from 1 to 130; K of 2,049, 65,793, 131,071 and beyond | `linear/known`, `linear/int8_exact` |
//! | 6·4·3,072 beyond F16 | `linear/known`, `linear/epilogues` |
//! | scales of 2^-126 and 1e-23; zero points at the ends of their type | `linear/known`, `linear/formats`, `linear/group_wise` |
//! | N or K of 1, 15, 17, 1,368, 5,120 with groups of 32, 73,448 | `linear/known`, `linear/edges`, `linear/group_wise` |
//! | an operand at an odd address; an output full of NaN | `linear/known`, every strided layout, every output |
//! | narrowing to I8 and U8 beyond the range | `linear/known`, `linear/formats`, `linear/outputs` |
//! | rows of zeros, of 6e-38, of one value with a zero point or without | `quantize/known`, `quantize/edges` |
//! | caches beyond 2^31 elements | [`beyond_i32::attention`], where memory is taken when touched |
//! | NaN gate logits in one row; equal ones; 512 experts, the best with an id above 255 | `moe/routing_extremes` |
//! | 8 groups of one expert, top-2 inside each group | `moe/routing_groups` |
//! | clamped SwiGLU (alpha 1.702, limit 7, up + 1), gate and up split or interleaved | `activation/glu`, `moe/functions` |
//! | experts without tokens; 1 token in all; 0 tokens; all tokens to one expert; skewed loads | `moe/experts`, `moe/dispatch`, `grouped/edges` |
//! | a local expert range that does not start at 0 | `moe/local_ranges`, `moe/dispatch` |
//! | 64 experts of 4,096 x 14,336: rows beyond 2^31 elements; one layer and one expert beyond them | [`beyond_i32::moe`], [`beyond_i32::weights`] |

mod activation;
mod attention;
mod cache;
mod case;
mod collectives;
mod device;
mod embedding;
mod families;
mod grouped;
pub mod invariance;
pub mod judge;
mod ledger;
mod linear;
mod logits;
mod macros;
mod mla;
mod moe;
mod norm;
pub mod onnx;
pub mod oracle;
pub mod poison;
mod quantize;
pub mod random;
mod report;
mod rope;
mod run;
mod sampling;
pub mod tolerance;
mod top_k;

/// Cases beyond 2^31 elements, outside of the suites: they take gigabytes of address space, and memory where it is touched.
pub mod beyond_i32 {
    pub use crate::{
        attention::beyond_i32 as attention,
        moe::{beyond_i32 as moe, weights_beyond_i32 as weights},
    };
}

pub use case::{Failure, Fault, Group, Shown, Verdict};
pub use report::{GroupReport, Report, Worst};
pub use run::{CASE_VARIABLE, Test, groups, repeat, run_test, run_test_if_able, run_test_of_begun, suite};
