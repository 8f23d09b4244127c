//! About how many nanoseconds one core of a current server takes for what tasks are cut into: a row, a token or a panel.
//! `Threads::units_per_task` weighs them against the cost of a task. They decide how a call is shared, and no bit of what
//! it gives.

use crate::linear::pack::PANEL;

/// What limits a panel of packed weights: the bytes that it is read at, or its multiply-adds, each a nanosecond.
const fn panel(
    bytes: usize,
    bytes_a_nanosecond: usize,
    products: usize,
    products_a_nanosecond: usize,
) -> usize {
    let (reading, multiplying) = (bytes / bytes_a_nanosecond, products / products_a_nanosecond);
    if reading > multiplying { reading } else { multiplying }
}

/// A panel of INT8 weights.
pub(crate) const fn int8_panel(rows: usize, k: usize) -> usize {
    panel(k * PANEL, 16, rows * k * PANEL, 300)
}

/// A panel of floats of `size` bytes.
pub(crate) const fn float_panel(rows: usize, k: usize, size: usize) -> usize {
    panel(k * PANEL * size, 16, rows * k * PANEL, 60)
}

/// A panel of integers with factors along K, of `bytes`, times INT8: each step of K is scaled by itself.
pub(crate) const fn group_wise_panel(rows: usize, k: usize, bytes: usize) -> usize {
    panel(bytes, 8, rows * k * PANEL, 100)
}

/// The same, times floats: every tile dequantises it.
pub(crate) const fn dequantized_panel(rows: usize, k: usize, bytes: usize) -> usize {
    panel(bytes, 4, rows * k * PANEL, 60)
}

/// A row of an activation: an exponential an element.
pub(crate) const fn activated(columns: usize) -> usize {
    columns
}

/// The same to INT8, for which it is computed twice.
pub(crate) const fn activated_to_int8(columns: usize) -> usize {
    2 * columns
}

/// A token of `heads` rows, normalised.
pub(crate) const fn normalized(heads: usize, columns: usize) -> usize {
    heads * columns / 2
}

/// A token of `heads` rows, turned.
pub(crate) const fn turned(heads: usize, columns: usize) -> usize {
    heads * columns / 4
}

/// A row quantised: read twice.
pub(crate) const fn quantized(columns: usize) -> usize {
    columns / 4
}

/// A row rotated: an addition an element for each doubling of the block.
pub(crate) const fn rotated(columns: usize, block: usize) -> usize {
    columns * (1 + block.ilog2() as usize) / 4
}

/// The sum of so many bytes of a row.
pub(crate) const fn summed(columns: usize) -> usize {
    4 + columns / 64
}

/// A row of bytes copied.
pub(crate) const fn copied(columns: usize) -> usize {
    columns / 16
}

/// The range of a row.
pub(crate) const fn ranged(columns: usize) -> usize {
    columns / 8
}

/// A token's results of attention, merged of so many parts.
pub(crate) const fn merged(parts: usize, heads: usize, columns: usize) -> usize {
    parts * heads * columns
}

/// A token routed: a comparison takes about a nanosecond, and each choice goes through all experts.
pub(crate) const fn routed(experts: usize, top_k: usize) -> usize {
    experts * (top_k + 2)
}

/// A row sent to an expert: copied, 8 bytes a nanosecond.
pub(crate) const fn dispatched(bytes: usize) -> usize {
    bytes / 8
}

/// A token's sum of so many rows.
pub(crate) const fn combined(rows: usize, columns: usize) -> usize {
    columns * rows / 8
}

/// A row of the shared experts' result, gated by a product with the token.
pub(crate) const fn gated(columns: usize) -> usize {
    columns / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_bound_by_bytes_until_rows_are_many() {
        for (what, nanoseconds, expected) in [
            ("INT8, nothing", int8_panel(0, 0), 0),
            ("INT8, 0 rows", int8_panel(0, 576), 1152),
            ("INT8, 1 row", int8_panel(1, 576), 1152),
            ("INT8, 18 rows", int8_panel(18, 576), 1152),
            ("INT8, 19 rows", int8_panel(19, 576), 1167),
            ("INT8, 512 rows", int8_panel(512, 576), 31_457),
            ("F32, 1 row", float_panel(1, 576, 4), 4608),
            ("F32, 15 rows", float_panel(15, 576, 4), 4608),
            ("F32, 16 rows", float_panel(16, 576, 4), 4915),
            ("BF16, 1 row", float_panel(1, 576, 2), 2304),
            ("BF16, 7 rows", float_panel(7, 576, 2), 2304),
            ("BF16, 8 rows", float_panel(8, 576, 2), 2457),
            ("W4A8, 1 row", group_wise_panel(1, 576, 576 * 16), 1152),
            ("W4A8, 6 rows", group_wise_panel(6, 576, 576 * 16), 1152),
            ("W4A8, 7 rows", group_wise_panel(7, 576, 576 * 16), 1290),
            ("W4A16, 1 row", dequantized_panel(1, 576, 576 * 16), 2304),
            ("W4A16, 7 rows", dequantized_panel(7, 576, 576 * 16), 2304),
            ("W4A16, 8 rows", dequantized_panel(8, 576, 576 * 16), 2457),
        ] {
            assert_eq!(nanoseconds, expected, "{what}");
        }
    }

    #[test]
    fn rows_cost_what_is_done_with_them() {
        for (what, nanoseconds, expected) in [
            ("activation", activated(1536), 1536),
            ("activation to INT8", activated_to_int8(1536), 3072),
            ("norm", normalized(1, 576), 288),
            ("norm of each head", normalized(12, 64), 384),
            ("norm of one element", normalized(1, 1), 0),
            ("rope", turned(12, 64), 192),
            ("quantisation", quantized(576), 144),
            ("range", ranged(576), 72),
            ("sum", summed(576), 13),
            ("sum of a group", summed(32), 4),
            ("copy", copied(4096), 256),
            ("rotation, blocks of 1", rotated(576, 1), 144),
            ("rotation, blocks of 64", rotated(576, 64), 1008),
            ("merging", merged(2, 9, 64), 1152),
            ("routing", routed(128, 8), 1280),
            ("dispatch", dispatched(4 * 576), 288),
            ("combine", combined(8 + 1, 576), 648),
            ("shared gate", gated(576), 144),
        ] {
            assert_eq!(nanoseconds, expected, "{what}");
        }
    }
}
