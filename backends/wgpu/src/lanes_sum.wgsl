// The sum over a workgroup's LANES, a power of two, to all of them: by halves, in an order of its own.

var<workgroup> lane_sums: array<f32, LANES>;

fn sum_of_lanes(lane: u32, value: f32) -> f32 {
    lane_sums[lane] = value;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane < step {
            lane_sums[lane] += lane_sums[lane + step];
        }
        workgroupBarrier();
    }
    let sum = lane_sums[0];
    workgroupBarrier();
    return sum;
}
