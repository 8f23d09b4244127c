//! Rows of a table by token id.

use halite_hal::Result;
use halite_kernels::{
    Support,
    embedding::{EmbeddingArgs, EmbeddingSpec, EmbeddingTable, TableFormat},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::{Launch, float_type},
    rows::Rows,
    stream::CudaStream,
    support::{float_only, unsupported},
};

static SOURCE: Source = Source::new("embedding/look_up.cu", include_str!("look_up.cu"));

/// Threads of a block.
const THREADS: usize = 256;

/// The number that the kernel knows a format by; none of one that there is no kernel for.
fn code(format: TableFormat) -> Option<i32> {
    match format {
        TableFormat::Float(dtype) if dtype.is_float() => Some(float_type(dtype)),
        TableFormat::Int8PerRow => Some(3),
        TableFormat::Int4PerGroup { .. } => Some(4),
        TableFormat::Q4_0 => Some(5),
        TableFormat::Q4_1 => Some(6),
        TableFormat::Q4K => Some(7),
        _ => None,
    }
}

pub(super) fn supports(spec: &EmbeddingSpec) -> Support {
    match code(spec.table) {
        Some(_) => float_only(spec.output),
        None => Support::No(format!("tables of {:?}", spec.table)),
    }
}

fn base() -> Launch {
    Launch::new("embedding", &SOURCE, "look_up")
}

/// The program of all tables.
pub(super) fn programs() -> Vec<Program> {
    vec![base().program()]
}

/// Looks rows up.
pub(super) fn look_up(stream: &mut CudaStream, args: &EmbeddingArgs<'_, Cuda>) -> Result<()> {
    let (table, scales) = match &args.table {
        EmbeddingTable::Float(table) | EmbeddingTable::Blocks(table) => (*table, None),
        EmbeddingTable::Int8PerRow { q, scales } => (*q, Some(*scales)),
        EmbeddingTable::Int4PerGroup { codes, scales } => (*codes, Some(*scales)),
        other => return Err(unsupported("embedding", "this form of table", other)),
    };
    let Some(format) = code(args.spec.table) else {
        return Err(unsupported("embedding", "this form of table", args.spec));
    };
    let group_size = match args.spec.table {
        TableFormat::Int4PerGroup { group_size } => group_size,
        _ => 1,
    };
    // Scales of rows are a vector, whose elements lie together.
    let scales_stride = scales.map_or(0, |scales| match scales.strides() {
        &[row, _] => row,
        _ => 1,
    });
    let (rows, out) = (Rows::of(table), Rows::of(args.out));
    let parts = out.columns.div_ceil(THREADS);
    let launch = base()
        .tensor("table", table)
        .maybe("scales", scales)
        .tensor("ids", args.ids)
        .tensor("out", args.out)
        .size("vocabulary", rows.outer)
        .size("table's stride", rows.outer_stride.saturating_mul(table.dtype().size()))
        .size("scales' stride", scales_stride)
        .size("group_size", group_size)
        .size("hidden", out.columns)
        .size("out's stride", out.outer_stride)
        .size("parts", parts)
        .int(format)
        .int(float_type(args.out.dtype()))
        .float(args.spec.scale);
    stream.launch(launch.grid([out.outer.saturating_mul(parts), 1, 1]))
}
