//! What a cache is made of, and how large it is.

use super::CHECK;
use halite_hal::{DType, Error, Result};
use std::fmt;

/// How a cache stores keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvFormat {
    /// Rounded to a floating-point type: F32, F16 or BF16.
    Float(DType),
    /// INT8 with an F32 scale for each token slot and KV head, keys and values each with scales of their own: the key
    /// (or value) of a token in a head is one row of [`quantize`](crate::quantize), to the same formula. What is read is
    /// `f32(q) · scale`, one F32 product.
    Int8PerTokenHead,
}

impl KvFormat {
    /// The type of one stored element.
    pub fn element(self) -> DType {
        match self {
            KvFormat::Float(dtype) => dtype,
            KvFormat::Int8PerTokenHead => DType::I8,
        }
    }

    /// Bytes beside the elements of one key, or of one value: its scale.
    pub fn scale_bytes(self) -> usize {
        match self {
            KvFormat::Float(_) => 0,
            KvFormat::Int8PerTokenHead => DType::F32.size(),
        }
    }
}

/// As it is named on command lines and in reports: `f32`, `f16`, `bf16`, `int8`.
impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvFormat::Float(dtype) => f.write_str(&dtype.to_string().to_lowercase()),
            KvFormat::Int8PerTokenHead => f.write_str("int8"),
        }
    }
}

/// Where a cache keeps the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvValues {
    /// Beside the keys.
    Own,
    /// Nowhere else: a value is the first [`KvSpec::value_head_dim`] elements of its key. The latent cache of multi-head
    /// latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1) is one, see [`KvSpec::latent`].
    KeyPrefix,
}

/// The shape of a KV cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KvSpec {
    /// Layers that share the block table.
    pub layers: usize,
    /// Key and value heads a layer.
    pub kv_heads: usize,
    /// Elements of a key.
    pub head_dim: usize,
    /// Elements of a value.
    pub value_head_dim: usize,
    /// Token slots of a block.
    pub block_size: usize,
    /// How keys and values are stored.
    pub format: KvFormat,
    /// Where values are stored.
    pub values: KvValues,
}

impl KvSpec {
    /// A cache of BF16 keys and values in blocks of 16 slots.
    pub fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Self {
        let (format, values) = (KvFormat::Float(DType::Bf16), KvValues::Own);
        KvSpec { layers, kv_heads, head_dim, value_head_dim: head_dim, block_size: 16, format, values }
    }

    /// A cache of BF16 latents: one head, whose keys are the `kv_lora_rank` elements of a token's compressed latent and
    /// then the `rope_dim` of its rotated key, and whose values are the latents again, stored once.
    pub fn latent(layers: usize, kv_lora_rank: usize, rope_dim: usize) -> Self {
        let head_dim = kv_lora_rank.saturating_add(rope_dim);
        KvSpec {
            value_head_dim: kv_lora_rank,
            values: KvValues::KeyPrefix,
            ..KvSpec::new(layers, 1, head_dim)
        }
    }

    /// Values of another size than keys.
    pub fn with_value_head_dim(mut self, value_head_dim: usize) -> Self {
        self.value_head_dim = value_head_dim;
        self
    }

    /// Another block size.
    pub fn with_block_size(mut self, block_size: usize) -> Self {
        self.block_size = block_size;
        self
    }

    /// Keys and values stored as floats of this type.
    pub fn with_dtype(self, dtype: DType) -> Self {
        self.with_format(KvFormat::Float(dtype))
    }

    /// Another storage format.
    pub fn with_format(mut self, format: KvFormat) -> Self {
        self.format = format;
        self
    }

    /// Elements that a value takes beside its key: none where it is part of it.
    pub fn stored_value_dim(&self) -> usize {
        match self.values {
            KvValues::Own => self.value_head_dim,
            KvValues::KeyPrefix => 0,
        }
    }

    /// Bytes of one block, all layers, keys and values with their scales, in the canonical layout.
    ///
    /// # Errors
    /// A size of zero, or a block beyond 2^63 bytes; values that are the first elements of keys, and longer than those
    /// or not floats.
    pub fn block_bytes(&self) -> Result<u64> {
        for (argument, size) in [
            ("layers", self.layers),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("value_head_dim", self.value_head_dim),
            ("block_size", self.block_size),
        ] {
            CHECK.positive(argument, size)?;
        }
        let value = match self.values {
            KvValues::Own => self.row_bytes(self.value_head_dim),
            KvValues::KeyPrefix => {
                let (value, key) = (self.value_head_dim, self.head_dim);
                CHECK.that(
                    value <= key,
                    "value_head_dim",
                    format!("at most the key's {key} elements"),
                    value,
                )?;
                // One scale for both would quantise values by the largest element of the rest of the key.
                let float = matches!(self.format, KvFormat::Float(_));
                CHECK.that(float, "format", "floats where values are part of keys", self.format)?;
                Some(0)
            }
        };
        let row = self.row_bytes(self.head_dim).zip(value);
        let row = row.and_then(|(key, value)| key.checked_add(value));
        let rows = [self.kv_heads, self.block_size, self.layers];
        let bytes = row.and_then(|row| rows.iter().try_fold(row, |product, &size| product.checked_mul(size)));
        fits(bytes.map(|bytes| bytes as u64))
    }

