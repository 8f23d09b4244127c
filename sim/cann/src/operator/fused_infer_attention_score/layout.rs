//! Where rows of a head are: in `inputLayout`, or in blocks.

use super::super::call::{Arg, Call};
use crate::runtime::error::Failure;

/// The layouts that are modelled. S is padded, T is all sequences one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Bsh,
    Bsnd,
    Bnsd,
    Tnd,
}

impl Layout {
    pub(super) fn of(call: &Call, name: &str) -> Result<Self, Failure> {
        match name {
            "BSH" => Ok(Self::Bsh),
            "BSND" => Ok(Self::Bsnd),
            "BNSD" => Ok(Self::Bnsd),
            "TND" => Ok(Self::Tnd),
            _ => {
                call.unmodelled(&format!("inputLayout `{name}`"))?;
                Ok(Self::Bsh)
            }
        }
    }

    pub(super) fn rank(self) -> usize {
        if matches!(self, Self::Bsh | Self::Tnd) { 3 } else { 4 }
    }

    /// Batch, padded length and width of a head of a tensor with that many heads. TND: batch 1 of length T.
    pub(super) fn sizes(self, dims: &[i64], heads: i64) -> (i64, i64, i64) {
        match (self, dims) {
            (Self::Bsh, &[b, s, h]) => (b, s, h / heads.max(1)),
            (Self::Bsnd, &[b, s, _, d]) | (Self::Bnsd, &[b, _, s, d]) => (b, s, d),
            (Self::Tnd, &[t, _, d]) => (1, t, d),
            _ => (0, 0, 0),
        }
    }

    /// The heads that the shape says, or those of the argument where it does not.
    pub(super) fn heads(self, dims: &[i64], heads: i64) -> i64 {
        match (self, dims) {
            (Self::Bsnd, &[_, _, n, _]) | (Self::Bnsd, &[_, n, _, _]) | (Self::Tnd, &[_, n, _]) => n,
            _ => heads,
        }
    }

    /// The shape of such a tensor with another width of heads.
    pub(super) fn with_width(self, dims: &[i64], heads: i64, width: i64) -> Vec<i64> {
        let mut dims = dims.to_vec();
        if let Some(last) = dims.last_mut() {
            *last = if self == Self::Bsh { heads * width } else { width };
        }
        dims
    }

    /// The first element of a row: of sequence `b`, at `s` of it (TND: at `s` of all), of head `n`.
    pub(super) fn row(self, arg: &Arg, heads: i64, [b, s, n]: [usize; 3]) -> usize {
        let (_, length, width) = self.sizes(&arg.dims, heads);
        let (heads, length, width) = (heads as usize, length as usize, width as usize);
        match self {
            Self::Bsh | Self::Bsnd => ((b * length + s) * heads + n) * width,
            Self::Bnsd => ((b * heads + n) * length + s) * width,
            Self::Tnd => (s * heads + n) * width,
        }
    }
}

/// Caches of blocks, told apart by their rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paged {
    pub(super) blocks: i64,
    pub(super) block_size: i64,
    pub(super) heads: i64,
    pub(super) width: i64,
    /// [blocks, heads, block size, width]; else [blocks, block size, heads * width].
    heads_first: bool,
}

impl Paged {
    /// Of a key's or a value's shape.
    pub(super) fn of(call: &Call, arg: &Arg, heads: i64, block_size: i64) -> Result<Self, Failure> {
        let found = match arg.dims[..] {
            [blocks, size, h] => (blocks, size, heads, h / heads.max(1), false),
            [blocks, n, size, width] => (blocks, size, n, width, true),
            _ => {
                call.unmodelled(&format!("a cache of {} dimensions", arg.dims.len()))?;
                (0, 0, 0, 0, false)
            }
        };
        let (blocks, size, n, width, heads_first) = found;
        call.tiles(size == block_size, || {
            format!("blockSize {block_size}, the cache {:?} has {size} slots in a block", arg.dims)
        })?;
        call.tiles(n == heads, || format!("numKeyValueHeads {heads}, the cache {:?} has {n}", arg.dims))?;
        call.tiles(heads_first || heads * width <= 65_535, || {
            format!("key: {heads} heads of {width} in a row, limit 65535 together")
        })?;
        Ok(Self { blocks, block_size, heads, width, heads_first })
    }

    /// The first element of a row.
    pub(super) fn row(&self, block: usize, slot: usize, head: usize) -> usize {
        let (size, heads, width) = (self.block_size as usize, self.heads as usize, self.width as usize);
        match self.heads_first {
            true => ((block * heads + head) * size + slot) * width,
            false => ((block * size + slot) * heads + head) * width,
        }
    }
}
