//! What fills a task's parts, and what arithmetic goes over them: by the cache's form and the spec alone, so that a row has
//! the same bits in every batch.

use halite_hal::DType;
use halite_kernels::{
    attention::{AttentionCompute, AttentionSpec, ValueProducts},
    cache::{KvFormat, KvValues},
};

/// The source of a task's keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// [`LatentLayer`](super::latent::LatentLayer): values are the first elements of keys of this type.
    Latent(DType),
    /// [`Int8Layer`](super::source::Int8Layer): bytes stay bytes.
    Bytes,
    /// [`Layer`](super::source::Layer): widened from this format.
    Widened(KvFormat),
}

impl SourceKind {
    pub(super) fn of(spec: &AttentionSpec) -> Self {
        match (spec.kv.values, spec.compute) {
            (KvValues::KeyPrefix, _) => SourceKind::Latent(spec.kv.format.element()),
            (_, AttentionCompute::Int8 { .. }) => SourceKind::Bytes,
            _ => SourceKind::Widened(spec.kv.format),
        }
    }
}

/// What is a sum of bytes, in a part's layout and in its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Products {
    /// Nothing.
    Floats,
    /// Scores.
    Int8Scores,
    /// Scores and weighted values.
    Int8,
}

impl Products {
    pub(super) const fn of(compute: AttentionCompute) -> Self {
        match compute {
            AttentionCompute::Int8 { values: ValueProducts::Int8 } => Products::Int8,
            AttentionCompute::Int8 { .. } => Products::Int8Scores,
            _ => Products::Floats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::cache::KvSpec;
    use std::collections::HashSet;

    const FLOAT: AttentionCompute = AttentionCompute::Float;
    const SCORES: AttentionCompute = AttentionCompute::Int8 { values: ValueProducts::Float };
    const BOTH: AttentionCompute = AttentionCompute::Int8 { values: ValueProducts::Int8 };

    #[test]
    fn cache_and_arithmetic_choose_the_source() {
        let floats = |dtype| KvSpec::new(1, 2, 64).with_dtype(dtype);
        let int8 = || KvSpec::new(1, 2, 64).with_format(KvFormat::Int8PerTokenHead);
        let latent = |dtype| KvSpec::latent(1, 512, 64).with_dtype(dtype);
        let widened = |dtype| SourceKind::Widened(KvFormat::Float(dtype));
        let cases = [
            (floats(DType::F32), FLOAT, widened(DType::F32)),
            (floats(DType::F16), FLOAT, widened(DType::F16)),
            (floats(DType::Bf16), FLOAT, widened(DType::Bf16)),
            // INT8 is widened unless the arithmetic is asked for.
            (int8(), FLOAT, SourceKind::Widened(KvFormat::Int8PerTokenHead)),
            (int8(), SCORES, SourceKind::Bytes),
            (int8(), BOTH, SourceKind::Bytes),
            (latent(DType::F32), FLOAT, SourceKind::Latent(DType::F32)),
            (latent(DType::F16), FLOAT, SourceKind::Latent(DType::F16)),
            (latent(DType::Bf16), FLOAT, SourceKind::Latent(DType::Bf16)),
        ];
        for (kv, compute, expected) in &cases {
            let spec = AttentionSpec::causal(4, kv.clone()).with_compute(*compute);
            assert_eq!(spec.check(), Ok(()));
            assert_eq!(SourceKind::of(&spec), *expected, "{spec:?}");
        }
        // Of each kind, every type that a cache has.
        let chosen: HashSet<String> = cases.iter().map(|case| format!("{:?}", case.2)).collect();
        assert_eq!(chosen.len(), 3 + 1 + 1 + 3);
    }

    #[test]
    fn arithmetic_is_as_asked_for() {
        for (compute, expected) in
            [(FLOAT, Products::Floats), (SCORES, Products::Int8Scores), (BOTH, Products::Int8)]
        {
            assert_eq!(Products::of(compute), expected);
        }
    }
}
