// One invocation an element: of the ranks of this dispatch, in ascending order, after those of the dispatches before.

var<private> value: Value;
var<private> some: bool;

fn take(next: Value) {
    if !some {
        value = next;
        some = true;
    } else if !MAXIMUM {
        value = value + next;
    } else if unordered(next) || (next > value && !unordered(value)) {
        // The first of the greatest, and NaN where there is one.
        value = next;
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * 256u + lane;
    if i >= im.elements {
        return;
    }
    some = false;
    if !FIRST {
        take(sums(i));
    }
    if HAS_X0 {
        take(x0(i));
    }
    if HAS_X1 {
        take(x1(i));
    }
    if HAS_X2 {
        take(x2(i));
    }
    if HAS_X3 {
        take(x3(i));
    }
    if HAS_X4 {
        take(x4(i));
    }
    if HAS_X5 {
        take(x5(i));
    }
    if HAS_OUT {
        set_out(i, value);
    } else {
        set_sums(i, value);
    }
}
