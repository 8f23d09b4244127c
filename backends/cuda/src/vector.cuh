// Elements that lie together, moved by one instruction.
#pragma once
#include "prelude.cuh"

// `N` elements at a multiple of their size.
template <typename T, i32 N> struct alignas(N * sizeof(T)) Vector {
    T elements[N];
};

// So many elements are 16 bytes.
template <typename T> constexpr i32 LANES_OF_16_BYTES = 16 / static_cast<i32>(sizeof(T));

// `N` elements, widened.
template <i32 N, typename T> DEVICE void load(f32 (&to)[N], const T* from) {
    const Vector<T, N> vector = *reinterpret_cast<const Vector<T, N>*>(from);
#pragma unroll
    for (i32 i = 0; i < N; i++) to[i] = widen(vector.elements[i]);
}

// `N` elements, rounded.
template <i32 N, typename T> DEVICE void store(T* to, const f32 (&from)[N]) {
    Vector<T, N> vector;
#pragma unroll
    for (i32 i = 0; i < N; i++) vector.elements[i] = narrow<T>(from[i]);
    *reinterpret_cast<Vector<T, N>*>(to) = vector;
}
