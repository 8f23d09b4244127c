// Which rows a workgroup has: of all rows, or of those that a table on the device tells.

// Which of the groups that a dispatch has this workgroup works for.
var<private> member: u32;

// Born on the device: clamped, never trusted. Of a table that may not ascend, each element counts as the greatest so far.
fn told_rows() -> vec2<u32> {
    let own = im.range_at + member;
    var first = range(own);
    if !ASCENDING {
        for (var at = 0u; at < own; at += 4u) {
            let places = min(at + vec4(0u, 1u, 2u, 3u), vec4(own));
            first = max(first, max(max(range(places.x), range(places.y)), max(range(places.z), range(places.w))));
        }
    }
    first = clamp(first, 0i, i32(im.rows));
    return vec2(u32(first), u32(clamp(range(own + 1u), first, i32(im.rows))));
}

// The first row, and the one after the last, of block `block` of `size` rows out of `all`. Blocks behind the last have none.
fn rows_of(all: vec2<u32>, block: u32, size: u32) -> vec2<u32> {
    let first = all.x + min(block, (all.y - all.x + size - 1u) / size) * size;
    return vec2(first, min(first + size, all.y));
}
