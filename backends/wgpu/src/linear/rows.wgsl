// Which rows a workgroup has: of all rows, or of those that a table on the device tells.

// Born on the device: clamped, never trusted.
fn told_rows() -> vec2<u32> {
    let first = clamp(range(im.range_at), 0i, i32(im.rows));
    return vec2(u32(first), u32(clamp(range(im.range_at + 1u), first, i32(im.rows))));
}

// The first row, and the one after the last, of block `block` of `size` rows out of `all`. Blocks behind the last have none.
fn rows_of(all: vec2<u32>, block: u32, size: u32) -> vec2<u32> {
    let first = all.x + min(block, (all.y - all.x + size - 1u) / size) * size;
    return vec2(first, min(first + size, all.y));
}
