// One invocation an element of the output. Rows of the table that are not bound are other dispatches'; the first one writes
// the zeros of ids that no table has.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 64u + lane;
    let token = index / im.hidden;
    if token >= im.tokens {
        return;
    }
    let column = index % im.hidden;
    // Below 0 is beyond every table.
    let id = bitcast<u32>(ids(token));
    let row = id - im.first;
    var y = 0.0f;
    if id < im.vocabulary {
        if id < im.first || row >= im.rows {
            return;
        }
        y = element(row, id, column);
        // A factor of 1 leaves the bits of a NaN too.
        if im.factor != 1.0f {
            y *= im.factor;
        }
    } else if im.first != 0u {
        return;
    }
    set_out(token * im.out_stride + column, y);
}
