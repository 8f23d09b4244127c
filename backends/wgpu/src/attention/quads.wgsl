// Keys and values whose rows begin at multiples of 16 bytes: 16 bytes at once.

const F32: u32 = 0u;
const F16: u32 = 1u;
const BF16: u32 = 2u;
const INT8: u32 = 3u;

// Vectors of four elements that 16 bytes hold.
const STEP: u32 = select(select(4u, 2u, FORMAT == F16 || FORMAT == BF16), 1u, FORMAT == F32);

fn key_steps() -> u32 {
    return plan.head_dim / (4u * STEP);
}

fn widened(word: vec4<u32>, i: u32) -> vec4<f32> {
    switch FORMAT {
        case F32: {
            return bitcast<vec4<f32>>(word);
        }
        case F16, BF16: {
            return four_halves(select(word.zw, word.xy, i == 0u), FORMAT == BF16);
        }
        default: {
            return vec4<f32>(unpack4xI8(word[i]));
        }
    }
}

// Elements `4 STEP step` and on of a key.
fn key_step(row: u32, step: u32) -> array<vec4<f32>, STEP> {
    let word = keys(row * key_steps() + step);
    var key: array<vec4<f32>, STEP>;
    for (var i = 0u; i < STEP; i++) {
        key[i] = widened(word, i);
    }
    return key;
}

// The same as four INT8 a word.
fn key_words(row: u32, step: u32) -> array<u32, STEP> {
    let word = keys(row * key_steps() + step);
    var key: array<u32, STEP>;
    for (var i = 0u; i < STEP; i++) {
        key[i] = word[i];
    }
    return key;
}

// Elements `4 quad` and on of a value; beyond its last, anything.
fn value_quad(row: u32, quad: u32) -> vec4<f32> {
    return widened(values(row * (plan.value_stride / (4u * STEP)) + quad / STEP), quad % STEP);
}
