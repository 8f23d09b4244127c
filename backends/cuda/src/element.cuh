// Elements of types that are told at run time. The numbers are those of `element::code`.
#pragma once
#include "prelude.cuh"

constexpr i32 F32 = 0, F16 = 1, BF16 = 2;

// A float, or I8.
DEVICE f32 element(const void* from, i64 i, i32 type) {
    if (type == F32) return static_cast<const f32*>(from)[i];
    if (type == F16) return widen(static_cast<const f16*>(from)[i]);
    if (type == BF16) return widen(static_cast<const bf16*>(from)[i]);
    return static_cast<f32>(static_cast<const i8*>(from)[i]);
}

// A float, rounded.
DEVICE void put(void* to, i64 i, f32 x, i32 type) {
    if (type == F32) {
        static_cast<f32*>(to)[i] = x;
    } else if (type == F16) {
        static_cast<f16*>(to)[i] = narrow<f16>(x);
    } else {
        static_cast<bf16*>(to)[i] = narrow<bf16>(x);
    }
}

// What a float is once it was put.
DEVICE f32 rounded(f32 x, i32 type) {
    if (type == F32) return x;
    return type == F16 ? widen(narrow<f16>(x)) : widen(narrow<bf16>(x));
}
