// Some columns of keys or values of some positions, brought to shared memory in words of 32 bits for all rows of a block: what
// is read there knows nothing of blocks and storage types.
#pragma once
#include "attention/element.cuh"
#include "attention/visible.cuh"
#include "team.cuh"

// Positions that are staged together, and words of each; four words are padding, so that lanes which read a word of eight
// positions each find it in different banks.
constexpr i32 STAGED = 64, STAGED_WORDS = 64, STAGED_STRIDE = STAGED_WORDS + 4;

// What a word holds: an element as F32 with its scale, four elements of INT8, or one of them as a whole number.
enum Kind : i32 { WIDENED, PACKED, WHOLE };

template <Kind KIND> constexpr i32 ELEMENTS_OF_WORD = KIND == PACKED ? 4 : 1;

// Keys or values of one KV head.
struct CacheRows {
    const u8* rows;
    const f32* scales; // of INT8, or null
    i64 stride;        // elements from a row to the next
    i32 columns, format;
    bool wide; // rows begin at multiples of 16 bytes and are of whole ones, but for what is read of them
};

struct alignas(16) Words {
    u32 words[4];
};

DEVICE Words* four_words(u32* at) { return reinterpret_cast<Words*>(at); }

// 16 bytes of T to words.
template <Kind KIND, typename T> DEVICE void stage_vector(u32* to, const u8* from, f32 scale) {
    constexpr i32 COUNT = LANES_OF_16_BYTES<T>;
    if constexpr (KIND == PACKED) {
        *four_words(to) = *reinterpret_cast<const Words*>(from);
    } else {
        const Vector<T, COUNT> vector = *reinterpret_cast<const Vector<T, COUNT>*>(from);
#pragma unroll
        for (i32 i = 0; i < COUNT; i += 4) {
            Words words;
#pragma unroll
            for (i32 k = 0; k < 4; k++) {
                if constexpr (KIND == WHOLE) {
                    words.words[k] = static_cast<u32>(static_cast<i32>(vector.elements[i + k]));
                } else if constexpr (sizeof(T) == 1) {
                    words.words[k] = __float_as_uint(static_cast<f32>(vector.elements[i + k]) * scale);
                } else {
                    words.words[k] = __float_as_uint(widen(vector.elements[i + k]));
                }
            }
            *four_words(to + i) = words;
        }
    }
}

// The word `word` of a row that begins anywhere; 0 beyond its last element.
template <Kind KIND> DEVICE u32 word_of(const CacheRows& from, i64 row, i32 word) {
    if constexpr (KIND == WIDENED) {
        if (word >= from.columns) return 0;
        const f32 x = element(from.rows, row * from.stride + word, from.format);
        return __float_as_uint(from.scales == nullptr ? x : x * from.scales[row]);
    } else {
        const i8* bytes = reinterpret_cast<const i8*>(from.rows) + row * from.stride;
        if constexpr (KIND == WHOLE) return word < from.columns ? static_cast<u32>(static_cast<i32>(bytes[word])) : 0;
        u32 packed = 0;
        for (i32 i = 0; i < 4 && 4 * word + i < from.columns; i++) {
            packed |= static_cast<u32>(static_cast<u8>(bytes[4 * word + i])) << (8 * i);
        }
        return packed;
    }
}

template <Kind KIND, typename T>
DEVICE void stage_vectors(u32* stage, const CacheRows& from, const i64* rows, i32 first_word, i32 first, i32 end,
                          const Positions& within) {
    constexpr i32 COUNT = LANES_OF_16_BYTES<T>, WORDS = COUNT / ELEMENTS_OF_WORD<KIND>;
    const i32 column = first_word * ELEMENTS_OF_WORD<KIND>;
    const i32 vectors = min(STAGED_WORDS / WORDS, (from.columns - column + COUNT - 1) / COUNT);
    for (i32 i = threadIdx.x; i < (end - first) * vectors; i += BLOCK) {
        const i32 position = first + i / vectors, vector = i % vectors;
        u32* to = stage + position * STAGED_STRIDE + vector * WORDS;
        if (position >= within.first && position < within.end) {
            const i64 row = rows[position];
            const u8* bytes = from.rows + (row * from.stride + column + vector * COUNT) * static_cast<i64>(sizeof(T));
            stage_vector<KIND, T>(to, bytes, from.scales == nullptr ? 1.0f : from.scales[row]);
        } else {
#pragma unroll
            for (i32 k = 0; k < WORDS; k += 4) *four_words(to + k) = Words{};
        }
    }
}

// Words `first_word` and on, as many as there is room for, of positions `first` to `end` of those that `rows` has, fours of
// both; what is not `within` is 0. All threads of a block take part.
template <Kind KIND>
DEVICE void stage_rows(u32* stage, const CacheRows& from, const i64* rows, i32 first_word, i32 first, i32 end,
                       const Positions& within) {
    if (from.wide) {
        if constexpr (KIND != WIDENED) {
            stage_vectors<KIND, i8>(stage, from, rows, first_word, first, end, within);
        } else if (from.format == IS_F32) {
            stage_vectors<KIND, f32>(stage, from, rows, first_word, first, end, within);
        } else if (from.format == IS_F16) {
            stage_vectors<KIND, f16>(stage, from, rows, first_word, first, end, within);
        } else if (from.format == IS_BF16) {
            stage_vectors<KIND, bf16>(stage, from, rows, first_word, first, end, within);
        } else {
            stage_vectors<KIND, i8>(stage, from, rows, first_word, first, end, within);
        }
        return;
    }
    const i32 all = (from.columns + ELEMENTS_OF_WORD<KIND> - 1) / ELEMENTS_OF_WORD<KIND>;
    const i32 words = min(STAGED_WORDS, (all - first_word + 3) / 4 * 4);
    for (i32 i = threadIdx.x; i < (end - first) * words; i += BLOCK) {
        const i32 position = first + i / words, word = i % words;
        const bool there = position >= within.first && position < within.end;
        stage[position * STAGED_STRIDE + word] = there ? word_of<KIND>(from, rows[position], first_word + word) : 0;
    }
}
