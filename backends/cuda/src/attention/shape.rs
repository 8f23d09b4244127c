//! How many query rows a block of threads has: as many as shared memory holds.

use halite_kernels::attention::{AttentionCompute, AttentionSpec, cut::RowTile};

use super::mma;

/// Rows that attend.cu is compiled for: a thread has scores of a fourth of them.
pub(super) const ROOMS: [usize; 2] = [4, 16];
/// Bytes of shared memory that every GPU of compute capability 8.0 or later has, less what is not counted here.
pub(super) const SHARED: usize = (99 << 10) - 2048;
/// Words of the stage, as stage.cuh has it.
const STAGE: usize = 64 * 68;

/// Bytes of dynamic shared memory for so many rows, as attend.cu lays it out.
pub(super) fn shared(spec: &AttentionSpec, rows: usize) -> usize {
    let four = |elements: usize| elements.div_ceil(4).saturating_mul(4);
    let queries = match spec.compute {
        AttentionCompute::Int8 { .. } => four(spec.kv.head_dim.div_ceil(4)),
        _ => four(spec.kv.head_dim),
    };
    let row = queries.saturating_add(four(spec.kv.value_head_dim)).saturating_add(spec.kv_split);
    let words =
        rows.saturating_mul(row).saturating_add(STAGE).saturating_add(spec.kv_split.saturating_mul(2));
    words.saturating_mul(4)
}

/// The rows of a block, for steps whose sequences have up to `longest` tokens; none where not even one row fits.
pub(super) fn fitting(spec: &AttentionSpec, longest: usize) -> Option<RowTile> {
    if mma::has(spec) {
        return Some(mma::fitting(spec, longest));
    }
    let rows = [16, 8, 4, 2, 1].into_iter().find(|&rows| shared(spec, rows) <= SHARED)?;
    Some(RowTile::new(spec, rows, longest))
}

/// What attend.cu is compiled for, to have room for a tile.
pub(super) fn room(tile: RowTile) -> usize {
    ROOMS.into_iter().find(|&room| tile.rows() <= room).unwrap_or(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::cache::KvSpec;

    fn shape(group: usize, head_dim: usize, split: usize, longest: usize) -> Option<(usize, usize, usize)> {
        let spec = AttentionSpec::causal(group, KvSpec::new(1, 1, head_dim)).with_kv_split(split);
        fitting(&spec, longest).map(|tile| (tile.tokens, tile.heads, room(tile)))
    }

    #[test]
    fn rows_are_what_memory_holds() {
        assert_eq!(shape(1, 128, 256, 1), Some((1, 1, 4)), "decode");
        assert_eq!(shape(4, 128, 256, 1), Some((1, 4, 4)));
        assert_eq!(shape(6, 128, 256, 1), Some((1, 6, 16)));
        assert_eq!(shape(4, 128, 256, 3), Some((4, 4, 16)), "prefill");
        assert_eq!(shape(1, 128, 256, 900), Some((16, 1, 16)));
        assert_eq!(shape(17, 128, 256, 900), Some((1, 9, 16)), "seventeen heads in two tiles");
        assert_eq!(shape(128, 576, 256, 1), Some((1, 8, 16)), "latents");
        assert_eq!(shape(1, 128, 4096, 900), Some((2, 1, 4)));
        assert_eq!(shape(1, 16_384, 256, 900), None);
        assert_eq!(shape(1, usize::MAX, 256, 1), None);
    }
}
