// Floats of a type that is known when a kernel runs: for kernels that gain nothing from being compiled for each type.
#pragma once
#include "prelude.cuh"

// The numbers are `launch::float_type`'s.
constexpr i32 F32 = 0, F16 = 1, BF16 = 2;

DEVICE f32 read_float(const void* from, i64 i, i32 type) {
    if (type == F32) return static_cast<const f32*>(from)[i];
    const u16 bits = static_cast<const u16*>(from)[i];
    return type == F16 ? widen(f16{bits}) : widen(bf16{bits});
}

DEVICE void write_float(void* to, i64 i, f32 x, i32 type) {
    if (type == F32) {
        static_cast<f32*>(to)[i] = x;
    } else if (type == F16) {
        static_cast<f16*>(to)[i] = narrow<f16>(x);
    } else {
        static_cast<bf16*>(to)[i] = narrow<bf16>(x);
    }
}
