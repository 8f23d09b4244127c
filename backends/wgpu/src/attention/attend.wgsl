// A workgroup has some query rows of one KV head, and walks positions from left to right, a part at a time: scores, an
// invocation a position; weights, 32 invocations a row; weighted values, an invocation four columns of every so manieth
// position. A part's state is joined to that of the parts before it. Which other rows and positions a workgroup has never
// shows in a row's bits.
//
// ROWS, SCORES, QUERY_QUADS and PART_ROOM are room: `shape.rs` chooses them.

const LANES: u32 = 256u;
// In place of a score, and then of a weight: the row does not see the position. Real ones have other bits.
const UNSEEN: u32 = 0xffffffffu;
// Rows whose values are summed at once.
const AT_ONCE: u32 = min(ROWS, SCORES / (4u * LANES));

// Scores and then weights, `[ROWS, part]`; in the end sums of values, `[AT_ONCE, 4, LANES]`.
var<workgroup> scores: array<u32, SCORES>;
// Where the part's positions lie: rows of keys and values.
var<workgroup> cache_rows: array<u32, PART_ROOM>;
var<workgroup> lanes: array<u32, LANES>;
// The positions between which each row sees.
var<workgroup> seen: array<vec2<i32>, ROWS>;
// What the rows know so far, but for the values.
var<workgroup> state_max: array<f32, ROWS>;
var<workgroup> state_sum: array<f32, ROWS>;
// How the part's values are joined to it, and what its weights in 8 bits are multiplied with.
var<workgroup> joins: array<Joined, ROWS>;
var<workgroup> part_scale: array<f32, ROWS>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    read_plan();
    let index = linear_group(group, groups);
    let head_tiles = (plan.group + plan.row_heads - 1u) / plan.row_heads;
    if index >= im.items * plan.kv_heads * head_tiles {
        return;
    }
    let item = im.items_at + 4u * (index / (plan.kv_heads * head_tiles));
    let kv_head = index / head_tiles % plan.kv_heads;
    let tile_head = index % head_tiles * plan.row_heads;
    let at = plan.tiles_at + 12u * u32(tables(item));
    let first = tables(item + 1u);
    let end = tables(item + 2u);
    let slot = u32(tables(item + 3u));
    let rows = Rows(
        u32(tables(at)),
        u32(tables(at + 1u)),
        kv_head * plan.group + tile_head,
        min(plan.row_heads, plan.group - tile_head),
    );
    let tile = Tile(
        u32(tables(at + 2u)),
        tables(at + 3u),
        tables(at + 5u),
        plan.tree_at + 2u * u32(tables(at + 4u)),
        kv_head,
    );
    let read = vec2(tables(at + 6u), tables(at + 7u));
    let begins = HAS_SCRATCH && im.begins != 0u && tables(at + 10u) != 0;
    let value_quads = (plan.value_dim + 3u) / 4u;
    let record_words = plan.value_dim + 2u;
    let query_heads = plan.group * plan.kv_heads;

    // Of the values that the rows know, four columns of each where `lane < value_quads`.
    var state_values: array<vec4<f32>, ROWS>;
    if lane < plan.rows {
        let place = place_of(rows, lane);
        seen[lane] = select(vec2(0), visible(tile.own + i32(place.token), read), place.there);
        state_max[lane] = LOWEST;
        state_sum[lane] = 0.0f;
        if begins && place.there {
            let record = ((slot + place.token) * query_heads + place.head) * record_words;
            state_max[lane] = scratch(record + plan.value_dim);
            state_sum[lane] = scratch(record + plan.value_dim + 1u);
        }
    }
    if begins {
        for (var r = 0u; r < ROWS; r++) {
            let place = place_of(rows, r);
            let record = ((slot + place.token) * query_heads + place.head) * record_words;
            for (var i = 0u; i < 4u; i++) {
                if place.there && 4u * lane + i < plan.value_dim {
                    state_values[r][i] = scratch(record + 4u * lane + i);
                }
            }
        }
    }
    load_queries(rows, lane);
    workgroupBarrier();

    // Positions whose values are summed side by side, and which of them are this invocation's.
    let splits = min(16u, LANES / value_quads);
    let quad = lane % value_quads;
    let split = lane / value_quads;
    let size = i32(plan.part);
    for (var part = first / size * size; part < end; part += size) {
        let part_first = max(part, first);
        let part_end = min(part + size, end);
        score_part(rows, tile, part, part_first, part_end, lane);
        workgroupBarrier();
        weigh_part(lane);
        if INT8_VALUES {
            weigh_in_8_bits(lane);
        }

        var sums: array<vec4<f32>, ROWS>;
        for (var r = 0u; r < ROWS; r++) {
            sums[r] = vec4<f32>();
        }
        if split < splits {
            let offset = u32(part_first - part);
            let skipped = (split + splits - offset % splits) % splits;
            for (var j = offset + skipped; j < u32(part_end - part); j += splits) {
                let row = cache_rows[j];
                var value = value_quad(row, quad);
                if HAS_SCALES && !INT8_VALUES {
                    value *= scales(im.value_scales + row);
                }
                for (var r = 0u; r < ROWS; r++) {
                    let bits = scores[r * plan.part + j];
                    if bits != UNSEEN {
                        sums[r] = fma(vec4(bitcast<f32>(bits)), value, sums[r]);
                    }
                }
            }
        }
        workgroupBarrier();
        for (var some = 0u; some < ROWS; some += AT_ONCE) {
            for (var r = 0u; r < AT_ONCE; r++) {
                for (var i = 0u; i < 4u; i++) {
                    scores[(4u * r + i) * LANES + lane] = bitcast<u32>(sums[some + r][i]);
                }
            }
            workgroupBarrier();
            if lane < value_quads {
                for (var r = 0u; r < AT_ONCE; r++) {
                    var values = sums[some + r];
                    for (var other = 1u; other < splits; other++) {
                        let from_lane = other * value_quads + lane;
                        values += vec4(
                            bitcast<f32>(scores[4u * r * LANES + from_lane]),
                            bitcast<f32>(scores[(4u * r + 1u) * LANES + from_lane]),
                            bitcast<f32>(scores[(4u * r + 2u) * LANES + from_lane]),
                            bitcast<f32>(scores[(4u * r + 3u) * LANES + from_lane]),
                        );
                    }
                    if INT8_VALUES {
                        values *= part_scale[some + r];
                    }
                    state_values[some + r] = joined_values(joins[some + r], state_values[some + r], values);
                }
            }
            workgroupBarrier();
        }
    }

    for (var r = 0u; r < plan.rows; r++) {
        let place = place_of(rows, r);
        if !place.there {
            continue;
        }
        var values = vec4<f32>();
        for (var k = 0u; k < ROWS; k++) {
            if k == r {
                values = state_values[k];
            }
        }
        if HAS_SCRATCH {
            let record = ((slot + place.token) * query_heads + place.head) * record_words;
            if lane == 0u {
                set_scratch(record + plan.value_dim, state_max[r]);
                set_scratch(record + plan.value_dim + 1u, state_sum[r]);
            }
            for (var i = 0u; i < 4u; i++) {
                if 4u * lane + i < plan.value_dim {
                    set_scratch(record + 4u * lane + i, values[i]);
                }
            }
            continue;
        }
        let token = rows.first_token + place.token;
        let last = ending(state_max[r], state_sum[r], im.has_sinks != 0u, sinks(place.head));
        for (var i = 0u; i < 4u; i++) {
            let column = 4u * lane + i;
            if column < plan.value_dim {
                set_out(token * im.out_token + place.head * im.out_head + column, normalised(last, values[i]));
            }
        }
        if im.has_log != 0u && lane == 0u {
            set_log_sum_exp(token * im.log_token + place.head, last.log);
        }
    }
}
