// Which rows a workgroup has: of all rows, or of those that a table on the device tells.

// Born on the device: clamped, never trusted. Of a table that may not ascend, each element counts as the greatest so far.
fn told_rows() -> vec2<u32> {
    var first = range(im.range_at);
    if !ASCENDING {
        for (var at = 0u; at < im.range_at; at += 4u) {
            let places = min(at + vec4(0u, 1u, 2u, 3u), vec4(im.range_at));
            first = max(first, max(max(range(places.x), range(places.y)), max(range(places.z), range(places.w))));
        }
    }
    first = clamp(first, 0i, i32(im.rows));
    return vec2(u32(first), u32(clamp(range(im.range_at + 1u), first, i32(im.rows))));
}

// The first row, and the one after the last, of block `block` of `size` rows out of `all`. Blocks behind the last have none.
fn rows_of(all: vec2<u32>, block: u32, size: u32) -> vec2<u32> {
    let first = all.x + min(block, (all.y - all.x + size - 1u) / size) * size;
    return vec2(first, min(first + size, all.y));
}
