// A word of elements of a type, times a weight.

const F32: u32 = 0u;
const F16: u32 = 1u;
const INT8: u32 = 3u;

fn moved(word: u32, weight: f32) -> u32 {
    if !HAS_WEIGHTS || TYPE == INT8 {
        return word;
    }
    if TYPE == F32 {
        return bitcast<u32>(bitcast<f32>(word) * weight);
    }
    return half_word(four_halves(vec2(word), TYPE != F16).xy * weight, TYPE != F16);
}
