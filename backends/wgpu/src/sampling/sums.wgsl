// Sums over the lanes of a workgroup: of weights, and of how many there are.

struct Sum {
    weight: vec2<u32>,
    count: u32,
}

var<workgroup> lanes_count: array<u32, 256>;
// What one lane tells all.
var<workgroup> chosen: array<u32, 5>;

fn sum_of(a: Sum, b: Sum) -> Sum {
    return Sum(wide_sum(a.weight, b.weight), a.count + b.count);
}

// The sum of the lanes up to this one and with it; that of all is the last lane's.
fn scan(lane: u32, mine: Sum) -> Sum {
    var sum = mine;
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        lanes_low[lane] = sum.weight.x;
        lanes_high[lane] = sum.weight.y;
        lanes_count[lane] = sum.count;
        workgroupBarrier();
        if lane >= reach {
            let other = lane - reach;
            sum = sum_of(sum, Sum(vec2(lanes_low[other], lanes_high[other]), lanes_count[other]));
        }
        workgroupBarrier();
    }
    return sum;
}

fn total(lane: u32, mine: Sum) -> Sum {
    let sum = scan(lane, mine);
    if lane == 255u {
        chosen[0] = sum.weight.x;
        chosen[1] = sum.weight.y;
        chosen[2] = sum.count;
    }
    workgroupBarrier();
    let all = Sum(vec2(chosen[0], chosen[1]), chosen[2]);
    workgroupBarrier();
    return all;
}
