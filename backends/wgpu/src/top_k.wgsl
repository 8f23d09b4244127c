// A workgroup a piece of up to CAPACITY results of a row: it finds the elements that the piece begins and ends with by their
// digits, gathers what lies between in workgroup memory and sorts it there.
//
// Elements are in order by keys of 64 bits, greatest first, all different: the upper word rises with the value, NaN is
// least; the lower word falls with the column.

const LANES: u32 = 256u;
const CAPACITY: u32 = 1024u;
const GREATEST: vec2<u32> = vec2(0xffffffffu, 0xffffffffu);

var<workgroup> counts: array<atomic<u32>, 256>;
var<workgroup> sums: array<u32, 256>;
// A digit, how many keys have a greater one, and how many have it.
var<workgroup> chosen: vec3<u32>;
var<workgroup> gathered: atomic<u32>;
var<workgroup> best: array<vec2<u32>, CAPACITY>;

fn key(start: u32, column: u32) -> vec2<u32> {
    let value = x(start + column);
    var bits = bitcast<u32>(value);
    // -0 is 0.
    bits = select(bits, 0u, (bits & 0x7fffffffu) == 0u);
    var rising = select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
    rising = select(rising, ~rising, SMALLEST);
    return vec2(select(rising, 0u, is_nan(value)), ~column);
}

fn less(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

// The upper so many bytes of a key.
fn upper(bytes: u32) -> vec2<u32> {
    let shift = vec2(8u * (4u - min(bytes, 4u)), 8u * (8u - max(bytes, 4u)));
    return select(vec2(0xffffffffu) << (shift & vec2(31u)), vec2(0u), shift == vec2(32u));
}

// The key of this rank, greatest first, up to the digits that tell it from all others; below those it has zeros, or ones.
fn ranked(start: u32, rank: u32, lane: u32, ones: bool) -> vec2<u32> {
    var prefix = vec2(0u);
    var left = rank;
    for (var digit = 0u; digit < 8u; digit++) {
        atomicStore(&counts[lane], 0u);
        workgroupBarrier();
        let known = upper(digit);
        let shift = 24u - 8u * (digit % 4u);
        for (var column = lane; column < im.columns; column += LANES) {
            let candidate = key(start, column);
            if all((candidate & known) == prefix) {
                atomicAdd(&counts[extractBits(select(candidate.x, candidate.y, digit >= 4u), shift, 8u)], 1u);
            }
        }
        workgroupBarrier();
        // How many have this digit or a greater one.
        let own = atomicLoad(&counts[lane]);
        sums[lane] = own;
        for (var step = 1u; step < LANES; step *= 2u) {
            workgroupBarrier();
            let more = select(0u, sums[min(lane + step, LANES - 1u)], lane + step < LANES);
            workgroupBarrier();
            sums[lane] += more;
        }
        let above = sums[lane] - own;
        if above <= left && left < above + own {
            chosen = vec3(lane, above, own);
        }
        workgroupBarrier();
        let found = chosen;
        left -= found.y;
        let bits = found.x << shift;
        prefix |= select(vec2(bits, 0u), vec2(0u, bits), digit >= 4u);
        if found.z == 1u {
            return select(prefix, prefix | ~upper(digit + 1u), ones);
        }
    }
    return prefix;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let row = index / im.pieces;
    if row >= im.rows {
        return;
    }
    let start = row * im.x_stride;
    let first = index % im.pieces * CAPACITY;
    let count = min(CAPACITY, im.k - first);
    var most = GREATEST;
    var least = vec2(0u);
    if im.columns > CAPACITY {
        if first > 0u {
            most = ranked(start, first, lane, true);
        }
        if first + count < im.columns {
            workgroupBarrier();
            least = ranked(start, first + count - 1u, lane, false);
        }
    }
    if lane == 0u {
        atomicStore(&gathered, 0u);
    }
    // Beyond what is gathered are keys below all others.
    for (var place = lane; place < CAPACITY; place += LANES) {
        best[place] = vec2(0u);
    }
    workgroupBarrier();
    for (var column = lane; column < im.columns; column += LANES) {
        let candidate = key(start, column);
        if !less(candidate, least) && !less(most, candidate) {
            best[min(atomicAdd(&gathered, 1u), CAPACITY - 1u)] = candidate;
        }
    }
    workgroupBarrier();
    // A bitonic sort of the power of two that holds them.
    let held = atomicLoad(&gathered);
    for (var size = 2u; size < 2u * held && size <= CAPACITY; size *= 2u) {
        for (var step = size / 2u; step > 0u; step /= 2u) {
            for (var pair = lane; pair < min(held, CAPACITY / 2u); pair += LANES) {
                let a = 2u * pair - (pair & (step - 1u));
                let b = a + step;
                let rising = (a & size) != 0u;
                let left = best[a];
                let right = best[b];
                if less(left, right) != rising {
                    best[a] = right;
                    best[b] = left;
                }
            }
            workgroupBarrier();
        }
    }
    for (var place = lane; place < count; place += LANES) {
        let column = ~best[place].y;
        let to = row * im.values_stride + first + place;
        for (var word = 0u; word < PARTS; word++) {
            set_values(PARTS * to + word, source(PARTS * (start + column) + word));
        }
        set_ids(row * im.ids_stride + first + place, i32(column));
    }
}
