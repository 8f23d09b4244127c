// Many rows: a workgroup has 64 rows and the channels of four panels, an invocation four rows and a channel of each
// panel. Eight quads of K at a time lie in workgroup memory, each at `64 · quad + row` or `+ channel`.

var<workgroup> tile_x: array<vec4<u32>, 512>;
var<workgroup> tile_w: array<vec4<u32>, 512>;

// Of four rows, and in each of the channels of four panels.
var<private> sums: array<Sums, 4>;
var<private> chains: array<vec4<f32>, 4>;
var<private> totals: array<Totals, 4>;
// Of the rows.
var<private> x_sums: vec4<i32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    member = group.z;
    let index = linear_group(group, groups);
    let columns = (im.panels + 3u) / 4u;
    if HAS_RANGE {
        if lane == 0u {
            tile_x[0] = vec4(told_rows(), 0u, 0u);
        }
        workgroupBarrier();
    }
    let rows = rows_of(select(vec2(0u, im.rows), tile_x[0].xy, HAS_RANGE), index / columns, 64u);
    if rows.x >= rows.y {
        return;
    }
    let panel = index % columns * 4u;
    // Where there are fewer panels the last one is multiplied again, and not stored.
    let last = im.panels - 1u;
    let starts = vec4(
        panel_start(panel), panel_start(min(panel + 1u, last)),
        panel_start(min(panel + 2u, last)), panel_start(min(panel + 3u, last))
    );
    let channel = lane % PANEL;
    let own = lane / PANEL;
    let row = min(vec4(rows.x + own) + vec4(0u, 16u, 32u, 48u), vec4(rows.y - 1u));

    // What this invocation brings: a pair of quads of a row, and one of a channel. Neighbours read one row's successive
    // quads; rows are put where reading and writing meet all banks.
    let x_start = min(rows.x + lane / 4u, rows.y - 1u) * im.x_stride;
    let x_pair = 2u * (lane % 4u);
    let x_place = 64u * x_pair + ((lane / 4u) ^ x_pair);
    let w_start = starts[lane / 16u % 4u];
    let w_pair = 2u * (lane / 64u);
    let w_place = 64u * w_pair + lane % 64u;

    sums = array<Sums, 4>();
    chains = array<vec4<f32>, 4>();
    totals = array<Totals, 4>();
    x_sums = vec4<i32>();
    for (var first = 0u; first < im.quads; first += 8u) {
        workgroupBarrier();
        if first + x_pair < im.quads {
            tile_x[x_place] = bitcast<vec4<u32>>(x_quad(x_start, first + x_pair));
            tile_x[x_place + 64u] = bitcast<vec4<u32>>(x_quad(x_start, first + x_pair + 1u));
        }
        if first + w_pair < im.quads {
            let pair = weights(w_start, channel, first + w_pair);
            tile_w[w_place] = bitcast<vec4<u32>>(pair.first);
            tile_w[w_place + 64u] = bitcast<vec4<u32>>(pair.second);
        }
        workgroupBarrier();
        let count = min(8u, im.quads - first);
        for (var pair = 0u; pair < count; pair += 2u) {
            let q = first + pair;
            multiply(64u * pair + (own ^ pair), 64u * pair + channel);
            if step_ends(q) {
                fold(row, starts, channel, q);
            }
            multiply(64u * pair + 64u + (own ^ pair), 64u * pair + 64u + channel);
            if step_ends(q + 1u) {
                fold(row, starts, channel, q + 1u);
            }
            if (q + 2u) % im.segment == 0u {
                end_segment();
            }
        }
    }
    end_segment();

    // Copies, since what is indexed by a variable does not stay in registers.
    var results = totals;
    var outliers = array<vec4<f32>, 4>();
    if HAS_X_OUTLIERS {
        for (var unit = 0u; unit < (im.outliers + 3u) / 4u; unit++) {
            let values = array<vec4<f32>, 4>(
                outliers_w(starts.x, channel, unit), outliers_w(starts.y, channel, unit),
                outliers_w(starts.z, channel, unit), outliers_w(starts.w, channel, unit)
            );
            outliers[0] = add_row_outliers(outliers[0], outliers_x(row.x, unit), values);
            outliers[1] = add_row_outliers(outliers[1], outliers_x(row.y, unit), values);
            outliers[2] = add_row_outliers(outliers[2], outliers_x(row.z, unit), values);
            outliers[3] = add_row_outliers(outliers[3], outliers_x(row.w, unit), values);
        }
    }
    for (var place = 0u; rows.x + own + 16u * place < rows.y; place++) {
        for (var panel_in_tile = 0u; panel_in_tile < min(4u, im.panels - panel); panel_in_tile += PANELS) {
            let result = (im.first_panel + panel + panel_in_tile) / PANELS * PANEL + channel;
            let up = panel_in_tile + PANELS - 1u;
            if result < im.results {
                finish(
                    row[place], result, channel, vec2(starts[panel_in_tile], starts[up]),
                    vec2(results[place][panel_in_tile], results[place][up]), x_sums[place],
                    vec2(outliers[place][panel_in_tile], outliers[place][up])
                );
            }
        }
    }
}

