// A product for each head: rows of tokens times the head's matrix, `[heads, k, n]`; what rows have beyond `k` goes through
// as it is. A workgroup has 128 columns of up to TOKENS rows of a head. Each sum is taken in the order of `k`, whatever
// the rows beside it.

// Elements of each row that are shared at once.
const CHUNK: u32 = 256u;

var<workgroup> shared_rows: array<f32, TOKENS * CHUNK>;

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let columns = im.n + im.carried;
    let column_tiles = (columns + 127u) / 128u;
    let column = index % column_tiles * 128u + lane;
    let head = index / column_tiles % im.heads;
    let first = index / column_tiles / im.heads * TOKENS;
    if first >= im.tokens {
        return;
    }
    let tokens = min(TOKENS, im.tokens - first);
    let x_at = first * im.x_token + head * im.x_head;
    let weights_at = head * im.k * im.n + column;

    var sums: array<f32, TOKENS>;
    for (var start = 0u; start < im.k; start += CHUNK) {
        let len = min(CHUNK, im.k - start);
        workgroupBarrier();
        for (var i = lane; i < TOKENS * CHUNK; i += 128u) {
            let token = i / CHUNK;
            let d = i % CHUNK;
            var value = 0.0f;
            if token < tokens && d < len {
                value = x(x_at + token * im.x_token + start + d);
            }
            shared_rows[i] = value;
        }
        workgroupBarrier();
        if column < im.n {
            for (var d = 0u; d < len; d++) {
                let weight = weights(weights_at + (start + d) * im.n);
                for (var token = 0u; token < TOKENS; token++) {
                    sums[token] = fma(shared_rows[token * CHUNK + d], weight, sums[token]);
                }
            }
        }
    }
    if column >= columns {
        return;
    }
    for (var token = 0u; token < tokens; token++) {
        var value = 0.0f;
        if column < im.n {
            for (var i = 0u; i < TOKENS; i++) {
                if i == token {
                    value = sums[i];
                }
            }
        } else {
            value = x(x_at + token * im.x_token + im.k + column - im.n);
        }
        set_out((first + token) * im.out_token + head * im.out_head + column, value);
    }
}
