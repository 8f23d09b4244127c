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

// The word of elements that begin at `i`.
DEVICE u32 word_at(const f32* elements, i32 i) { return __float_as_uint(elements[i]); }
DEVICE u32 word_at(const f16* elements, i32 i) { return elements[i].bits | static_cast<u32>(elements[i + 1].bits) << 16; }
DEVICE u32 word_at(const bf16* elements, i32 i) { return elements[i].bits | static_cast<u32>(elements[i + 1].bits) << 16; }

// Words to global memory at a multiple of their size: a compiler that has them in different places would store each alone.
DEVICE void store_words(void* to, u32 a, u32 b) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b) : "memory");
}
DEVICE void store_words(void* to, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// `N` elements to global memory, rounded.
template <i32 N, typename T> DEVICE void store(T* to, const f32 (&from)[N]) {
    T elements[N];
#pragma unroll
    for (i32 i = 0; i < N; i++) elements[i] = narrow<T>(from[i]);
    constexpr i32 EACH = sizeof(T) == 4 ? 1 : 2;
    constexpr i32 WORDS = N / EACH;
    if constexpr (N == 1) {
        *to = elements[0];
    } else if constexpr (WORDS == 2) {
        store_words(to, word_at(elements, 0), word_at(elements, EACH));
    } else {
        static_assert(WORDS % 4 == 0, "whole vectors of 16 bytes");
#pragma unroll
        for (i32 i = 0; i < N; i += 4 * EACH) {
            store_words(to + i, word_at(elements, i), word_at(elements, i + EACH), word_at(elements, i + 2 * EACH),
                        word_at(elements, i + 3 * EACH));
        }
    }
}