// One quad of all rows and panels.
fn multiply(x_at: u32, w_at: u32) {
    let quads = array<Quad, 4>(
        bitcast<Quad>(tile_w[w_at]), bitcast<Quad>(tile_w[w_at + 16u]),
        bitcast<Quad>(tile_w[w_at + 32u]), bitcast<Quad>(tile_w[w_at + 48u])
    );
    row_times(0u, bitcast<Quad>(tile_x[x_at]), quads);
    row_times(1u, bitcast<Quad>(tile_x[x_at + 16u]), quads);
    row_times(2u, bitcast<Quad>(tile_x[x_at + 32u]), quads);
    row_times(3u, bitcast<Quad>(tile_x[x_at + 48u]), quads);
}

fn row_times(place: u32, values: Quad, quads: array<Quad, 4>) {
    let old = sums[place];
    sums[place] = Sums(
        add(old.x, values, quads[0]), add(old.y, values, quads[1]),
        add(old.z, values, quads[2]), add(old.w, values, quads[3])
    );
    if X_SUMS {
        x_sums[place] += quad_sum(values);
    }
}

fn add_row_outliers(old: vec4<f32>, values: vec4<f32>, columns: array<vec4<f32>, 4>) -> vec4<f32> {
    return vec4(
        add_outliers(old.x, values, columns[0]), add_outliers(old.y, values, columns[1]),
        add_outliers(old.z, values, columns[2]), add_outliers(old.w, values, columns[3])
    );
}

// The end of a step.
fn fold(row: vec4<u32>, starts: vec4<u32>, channel: u32, q: u32) {
    let group = weight_group(q);
    let scales = vec4(
        scale_of(starts.x, group, channel), scale_of(starts.y, group, channel),
        scale_of(starts.z, group, channel), scale_of(starts.w, group, channel)
    );
    var offsets = vec4<u32>();
    if OFFSET != 0u {
        offsets = vec4(
            offset_of(starts.x, group, channel), offset_of(starts.y, group, channel),
            offset_of(starts.z, group, channel), offset_of(starts.w, group, channel)
        );
    }
    fold_row(0u, row.x, q, scales, offsets);
    fold_row(1u, row.y, q, scales, offsets);
    fold_row(2u, row.z, q, scales, offsets);
    fold_row(3u, row.w, q, scales, offsets);
    x_sums = vec4<i32>();
}

fn fold_row(place: u32, row: u32, q: u32, scales: vec4<f32>, offsets: vec4<u32>) {
    let x_scale = vec4(x_group_scale(row, q));
    chains[place] = folded(chains[place], sums[place], vec4(x_sums[place]), scales, offsets, x_scale);
    sums[place] = Sums();
}

fn end_segment() {
    end_row(0u);
    end_row(1u);
    end_row(2u);
    end_row(3u);
}

fn end_row(place: u32) {
    totals[place] += segment(sums[place], chains[place]);
    sums[place] = Sums();
    chains[place] = vec4<f32>();
}
