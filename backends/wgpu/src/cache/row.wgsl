// A row of keys or values, one token's of one head, to its slot in the format of the cache. The shader that this is part
// of has the rows: `element(kind, token, head, d)`. A workgroup of 64 writes a row, an invocation a word that the row
// reaches into: a word that it fills is stored, of others only its own bytes are changed.

const KEYS: u32 = 0u;
const VALUES: u32 = 1u;

const F32: u32 = 0u;
const F16: u32 = 1u;
const BF16: u32 = 2u;
const INT8: u32 = 3u;

var<workgroup> largest: atomic<u32>;

fn put(kind: u32, word: u32, bits: u32, mask: u32) {
    if kind == KEYS {
        let at = keys_at(word);
        if mask == 0xffffffffu {
            atomicStore(&keys_words[at], bits);
        } else {
            atomicXor(&keys_words[at], (atomicLoad(&keys_words[at]) ^ bits) & mask);
        }
    } else {
        let at = values_at(word);
        if mask == 0xffffffffu {
            atomicStore(&values_words[at], bits);
        } else {
            atomicXor(&values_words[at], (atomicLoad(&values_words[at]) ^ bits) & mask);
        }
    }
}

// The greatest magnitude of a row, as bits: so they are in order, and what is not finite is above all that is.
fn greatest(kind: u32, token: u32, head: u32, dim: u32, lane: u32) -> u32 {
    var most = 0u;
    for (var d = lane; d < dim; d += 64u) {
        most = max(most, bitcast<u32>(element(kind, token, head, d)) & 0x7fffffffu);
    }
    if lane == 0u {
        atomicStore(&largest, 0u);
    }
    workgroupBarrier();
    atomicMax(&largest, most);
    workgroupBarrier();
    return atomicLoad(&largest);
}

fn int8_encode(x: f32, inverse: f32) -> u32 {
    let bits = bitcast<u32>(x);
    var steps = x * inverse;
    if (bits & 0x7f800000u) == 0u {
        // Some devices take subnormal numbers for 0.
        let size = f32(bits & 0x7fffffu) * 0x1p-23f * (inverse * 0x1p-126f);
        steps = select(size, -size, (bits >> 31u) == 1u);
    }
    return bitcast<u32>(i32(clamp(round(steps), -127.0f, 127.0f))) & 0xffu;
}

fn write_row(kind: u32, token: u32, head: u32, lane: u32) {
    let dim = select(im.value_dim, im.key_dim, kind == KEYS);
    var zeros = false;
    var inverse = 0.0f;
    var scale = 0.0f;
    if FORMAT == INT8 {
        let most = greatest(kind, token, head, dim, lane);
        zeros = most >= 0x7f800000u;
        scale = scale_of_greatest(most, 127.0f);
        inverse = divide(1.0f, scale);
    }
    let slot = slots(token);
    if slot < 0 || u32(slot) >= im.cache_slots {
        return;
    }
    let row = u32(slot) * im.kv_heads + head;
    if FORMAT == INT8 && lane == 0u {
        set_scales(select(im.value_scales + row, row, kind == KEYS), scale);
    }
    // In bytes.
    let first = row * dim * BYTES;
    let end = first + dim * BYTES;
    for (var word = first / 4u + lane; word <= (end - 1u) / 4u; word += 64u) {
        let start = max(word * 4u, first);
        let stop = min(word * 4u + 4u, end);
        var bits = 0u;
        var mask = 0u;
        for (var at = start; at < stop; at += BYTES) {
            let x = element(kind, token, head, (at - first) / BYTES);
            var code = 0u;
            switch FORMAT {
                case F32: {
                    code = bitcast<u32>(x);
                }
                case F16: {
                    code = f16_encode(x);
                }
                case BF16: {
                    code = bf16_encode(x);
                }
                default: {
                    code = select(int8_encode(x, inverse), 0u, zeros);
                }
            }
            bits = insertBits(bits, code, 8u * (at & 3u), 8u * BYTES);
            mask = insertBits(mask, 0xffffffffu, 8u * (at & 3u), 8u * BYTES);
        }
        put(kind, word, bits, mask);
    }
}
