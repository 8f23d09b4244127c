//! Evidence from outside: the oracle, and the CPU backend in each tier, against node tests of ONNX.

mod attention;
mod fixture;
mod integers;
mod rows;

use fixture::{Fixture, fixtures};
use halite_cpu::{Cpu, Options, Tier};
use halite_parity::{Verdict, tolerance::Bound};

/// Published values, themselves F32, with twice the oracle's bound: theirs and ours.
fn around(published: &[f64], expected: &[Bound]) -> Vec<Bound> {
    let both = published.iter().zip(expected);
    both.map(|(&value, expected)| Bound { value, error: 2.0 * expected.error }).collect()
}

/// The oracle on each fixture, then the CPU in each tier.
fn check(
    prefix: &str,
    count: usize,
    oracle: fn(&Fixture) -> Verdict,
    device: fn(&Cpu, &Fixture) -> Verdict,
) -> Verdict {
    for fixture in fixtures(prefix, count)? {
        oracle(&fixture)?;
        for tier in Tier::available() {
            device(&Cpu::new(Options::default().tier(tier).threads(2))?, &fixture)?;
        }
    }
    Ok(())
}

#[test]
fn attention() -> Verdict {
    check("attention_", 20, attention::oracle, attention::device)
}

#[test]
fn rms_normalization() -> Verdict {
    check("rms_normalization_", 14, rows::rms_oracle, rows::rms_device)
}

#[test]
fn rotary_embedding() -> Verdict {
    check("rotary_embedding_", 5, rows::rope_oracle, |_, _| Ok(()))
}

#[test]
fn softmax() -> Verdict {
    check("softmax_", 4, rows::softmax_oracle, rows::softmax_device)
}

#[test]
fn top_k() -> Verdict {
    check("top_k", 5, rows::top_k_oracle, rows::top_k_device)
}

#[test]
fn matmul_integer() -> Verdict {
    check("matmulinteger", 1, integers::matmul_oracle, integers::matmul_device)
}

#[test]
fn tensor_scatter() -> Verdict {
    check("tensorscatter", 2, |_| Ok(()), integers::scatter)
}
