// Scores of INT8 queries and keys: a query of a head is one row of `quantize`, sums are exact in I32.

var<workgroup> query_words: array<u32, QUERY_QUADS>;
var<workgroup> query_scales: array<f32, ROWS>;

fn load_queries(rows: Rows, lane: u32) {
    let r = lane / ROW_LANES;
    let first = lane % ROW_LANES;
    let quads = key_quads();
    // The greatest magnitude, as bits: so they are in order, and what is not finite is above all that is.
    var most = 0u;
    if r < ROWS {
        for (var quad = first; quad < quads; quad += ROW_LANES) {
            let bits = bitcast<vec4<u32>>(query_quad(rows, r, quad)) & vec4(0x7fffffffu);
            most = max(most, max(max(bits.x, bits.y), max(bits.z, bits.w)));
        }
    }
    lanes[lane] = most;
    workgroupBarrier();
    if r < ROWS {
        for (var i = 0u; i < ROW_LANES; i++) {
            most = max(most, lanes[r * ROW_LANES + i]);
        }
        let finite = most < 0x7f800000u;
        let scale = scale_of_greatest(most, 127.0f);
        let inverse = divide(1.0f, scale);
        for (var quad = first; quad < quads; quad += ROW_LANES) {
            var whole = vec4<i32>();
            if finite {
                let x = query_quad(rows, r, quad);
                whole = vec4<i32>(clamp(round(x * inverse), vec4(-127.0f), vec4(127.0f)));
            }
            query_words[r * quads + quad] = pack4xI8(whole);
        }
        if first == 0u {
            query_scales[r] = scale;
        }
    }
    workgroupBarrier();
}

fn scaled_products(row: u32) -> array<f32, ROWS> {
    let steps = key_steps();
    let quads = key_quads();
    var sums: array<i32, ROWS>;
    for (var step = 0u; step < steps; step++) {
        var key = key_words(row, step);
        for (var i = 0u; i < STEP; i++) {
            for (var r = 0u; r < ROWS; r++) {
                sums[r] += dot4I8Packed(query_words[r * quads + step * STEP + i], key[i]);
            }
        }
    }
    let key_scale = scales(row);
    var products: array<f32, ROWS>;
    for (var r = 0u; r < ROWS; r++) {
        products[r] = f32(sums[r]) * (key_scale * (query_scales[r] * plan.scale));
    }
    return products;
}
