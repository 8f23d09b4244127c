//! Attention by the tensor cores: which, by how many rows a block, compiled with what.

use halite_hal::DType;
use halite_kernels::{
    attention::{AttentionCompute, AttentionSpec, cut::RowTile},
    cache::KvFormat,
};

use crate::{
    compile::{Program, Source},
    launch::Launch,
};

pub(super) static SOURCE: Source = Source::new("attention/mma.cu", include_str!("mma.cu"));

/// Types of queries and results.
const TYPES: [DType; 2] = [DType::F16, DType::Bf16];
/// Columns of values that a warp has room for, of a block of few rows and of one of many.
const COLUMNS: [usize; 2] = [64, 128];
/// Few rows.
const FEW: usize = 16;
/// Threads of a block.
const THREADS: u32 = 128;
/// Positions whose keys and values are in shared memory together.
const STEP: usize = 32;

/// Whether the tensor cores' kernel computes this; it depends on the spec alone, as a row's bits do.
pub(super) fn has(spec: &AttentionSpec) -> bool {
    let (kv, dtype) = (&spec.kv, spec.dtype);
    let stored = match kv.format {
        KvFormat::Float(stored) => stored == dtype,
        KvFormat::Int8PerTokenHead => true,
        _ => false,
    };
    let dims = [kv.head_dim, kv.value_head_dim];
    let fits = dims.into_iter().all(|dim| dim > 0 && dim.is_multiple_of(16) && dim <= 256);
    TYPES.contains(&dtype) && spec.compute == AttentionCompute::Float && stored && fits
}

/// Bytes of dynamic shared memory of a block for up to `rows` rows, as `Room` of step.cuh lays it out.
pub(super) fn shared(spec: &AttentionSpec, rows: usize) -> usize {
    let (keys, values) = (spec.kv.head_dim, spec.kv.value_head_dim);
    let multiplied = STEP * (2 * keys + 16 + 2 * values + 16);
    let steps = if int8(spec) { multiplied + 2 * STEP * (keys + values) } else { 2 * multiplied };
    block_rows(spec, rows) * (2 * keys + 16) + steps
}

/// The rows of a block, for steps whose sequences have up to `longest` tokens.
pub(super) fn fitting(spec: &AttentionSpec, longest: usize) -> RowTile {
    let few = longest.max(1).saturating_mul(spec.group()) <= FEW;
    RowTile::new(spec, if few { FEW } else { many(spec) }, longest)
}

/// The launch of a source like this one, but for its parameters.
pub(super) fn start(
    operator: &'static str,
    source: &'static Source,
    spec: &AttentionSpec,
    rows: usize,
) -> Launch {
    let columns = COLUMNS[usize::from(rows > FEW)];
    of(operator, source, spec.dtype, int8(spec), columns).block(THREADS).shared(shared(spec, rows))
}

pub(super) fn programs() -> Vec<Program> {
    let of = |dtype, int8| COLUMNS.map(|columns| of("attention", &SOURCE, dtype, int8, columns).program());
    TYPES.into_iter().flat_map(|dtype| [of(dtype, false), of(dtype, true)]).flatten().collect()
}

fn of(operator: &'static str, source: &'static Source, dtype: DType, int8: bool, columns: usize) -> Launch {
    let launch = Launch::new(operator, source, "attend_mma").element("ELEMENT", dtype);
    launch.constant("INT8", int8.into()).constant("COLUMNS", columns)
}

fn int8(spec: &AttentionSpec) -> bool {
    spec.kv.format == KvFormat::Int8PerTokenHead
}

/// Rows of a block of many: a warp has sixteen, and two share them where it has no room for all columns.
fn many(spec: &AttentionSpec) -> usize {
    if spec.kv.value_head_dim <= COLUMNS[1] { 64 } else { 32 }
}

/// Rows of queries in shared memory.
fn block_rows(spec: &AttentionSpec, rows: usize) -> usize {
    if rows <= FEW { FEW } else { many(spec) }
}

#[cfg(test)]
mod tests {
    use halite_kernels::{attention::ValueProducts, cache::KvSpec};

    use super::{super::shape::SHARED, *};

    fn spec(group: usize, head_dim: usize, dtype: DType) -> AttentionSpec {
        AttentionSpec::causal(group, KvSpec::new(1, 1, head_dim).with_dtype(dtype)).with_dtype(dtype)
    }

    #[test]
    fn the_tensor_cores_have_types_of_16_bits_and_dims_of_sixteens() {
        for dtype in TYPES {
            for dim in [16, 64, 80, 128, 192, 256] {
                assert!(has(&spec(4, dim, dtype)), "{dim}");
                let int8 = KvSpec::new(1, 1, dim).with_format(KvFormat::Int8PerTokenHead);
                assert!(has(&AttentionSpec::causal(4, int8.clone()).with_dtype(dtype)), "{dim}");
                let compute = AttentionCompute::Int8 { values: ValueProducts::Float };
                assert!(
                    !has(&AttentionSpec::causal(4, int8).with_dtype(dtype).with_compute(compute)),
                    "{dim}"
                );
            }
            for dim in [8, 72, 272, 576] {
                assert!(!has(&spec(4, dim, dtype)), "{dim}");
            }
            assert!(!has(&spec(4, 64, dtype).with_dtype(DType::F32)));
            assert!(!has(&spec(4, 64, DType::F32).with_dtype(dtype)));
        }
        assert!(!has(&spec(4, 64, DType::F16).with_dtype(DType::Bf16)));
    }

    #[test]
    fn few_rows_and_many_fit_shared_memory() {
        let shape = |group, head_dim, longest| {
            let tile = fitting(&spec(group, head_dim, DType::Bf16), longest);
            (tile.tokens, tile.heads)
        };
        assert_eq!(shape(4, 128, 1), (1, 4), "decode");
        assert_eq!(shape(16, 128, 1), (1, 16));
        assert_eq!(shape(4, 128, 4), (4, 4), "drafts");
        assert_eq!(shape(4, 128, 5), (8, 4));
        assert_eq!(shape(4, 128, 900), (16, 4), "prefill");
        assert_eq!(shape(4, 256, 900), (8, 4));
        assert_eq!(shape(17, 128, 1), (1, 17));
        assert_eq!(shape(1, 128, usize::MAX), (64, 1));
        for dim in [16, 64, 128, 192, 256] {
            for rows in [1, 16, 17, 64] {
                let float = spec(4, dim, DType::Bf16);
                let int8 = KvSpec::new(1, 1, dim).with_format(KvFormat::Int8PerTokenHead);
                let int8 = AttentionSpec::causal(4, int8).with_dtype(DType::Bf16);
                assert!(shared(&float, rows) <= SHARED && shared(&int8, rows) <= SHARED, "{dim}, {rows}");
            }
        }
    }
}
