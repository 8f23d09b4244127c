// Which positions a query row sees.

const CAUSAL: u32 = 0u;
const BIDIRECTIONAL: u32 = 1u;
const SLIDING: u32 = 2u;
const CHUNKED: u32 = 3u;
const TREE: u32 = 4u;

// The first position that a row at position `own` sees of those that are read, and the end of them. With a tree there are
// gaps between.
fn visible(own: i32, read: vec2<i32>) -> vec2<i32> {
    let end = max(own, -1) + 1;
    var seen = vec2(0, end);
    if plan.mask == BIDIRECTIONAL {
        seen.y = read.y;
    } else if plan.mask == SLIDING {
        seen.x = max(end - plan.span, 0);
    } else if plan.mask == CHUNKED {
        seen.x = max(end - 1, 0) / plan.span * plan.span;
    }
    return clamp(seen, read.xx, read.yy);
}

// Whether a row of a tree is `position` or comes after it; both count from the sequence's first row of the step. The table
// has for each row the first row of the chain that ends with it, and that row's parent.
fn comes_after(rows_at: u32, row: i32, position: i32) -> bool {
    var last = row;
    while last >= position {
        let at = rows_at + 2u * u32(last);
        if position >= tables(at) {
            return true;
        }
        last = tables(at + 1u);
    }
    return false;
}
