//! Rows of a table by token id.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::{float_only, unsupported},
};
use halite_hal::{DType, Result};
use halite_kernels::{
    Support,
    embedding::{EmbeddingArgs, EmbeddingSpec, EmbeddingTable, TableFormat},
};
use std::ops::Range;

static LOOK_UP: Shader =
    Shader { name: "embedding", source: &[include_str!("table.wgsl"), include_str!("look_up.wgsl")] };

/// The number that shaders know a format by; none of one that there is no kernel for.
fn code(format: TableFormat) -> Option<u32> {
    match format {
        TableFormat::Float(dtype) if dtype.is_float() => Some(0),
        TableFormat::Int8PerRow => Some(1),
        TableFormat::Int4PerGroup { .. } => Some(2),
        TableFormat::Q4_0 => Some(3),
        TableFormat::Q4_1 => Some(4),
        TableFormat::Q4K => Some(5),
        _ => None,
    }
}

pub(super) fn supports(spec: &EmbeddingSpec) -> Support {
    match code(spec.table) {
        Some(_) => float_only(spec.output),
        None => Support::No(format!("tables of {:?}", spec.table)),
    }
}

/// Looks rows up; a dispatch reaches `largest` bytes of the table.
pub(super) fn look_up(stream: &mut WgpuStream, args: &EmbeddingArgs<'_, Wgpu>, largest: u64) -> Result<()> {
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
    let (rows, out) = (Rows::of(table), Rows::of(args.out));
    let row_bytes = (rows.outer_stride * table.dtype().size()) as u64;
    let bytes = Operand::tensor(table);
    for part in parts(rows.outer, row_bytes, largest) {
        let end = (part.end as u64 * row_bytes).min(bytes.len());
        let launch = Launch::new(&LOOK_UP)
            .operand("table", Access::In, bytes.part((part.start as u64 * row_bytes).min(end)..end))
            .maybe("scales", Access::In, DType::F32, scales)
            .input("ids", args.ids)
            .output("out", args.out)
            .constant("FORMAT", format)
            .size("first", part.start)
            .size("rows", part.len())
            .size("vocabulary", rows.outer)
            .size("table_stride", rows.outer_stride)
            .size("scales_stride", scales.map_or(0, |scales| Rows::of(scales).outer_stride))
            .size("group_size", group_size)
            .size("tokens", out.outer)
            .size("hidden", out.columns)
            .size("out_stride", out.outer_stride)
            .float("factor", args.spec.scale);
        stream.launch(launch, spread((out.outer * out.columns).div_ceil(64)))?;
    }
    Ok(())
}

/// The rows of a table in pieces that a dispatch reaches: at least one piece, since somebody must write zeros. What is bound
/// begins up to 255 bytes before a piece.
fn parts(rows: usize, row_bytes: u64, largest: u64) -> impl Iterator<Item = Range<usize>> {
    let at_once = (largest.saturating_sub(512) / row_bytes.max(1)).clamp(1, u64::from(u32::MAX)) as usize;
    (0..rows.max(1)).step_by(at_once).map(move |first| first..rows.min(first.saturating_add(at_once)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::{Device, Tensor};

    #[test]
    fn large_tables_are_read_in_parts() {
        let of = |rows, row_bytes, largest| parts(rows, row_bytes, largest).collect::<Vec<_>>();
        assert_eq!(of(10, 100, 1024), [0..5, 5..10]);
        assert_eq!(of(11, 100, 1024), [0..5, 5..10, 10..11]);
        assert_eq!((of(11, 0, 1024).len(), of(0, 100, 1024).len()), (1, 1));
        // A row beyond what is reached is refused when it is bound.
        assert_eq!(of(2, 2000, 1024), [0..1, 1..2]);
    }

    #[test]
    fn parts_of_a_table_are_one_table() -> Result<()> {
        let Some(gpu) = testing::gpu("a table in parts") else { return Ok(()) };
        let stream = &mut gpu.stream()?;
        let (rows, hidden) = (50, 33);
        let values: Vec<f32> = (0..rows * hidden).map(|i| i as f32).collect();
        let table = &Tensor::from_slice(stream, &values, &[rows, hidden])?;
        let ids = [49i32, 0, -1, 17, 16, 50, 3, 4];
        let out = Tensor::from_slice(stream, &[1.0f32; 8 * 33], &[8, hidden])?;
        let spec = EmbeddingSpec::new(TableFormat::Float(DType::F32));
        let ids_tensor = &Tensor::from_slice(stream, &ids, &[8])?;
        let table = EmbeddingTable::Float(table);
        let args = EmbeddingArgs { spec: &spec, table, ids: ids_tensor, out: &out }.check()?;
        look_up(stream, &args, 1024)?;
        for (&id, row) in ids.iter().zip(out.to_vec::<f32>(stream)?.chunks(hidden)) {
            match values.chunks(hidden).nth(id as usize) {
                Some(expected) => assert_eq!(row, expected, "{id}"),
                None => assert_eq!(row, [0.0; 33], "{id}"),
            }
        }
        Ok(())
    }
}
