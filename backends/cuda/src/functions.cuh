// Activation functions. The numbers are those of `activation::code`.
#pragma once
#include "prelude.cuh"

constexpr f32 LARGEST = 0x1.fffffep+127f;

// x * sigmoid(at). At minus infinity the limit: a finite x that far down gives -0 instead of NaN.
DEVICE f32 gate(f32 x, f32 at) {
    const f32 finite = at < 0.0f && x < -LARGEST ? -LARGEST : x;
    return finite / (1.0f + expf(-at));
}

DEVICE f32 activate(i32 function, f32 x) {
    switch (function) {
    case 0: // SiLU
        return gate(x, x);
    case 1: // GELU by the error function; x at most so far down that the limit is -0 instead of NaN
        return (x < -LARGEST ? -LARGEST : x) * (0.5f * erfcf(-0.70710678f * x));
    case 2: // x/2 (1 + tanh(t)) is x * sigmoid(2t), which does not cancel
        return gate(x, x * fmaf(x * x, 7.1354814e-2f, 1.595769f));
    case 3: // GELU by the sigmoid
        return gate(x, 1.702f * x);
    case 4: // ReLU; NaN is not below 0
        return x < 0.0f ? 0.0f : x;
    default: { // ReLU, squared
        const f32 y = x < 0.0f ? 0.0f : x;
        return y * y;
    }
    }
}

// Clamped SwiGLU; NaN stays NaN through the clamps.
DEVICE f32 clamped_swiglu(f32 g, f32 u, f32 alpha, f32 limit) {
    const f32 low = g > limit ? limit : g;
    const f32 up = u > limit ? limit : u < -limit ? -limit : u;
    return gate(low, alpha * low) * (up + 1.0f);
}
