// A row that an activation makes of a row of X.
#pragma once
#include "functions.cuh"
#include "vector.cuh"

// What the host passes; `ActivatedRow` in activation.rs.
struct Activated {
    i32 function;    // of `activate`; CLAMPED for clamped SwiGLU
    i32 interleaved; // gate and up in pairs
    f32 alpha, limit;
};

constexpr i32 CLAMPED = 6;

// A gated unit.
DEVICE f32 unit(f32 g, f32 u, const Activated& a) {
    return a.function == CLAMPED ? clamped_swiglu(g, u, a.alpha, a.limit) : activate(a.function, g) * u;
}

// Columns c to c + N of a plain row.
template <i32 N, typename T> DEVICE void plain(f32 (&y)[N], const T* x, i64 c, const Activated& a) {
    load<N>(y, x + c);
#pragma unroll
    for (i32 i = 0; i < N; i++) y[i] = activate(a.function, y[i]);
}

// Columns c to c + N of a gated row of `columns` results.
template <i32 N, typename T> DEVICE void gated(f32 (&y)[N], const T* x, i64 columns, i64 c, const Activated& a) {
    f32 first[N], second[N];
    load<N>(first, x + (a.interleaved ? 2 * c : c));
    load<N>(second, x + (a.interleaved ? 2 * c + N : columns + c));
#pragma unroll
    for (i32 i = 0; i < N; i++) {
        f32 g = first[i], u = second[i];
        if (a.interleaved) {
            // Element e of the 2N: of `first` below N, else of `second`.
            g = 2 * i < N ? first[2 * i % N] : second[2 * i % N];
            u = 2 * i + 1 < N ? first[(2 * i + 1) % N] : second[(2 * i + 1) % N];
        }
        y[i] = unit(g, u, a);
    }
}
