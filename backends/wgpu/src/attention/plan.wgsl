// What a plan is for, from the head of its tables: sizes are numbers rather than constants, so that few kernels are
// compiled for many models.

struct Plan {
    head_dim: u32,
    value_dim: u32,
    // Elements from a value to the next.
    value_stride: u32,
    block_size: u32,
    cache_blocks: i32,
    kv_heads: u32,
    // Query heads of a KV head, and those of a tile.
    group: u32,
    row_heads: u32,
    rows: u32,
    // Positions of a part.
    part: u32,
    mask: u32,
    // The mask's window or chunk.
    span: i32,
    // Whether scores are bounded, and whether distance lowers them.
    soft_cap: bool,
    alibi: bool,
    scale: f32,
    cap: f32,
    // Where the other tables begin, and the block table's row length.
    slopes_at: u32,
    blocks_at: u32,
    table_row: u32,
    tree_at: u32,
    tiles_at: u32,
}

var<private> plan: Plan;

fn read_plan() {
    plan.head_dim = u32(tables(0u));
    plan.value_dim = u32(tables(1u));
    plan.value_stride = u32(tables(2u));
    plan.block_size = u32(tables(3u));
    plan.cache_blocks = tables(4u);
    plan.kv_heads = u32(tables(5u));
    plan.group = u32(tables(6u));
    plan.row_heads = u32(tables(7u));
    plan.rows = u32(tables(8u));
    plan.part = u32(tables(9u));
    plan.mask = u32(tables(10u));
    plan.span = tables(11u);
    plan.soft_cap = tables(12u) != 0;
    plan.alibi = tables(13u) != 0;
    plan.scale = bitcast<f32>(tables(14u));
    plan.cap = bitcast<f32>(tables(15u));
    plan.slopes_at = u32(tables(16u));
    plan.blocks_at = u32(tables(17u));
    plan.table_row = u32(tables(18u));
    plan.tree_at = u32(tables(19u));
    plan.tiles_at = u32(tables(20u));
}
