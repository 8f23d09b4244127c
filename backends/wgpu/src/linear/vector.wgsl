// Few rows: every weight is read once, by many workgroups. A workgroup has the 16 channels of a panel, of a gated layer
// gates and ups, and up to ROWS rows. 16 invocations share the K of a channel, a segment each.

// Of a panel, a segment and a channel; of up to four rows.
var<workgroup> parts: array<Totals, 256u * PANELS>;
// Of a segment.
var<workgroup> part_x_sums: array<vec4<i32>, 16>;
var<workgroup> told: vec2<u32>;

// Of the panels.
var<private> sums: array<Sums, 2>;
var<private> chains: array<vec4<f32>, 2>;
var<private> x_sums: vec4<i32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    member = group.z;
    let index = linear_group(group, groups);
    let columns = im.panels / PANELS;
    if HAS_RANGE {
        if lane == 0u {
            told = told_rows();
        }
        workgroupBarrier();
    }
    let rows = rows_of(select(vec2(0u, im.rows), told, HAS_RANGE), index / columns, ROWS);
    if rows.x >= rows.y {
        return;
    }
    let panel = index % columns * PANELS;
    let starts = vec2(panel_start(panel), panel_start(panel + PANELS - 1u));
    let channel = lane % PANEL;
    let own = lane / PANEL;
    // Where there are fewer rows the last one is multiplied again, and not stored.
    let row = min(vec4(rows.x) + vec4(0u, 1u, 2u, 3u), vec4(rows.y - 1u));
    let x_start = row * im.x_stride;

    sums = array<Sums, 2>();
    chains = array<vec4<f32>, 2>();
    x_sums = vec4<i32>();
    let end = min((own + 1u) * im.segment, im.quads);
    for (var q = own * im.segment; q < end; q += 2u) {
        let gates = weights(starts.x, channel, q);
        var ups = gates;
        if PANELS == 2u {
            ups = weights(starts.y, channel, q);
        }
        multiply(x_start, q, gates.first, ups.first);
        if step_ends(q) {
            fold(row, starts, channel, q);
        }
        multiply(x_start, q + 1u, gates.second, ups.second);
        if step_ends(q + 1u) {
            fold(row, starts, channel, q + 1u);
        }
    }
    parts[lane] = segment(sums[0], chains[0]);
    if PANELS == 2u {
        parts[256u * (PANELS - 1u) + lane] = segment(sums[1], chains[1]);
    }
    if X_SUMS && channel == 0u {
        part_x_sums[own] = x_sums;
    }
    workgroupBarrier();

    let place = lane / PANEL;
    let result = (im.first_panel + panel) / PANELS * PANEL + channel;
    if place >= rows.y - rows.x || result >= im.results {
        return;
    }
    var totals = vec2<Total>();
    var x_sum = 0i;
    let segments = (im.quads + im.segment - 1u) / im.segment;
    for (var part = 0u; part < segments; part++) {
        totals.x += parts[part * PANEL + channel][place];
        totals.y += parts[256u * (PANELS - 1u) + part * PANEL + channel][place];
        if X_SUMS {
            x_sum += part_x_sums[part][place];
        }
    }
    var outliers = vec2<f32>();
    if HAS_X_OUTLIERS {
        for (var unit = 0u; unit < (im.outliers + 3u) / 4u; unit++) {
            let values = outliers_x(rows.x + place, unit);
            outliers.x = add_outliers(outliers.x, values, outliers_w(starts.x, channel, unit));
            outliers.y = add_outliers(outliers.y, values, outliers_w(starts.y, channel, unit));
        }
    }
    finish(rows.x + place, result, channel, starts, totals, x_sum, outliers);
}

// One quad of all rows.
fn multiply(x_start: vec4<u32>, q: u32, gate: Quad, up: Quad) {
    row_times(0u, x_quad(x_start.x, q), gate, up);
    if ROWS > 1u {
        row_times(1u, x_quad(x_start.y, q), gate, up);
        row_times(2u, x_quad(x_start.z, q), gate, up);
        row_times(3u, x_quad(x_start.w, q), gate, up);
    }
}

fn row_times(place: u32, values: Quad, gate: Quad, up: Quad) {
    sums[0][place] = add(sums[0][place], values, gate);
    if PANELS == 2u {
        sums[1][place] = add(sums[1][place], values, up);
    }
    if X_SUMS {
        x_sums[place] += quad_sum(values);
    }
}

// The end of a step.
fn fold(row: vec4<u32>, starts: vec2<u32>, channel: u32, q: u32) {
    let group = weight_group(q);
    var x_scale = vec4(x_group_scale(row.x, q));
    if ROWS > 1u {
        x_scale = vec4(x_scale.x, x_group_scale(row.y, q), x_group_scale(row.z, q), x_group_scale(row.w, q));
    }
    fold_panel(0u, starts.x, channel, group, x_scale);
    if PANELS == 2u {
        fold_panel(1u, starts.y, channel, group, x_scale);
    }
    x_sums = vec4<i32>();
}

fn fold_panel(place: u32, start: u32, channel: u32, group: u32, x_scale: vec4<f32>) {
    var offset = 0u;
    if OFFSET != 0u {
        offset = offset_of(start, group, channel);
    }
    let scale = vec4(scale_of(start, group, channel));
    chains[place] = folded(chains[place], sums[place], x_sums, scale, vec4(offset), x_scale);
    sums[place] = Sums();
}
