// What a row's candidates weigh: exp((logit - greatest) / temperature), from 0 to 1, as whole numbers of 2^-bits.

// At temperatures above 2^64 logits are scaled before they are subtracted: a difference that F32 does not hold may weigh
// as much as any.
var<private> before: f32;
var<private> scale: f32;
var<private> greatest: f32;

fn weigh_from(rank: u32, times: f32, then: f32) {
    before = times;
    scale = then;
    greatest = bitcast<f32>(bits_of(rank)) * times;
}

fn has_weights(rank: u32) -> bool {
    return rank >= 0x00800000u && rank < 0xff800000u;
}

fn weight_of(rank: u32) -> f32 {
    if rank >= 0xff800000u {
        return 0.0f;
    }
    return exponential((bitcast<f32>(bits_of(rank)) * before - greatest) * scale);
}
