// One invocation a request: how many of its drafts stand, and the token of the first row whose draft does not.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let request = linear_group(group, groups) * 64u + lane;
    if request >= im.requests {
        return;
    }
    let start = table(im.cu_drafts + request);
    let end = table(im.cu_drafts + request + 1u);
    var draft = start;
    while draft < end {
        let token = tokens(draft + request);
        // Chosen drafts stand where they are what the row draws.
        let stands = select(token == drafts(draft), token == 0xffffffffu, DRAWN);
        if !stands {
            break;
        }
        draft++;
    }
    set_accepted(request, i32(draft - start));
    set_next(request, i32(tokens(draft + request)));
}
