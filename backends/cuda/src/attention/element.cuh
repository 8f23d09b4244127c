// Elements whose type is told at run time: the numbers of `cache::format_code`, and of `call::code` for queries and results.
#pragma once
#include "prelude.cuh"

constexpr i32 IS_F32 = 0, IS_F16 = 1, IS_BF16 = 2, IS_INT8 = 3;

DEVICE f32 element(const void* from, i64 i, i32 type) {
    if (type == IS_F32) return static_cast<const f32*>(from)[i];
    if (type == IS_F16) return widen(static_cast<const f16*>(from)[i]);
    if (type == IS_BF16) return widen(static_cast<const bf16*>(from)[i]);
    return static_cast<f32>(static_cast<const i8*>(from)[i]);
}

DEVICE void put(void* to, i64 i, f32 x, i32 type) {
    if (type == IS_F32) {
        static_cast<f32*>(to)[i] = x;
    } else if (type == IS_F16) {
        static_cast<f16*>(to)[i] = narrow<f16>(x);
    } else {
        static_cast<bf16*>(to)[i] = narrow<bf16>(x);
    }
}
