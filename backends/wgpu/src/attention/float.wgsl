// Scores in F32.

var<workgroup> queries: array<vec4<f32>, QUERY_QUADS>;

fn load_queries(rows: Rows, lane: u32) {
    let quads = key_quads();
    for (var i = lane; i < ROWS * quads; i += LANES) {
        queries[i] = query_quad(rows, i / quads, i % quads);
    }
}

// `scale · q·k` of a key and every row: four sums, a lane of the vectors each, and then those.
fn scaled_products(row: u32) -> array<f32, ROWS> {
    let steps = key_steps();
    let quads = key_quads();
    var sums: array<vec4<f32>, ROWS>;
    for (var step = 0u; step < steps; step++) {
        var key = key_step(row, step);
        if HAS_SCALES {
            for (var i = 0u; i < STEP; i++) {
                key[i] *= scales(row);
            }
        }
        for (var i = 0u; i < STEP; i++) {
            for (var r = 0u; r < ROWS; r++) {
                sums[r] = fma(queries[r * quads + step * STEP + i], key[i], sums[r]);
            }
        }
    }
    var products: array<f32, ROWS>;
    for (var r = 0u; r < ROWS; r++) {
        products[r] = plan.scale * ((sums[r].x + sums[r].y) + (sums[r].z + sums[r].w));
    }
    return products;
}