    /// Bytes of what one layer of a block has of each kind, in the order of the canonical layout: its keys, their scales, its
    /// values, and theirs. Of a spec whose [`KvSpec::block_bytes`] are told; 0 of what the cache does not have.
    pub fn record_bytes(&self) -> [usize; 4] {
        let rows = self.block_size * self.kv_heads;
        let (element, scale) = (self.format.element().size(), self.format.scale_bytes());
        [self.head_dim * element, scale, self.stored_value_dim() * element, scale].map(|row| rows * row)
    }

    /// Bytes of one key or value of `dim` elements, its scale included.
    fn row_bytes(&self, dim: usize) -> Option<usize> {
        dim.checked_mul(self.format.element().size())?.checked_add(self.format.scale_bytes())
    }

    /// Bytes of `blocks` blocks.
    ///
    /// # Errors
    /// As [`KvSpec::block_bytes`], or more than 2^63 bytes in all, or more than 2^31 blocks.
    pub fn cache_bytes(&self, blocks: usize) -> Result<u64> {
        CHECK.limit("blocks", blocks, i32::MAX as usize)?;
        fits(self.block_bytes()?.checked_mul(blocks as u64))
    }
}

/// A size in bytes that did not overflow and that offsets can reach.
fn fits(bytes: Option<u64>) -> Result<u64> {
    bytes.filter(|&bytes| bytes <= i64::MAX as u64).ok_or(Error::Limit {
        operator: CHECK.0,
        argument: "bytes",
        got: bytes.unwrap_or(u64::MAX),
        limit: i64::MAX as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_are_refused() {
        let spec = KvSpec::new(32, 32, 128);
        assert_eq!(spec.block_bytes(), Ok(32 * 16 * 32 * 256 * 2));
        assert_eq!(
            spec.cache_bytes(64_000),
            Ok(64_000 * 32 * 16 * 32 * 256 * 2),
            "beyond 2^31 elements is fine"
        );
        let int8 = spec.clone().with_value_head_dim(64).with_format(KvFormat::Int8PerTokenHead);
        assert_eq!(int8.block_bytes(), Ok(32 * 16 * 32 * (128 + 4 + 64 + 4)), "a scale a key and a value");
        assert!(matches!(spec.cache_bytes(1 << 31), Err(Error::Limit { argument: "blocks", .. })));
        for huge in [
            KvSpec { head_dim: usize::MAX, ..spec.clone() },
            KvSpec { layers: usize::MAX, ..spec.clone() },
            KvSpec { block_size: 1 << 60, ..spec.clone() },
        ] {
            assert!(matches!(huge.block_bytes(), Err(Error::Limit { argument: "bytes", .. })), "{huge:?}");
        }
        assert!(matches!(
            KvSpec::new(1, 0, 64).block_bytes(),
            Err(Error::Argument { argument: "kv_heads", .. })
        ));
    }

    #[test]
    fn records_of_all_layers_are_a_block() {
        let int8 = KvSpec::new(3, 2, 5).with_value_head_dim(7).with_format(KvFormat::Int8PerTokenHead);
        assert_eq!(int8.record_bytes(), [16 * 2 * 5, 16 * 2 * 4, 16 * 2 * 7, 16 * 2 * 4]);
        assert_eq!(KvSpec::latent(3, 8, 4).record_bytes(), [16 * 12 * 2, 0, 0, 0]);
        for spec in [int8, KvSpec::new(3, 2, 5).with_block_size(1), KvSpec::latent(3, 8, 4)] {
            let records: usize = spec.record_bytes().iter().sum();
            assert_eq!(spec.block_bytes(), Ok((3 * records) as u64), "{spec:?}");
        }
    }

    #[test]
    fn latents_are_stored_once() {
        let spec = KvSpec::latent(61, 512, 64);
        assert_eq!((spec.kv_heads, spec.head_dim, spec.value_head_dim), (1, 576, 512));
        assert_eq!(spec.block_bytes(), Ok(61 * 16 * 576 * 2));
        for (bad, argument) in [
            (KvSpec { value_head_dim: 577, ..spec.clone() }, "value_head_dim"),
            (spec.clone().with_format(KvFormat::Int8PerTokenHead), "format"),
            (KvSpec::latent(1, 0, 64), "value_head_dim"),
        ] {
            let error = bad.block_bytes().unwrap_err();
            assert!(
                matches!(error, Error::Argument { argument: found, .. } if found == argument),
                "{bad:?}: {error}"
            );
        }
        let huge = KvSpec::latent(1, usize::MAX, usize::MAX).block_bytes();
        assert!(matches!(huge, Err(Error::Limit { argument: "bytes", .. })), "{huge:?}");
    }
}
