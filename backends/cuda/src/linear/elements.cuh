// Elements of the family's tensors, whose types are told at run time, as `call.rs` numbers them.
#pragma once
#include "prelude.cuh"

enum Type : i32 { TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_I8, TYPE_U8, TYPE_I32, TYPE_I4 };

DEVICE f32 load_float(const void* from, i64 at, i32 type) {
    if (type == TYPE_F32) return static_cast<const f32*>(from)[at];
    if (type == TYPE_F16) return widen(static_cast<const f16*>(from)[at]);
    return widen(static_cast<const bf16*>(from)[at]);
}

// Rounded to its type; I8 and U8 by their scale and zero point, saturating.
DEVICE void store_result(void* out, i64 at, i32 type, f32 y, f32 output_scale, i32 output_zero) {
    if (type == TYPE_F32) {
        static_cast<f32*>(out)[at] = y;
    } else if (type == TYPE_F16) {
        static_cast<f16*>(out)[at] = narrow<f16>(y);
    } else if (type == TYPE_BF16) {
        static_cast<bf16*>(out)[at] = narrow<bf16>(y);
    } else {
        const f32 steps = rintf(y / output_scale);
        // NaN counts as 0.
        const i32 q = steps == steps ? static_cast<i32>(fminf(fmaxf(steps, -1024.0f), 1024.0f)) + output_zero : output_zero;
        const i32 least = type == TYPE_I8 ? -128 : 0;
        static_cast<u8*>(out)[at] = static_cast<u8>(min(max(q, least), least + 255));
    }
}
