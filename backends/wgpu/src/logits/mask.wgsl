// One invocation a token of the rows that have a mask: minus infinity where its bit is 0; at least the least finite number
// where it is 1.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let masked = index / im.row_groups;
    let token = index % im.row_groups * 256u + lane;
    if masked >= im.masked || token >= im.vocabulary {
        return;
    }
    let place = table(im.masked_start + masked) * im.row_stride + token;
    let word = table(im.masks_start + masked * im.mask_words + token / 32u);
    if ((word >> (token % 32u)) & 1u) == 0u {
        set_logits(place, 0xff800000u);
        return;
    }
    let bits = logits(place);
    if (bits & 0x7fffffffu) > 0x7f800000u || bits == 0xff800000u {
        set_logits(place, 0xff7fffffu);
    }
}
