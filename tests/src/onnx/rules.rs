//! What the contracts do not express: rules over operator, attributes, inputs and element types, each with its reason.
//! Never over the names of files.

use super::fixture::Fixture;

/// A form of one operator that is not run.
struct Rule {
    op: &'static str,
    /// What the contracts do not have, or why the published answer cannot judge.
    reason: &'static str,
    applies: fn(&Fixture) -> bool,
}

/// `input.3` of `Attention`.
const MASK: &str = "input.3";
const PAST_KEY: &str = "input.4";

const RULES: &[Rule] = &[
    Rule {
        op: "Attention",
        reason: "a mask given as a tensor; masks are rules over positions (`Mask`)",
        applies: |fixture| fixture.has(MASK),
    },
    Rule {
        op: "Attention",
        reason: "causal with a past: ONNX aligns the mask to the first key, a cache to the last",
        applies: |fixture| fixture.has(PAST_KEY) && fixture.attribute("is_causal") == Some(1.0),
    },
    Rule {
        op: "Attention",
        reason: "computed in F16 throughout: its own rounding is larger than what it could show",
        applies: |fixture| fixture.dtype("input.0") != Some("F32"),
    },
    Rule {
        op: "Attention",
        reason: "a softmax in another precision than F32",
        applies: |fixture| fixture.attribute("softmax_precision").is_some_and(|dtype| dtype != 1.0),
    },
    Rule {
        op: "MatMulInteger",
        reason: "vectors, or matrices that are broadcast against each other",
        applies: |fixture| !pairs_of_matrices(fixture, "input.0", "input.1"),
    },
    Rule {
        op: "QLinearMatMul",
        reason: "vectors, or matrices that are broadcast against each other",
        applies: |fixture| !pairs_of_matrices(fixture, "input.0", "input.3"),
    },
    Rule {
        op: "QLinearMatMul",
        reason: "I8: the published answers wrap around where ONNX's own text, and the contract, saturate",
        applies: |fixture| fixture.dtype("output.0") == Some("I8"),
    },
    Rule {
        op: "RMSNormalization",
        reason: "element types other than F32, whose published answers were rounded in between",
        applies: |fixture| fixture.dtype("input.0") != Some("F32"),
    },
    Rule {
        op: "RotaryEmbedding",
        reason: "element types other than F32, whose published answers were rounded in between",
        applies: |fixture| fixture.dtype("input.0") != Some("F32"),
    },
    Rule {
        op: "Softmax",
        reason: "before opset 13 everything from the axis on is one row",
        applies: |fixture| fixture.opset < 13,
    },
    Rule {
        op: "Softmax",
        reason: "element types other than F32, whose published answers were rounded in between",
        applies: |fixture| fixture.dtype("input.0") != Some("F32"),
    },
    Rule {
        op: "TensorScatter",
        reason: "another axis than that of the tokens",
        applies: |fixture| {
            let rank = fixture.rank("input.0").unwrap_or(0) as f64;
            fixture.attribute("axis").is_some_and(|axis| axis != -2.0 && axis != rank - 2.0)
        },
    },
    Rule {
        op: "TensorScatter",
        reason: "element types that no cache stores",
        applies: |fixture| fixture.dtype("input.0") != Some("F32"),
    },
    Rule {
        op: "TopK",
        reason: "unsorted: the order of the answer is not stated",
        applies: |fixture| fixture.attribute("sorted") == Some(0.0),
    },
];

/// Both operands with the same number of dimensions, two at least.
fn pairs_of_matrices(fixture: &Fixture, left: &str, right: &str) -> bool {
    let [left, right] = [left, right].map(|tensor| fixture.rank(tensor).unwrap_or(0));
    left == right && left >= 2
}

/// Operators that some family computes; others are none of Halite's.
const JUDGED: &[&str] = &[
    "Attention",
    "DynamicQuantizeLinear",
    "MatMulInteger",
    "QLinearMatMul",
    "RMSNormalization",
    "RotaryEmbedding",
    "Softmax",
    "TensorScatter",
    "TopK",
];

/// Why this fixture is not run, if it is not.
pub(super) fn excluded(fixture: &Fixture) -> Option<&'static str> {
    if !JUDGED.contains(&&*fixture.op) {
        return Some("no operator family computes this by itself");
    }
    RULES.iter().find(|rule| rule.op == fixture.op && (rule.applies)(fixture)).map(|rule| rule.reason)
}
