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
    if TYPE == F16 {
        let low = f16_encode(f16_decode(word & 0xffffu) * weight);
        return low | (f16_encode(f16_decode(word >> 16u) * weight) << 16u);
    }
    let low = bf16_encode(bitcast<f32>(word << 16u) * weight);
    return low | (bf16_encode(bitcast<f32>(word & 0xffff0000u) * weight) << 16u);
}
