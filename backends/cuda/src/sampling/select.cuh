// The candidate at which the running sum of a row passes a goal, in the order of candidates and without sorting them: a digit
// of the place at a time, most significant first, by the sums of each digit's candidates. Sums are whole numbers, so the
// result is exact. NaN is no candidate. What a candidate weighs and where it stands in the order, `Of` says.
#pragma once
#include "sampling/row.cuh"

struct Sum {
    u64 weight;
    u32 count;
};

struct Found {
    u64 place;
    // Weights up to this candidate and with it.
    u64 sum;
};

constexpr i32 DIGITS = 8;
// The first digit of the id.
constexpr i32 ID_DIGIT = 4;
// Sums of each digit, so that not all threads add to the same few.
constexpr i32 COPIES = 4;

__shared__ u64 tally_weight[BLOCK * COPIES];
__shared__ u32 tally_count[BLOCK * COPIES];
// Of each warp.
__shared__ u64 warps_weight[BLOCK / 32];
__shared__ u32 warps_count[BLOCK / 32];
// What one thread tells all.
__shared__ Sum chosen_under;
__shared__ u32 chosen_count, chosen_digit;
__shared__ u64 chosen_place;

// The upper so many digits of a place.
DEVICE u64 upper(i32 digits) { return digits == 0 ? 0 : ~0ull << (64 - 8 * digits); }

// The sum of the candidates that begin with `digits` digits of `prefix`, and whose next digit is this thread's number.
template <typename Of> DEVICE Sum tally(const Row& row, const Of& of, u64 prefix, i32 digits) {
    const i32 lane = threadIdx.x;
    for (i32 slot = lane; slot < BLOCK * COPIES; slot += BLOCK) {
        tally_weight[slot] = 0;
        tally_count[slot] = 0;
    }
    __syncthreads();
    const u64 known = upper(digits);
    for (i64 i = lane; i < row.vocabulary; i += BLOCK) {
        const u64 place = row.place(i);
        if (rank(place) == UNORDERED || (of.in_order(place) & known) != prefix) continue;
        const Sum one = of.candidate(place);
        if (one.count == 0) continue;
        const i32 digit = static_cast<i32>(of.in_order(place) >> (56 - 8 * digits) & 255);
        const i32 slot = digit * COPIES + lane % COPIES;
        if (one.weight > 0) atomicAdd(&tally_weight[slot], one.weight);
        atomicAdd(&tally_count[slot], one.count);
    }
    __syncthreads();
    Sum sum{0, 0};
    for (i32 copy = 0; copy < COPIES; copy++) {
        sum.weight += tally_weight[lane * COPIES + copy];
        sum.count += tally_count[lane * COPIES + copy];
    }
    __syncthreads();
    return sum;
}

DEVICE Sum total(const Sum& mine) {
    const u64 weight = join_team<BLOCK>(mine.weight, AddWhole{});
    const u64 count = join_team<BLOCK>(static_cast<u64>(mine.count), AddWhole{});
    return {weight, static_cast<u32>(count)};
}

// The sum of the threads up to this one and with it.
DEVICE Sum scan(const Sum& mine) {
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Sum sum = mine;
#pragma unroll
    for (i32 distance = 1; distance < 32; distance *= 2) {
        const u64 weight = __shfl_up_sync(ALL_LANES, sum.weight, distance);
        const u32 count = __shfl_up_sync(ALL_LANES, sum.count, distance);
        if (lane >= distance) {
            sum.weight += weight;
            sum.count += count;
        }
    }
    if (lane == 31) {
        warps_weight[warp] = sum.weight;
        warps_count[warp] = sum.count;
    }
    __syncthreads();
    for (i32 earlier = 0; earlier < warp; earlier++) {
        sum.weight += warps_weight[earlier];
        sum.count += warps_count[earlier];
    }
    // Until all have read it nobody writes it again.
    __syncthreads();
    return sum;
}

// The only candidate of a prefix.
template <typename Of> DEVICE u64 only(const Row& row, const Of& of, u64 prefix, i32 digits) {
    const u64 known = upper(digits);
    for (i64 i = threadIdx.x; i < row.vocabulary; i += BLOCK) {
        const u64 place = row.place(i);
        if (rank(place) == UNORDERED || (of.in_order(place) & known) != prefix) continue;
        if (of.candidate(place).count == 1) chosen_place = place;
    }
    __syncthreads();
    const u64 place = chosen_place;
    __syncthreads();
    return place;
}

// The first candidate in the order whose running sum, of weights or of how many there are, is above `goal`, which is below
// the sum of all. `mine` is `tally` of the first `digits` digits, zeros.
template <typename Of>
DEVICE Found pass_goal(const Row& row, const Of& of, i32 digits, Sum mine, bool by_count, u64 goal) {
    u64 prefix = 0, sum = 0;
    while (true) {
        const Sum upto = scan(mine);
        const Sum under{upto.weight - mine.weight, upto.count - mine.count};
        const u64 low = by_count ? under.count : under.weight, high = by_count ? upto.count : upto.weight;
        if (low <= goal && goal < high) {
            chosen_under = under;
            chosen_count = mine.count;
            chosen_digit = threadIdx.x;
        }
        __syncthreads();
        const Sum skipped = chosen_under;
        const bool alone = chosen_count == 1;
        prefix |= static_cast<u64>(chosen_digit) << (56 - 8 * digits);
        digits++;
        __syncthreads();
        sum += skipped.weight;
        goal -= by_count ? skipped.count : skipped.weight;
        if (alone || digits == DIGITS) break;
        mine = tally(row, of, prefix, digits);
    }
    const u64 place = digits < DIGITS ? only(row, of, prefix, digits) : prefix;
    return {place, sum + of.candidate(place).weight};
}
