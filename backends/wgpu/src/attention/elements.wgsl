// Keys and values that begin anywhere: element by element.

const STEP: u32 = 1u;

fn key_steps() -> u32 {
    return (plan.head_dim + 3u) / 4u;
}

// Elements `4 step` and on of a key, beyond its last 0.
fn key_step(row: u32, step: u32) -> array<vec4<f32>, STEP> {
    var key = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        if 4u * step + i < plan.head_dim {
            key[i] = f32(keys(row * plan.head_dim + 4u * step + i));
        }
    }
    return array<vec4<f32>, STEP>(key);
}

// The same as four INT8 a word.
fn key_words(row: u32, step: u32) -> array<u32, STEP> {
    return array<u32, STEP>(pack4xI8(vec4<i32>(key_step(row, step)[0])));
}

// Elements `4 quad` and on of a value, beyond its last 0.
fn value_quad(row: u32, quad: u32) -> vec4<f32> {
    var value = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        if 4u * quad + i < plan.value_dim {
            value[i] = f32(values(row * plan.value_stride + 4u * quad + i));
        }
    }
    return value;
}
