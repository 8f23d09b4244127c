// An element of a table, dequantised. FORMAT says how it is stored: the numbers are `table::code`'s; the blocks of files
// are described in halite-kernels' `linear/blocks.rs`.

const FLOAT: u32 = 0u;
const INT8: u32 = 1u;
const INT4: u32 = 2u;
const Q4_0: u32 = 3u;
const Q4_1: u32 = 4u;

fn byte(at: u32) -> u32 {
    return u32(table(at));
}

fn half_number(at: u32) -> f32 {
    return f16_decode(byte(at) | (byte(at + 1u) << 8u));
}

// The half of a byte.
fn code(at: u32, upper: bool) -> f32 {
    return f32(extractBits(byte(at), select(0u, 4u, upper), 4u));
}

// Element `i` of a group of 32, whose codes begin at a byte: first all low halves, then all high ones.
fn code_of_32(at: u32, i: u32) -> f32 {
    return code(at + (i & 15u), i >= 16u);
}

// Products of the numbers in blocks are exact: no sum is rounded otherwise where it is fused with one.
fn q4k(at: u32, i: u32) -> f32 {
    let g = i / 32u;
    let low = byte(at + 4u + g);
    let high = byte(at + 8u + g);
    var factors = vec2(low & 63u, high & 63u);
    if g >= 4u {
        factors = vec2((high & 15u) | ((byte(at + g) >> 6u) << 4u), (high >> 4u) | ((low >> 6u) << 4u));
    }
    let scale = half_number(at) * f32(factors.x);
    let least = half_number(at + 2u) * f32(factors.y);
    return scale * code(at + 16u + 32u * (g / 2u) + i % 32u, g % 2u == 1u) - least;
}

// `row` is counted from the first of the table that is bound, `id` from the first of all.
fn element(row: u32, id: u32, column: u32) -> f32 {
    let start = row * im.table_stride;
    switch FORMAT {
        case FLOAT: {
            return f32(table(start + column));
        }
        case INT8: {
            return f32(table(start + column)) * scales(id);
        }
        case INT4: {
            let scale = scales(id * im.scales_stride + column / im.group_size);
            return (code(start + column / 2u, column % 2u == 1u) - 8.0f) * scale;
        }
        case Q4_0: {
            let at = start + column / 32u * 18u;
            return half_number(at) * (code_of_32(at + 2u, column % 32u) - 8.0f);
        }
        case Q4_1: {
            let at = start + column / 32u * 20u;
            return half_number(at) * code_of_32(at + 4u, column % 32u) + half_number(at + 2u);
        }
        default: {
            return q4k(start + column / 256u * 144u, column % 256u);
        }
    }
}
