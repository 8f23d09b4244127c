// What every kernel begins with: types of fixed width, 16-bit floats, and the instructions that C++ has no words for. It
// includes nothing, so NVRTC needs no include path and no header of the toolkit.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;

static_assert(sizeof(i16) == 2 && sizeof(i32) == 4 && sizeof(i64) == 8 && sizeof(void*) == 8, "a 64-bit device");

#define DEVICE __device__ __forceinline__
#define KERNEL extern "C" __global__

// 16-bit floats are their bits; what is computed with them is computed in F32.
struct alignas(2) f16 {
    u16 bits;
};
struct alignas(2) bf16 {
    u16 bits;
};

// Two neighbours in memory, moved by one instruction.
template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T first, second;
};

struct alignas(16) Bytes16 {
    u32 words[4];
};

// ---- Conversions: widening is exact, narrowing rounds to nearest even.

DEVICE f32 widen(f32 x) { return x; }

DEVICE f32 widen(f16 x) {
    f32 wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

// A BF16 is the upper half of an F32 (`cvt.f32.bf16` needs sm_90).
DEVICE f32 widen(bf16 x) { return __uint_as_float(static_cast<u32>(x.bits) << 16); }

template <typename T> DEVICE T narrow(f32 x);

template <> DEVICE f32 narrow<f32>(f32 x) { return x; }

template <> DEVICE f16 narrow<f16>(f32 x) {
    f16 rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
    return rounded;
}

template <> DEVICE bf16 narrow<bf16>(f32 x) {
    bf16 rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
    return rounded;
}

// Two neighbours, rounded to T, in the lower and the upper half of a word.
template <typename T> DEVICE u32 narrow_pair(f32 lower, f32 upper);

template <> DEVICE u32 narrow_pair<f16>(f32 lower, f32 upper) {
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
}

template <> DEVICE u32 narrow_pair<bf16>(f32 lower, f32 upper) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
}

// ---- Shared memory: its own 32-bit addresses, as the instructions below take them.

DEVICE u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }

// Four 8x8 matrices of 16-bit elements (or 8x16 of bytes): lane 8i + r gives the address of row r of matrix i, and gets
// elements 2(lane % 4) and the next of row lane / 4 of each.
DEVICE void load_matrices(u32 (&to)[4], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}

// Two of them: lanes 0 to 15 give the addresses.
DEVICE void load_matrices(u32 (&to)[2], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(row)
                 : "memory");
}

// Four, each transposed on the way.
DEVICE void load_transposed(u32 (&to)[4], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}

// 16 bytes to an address that 16 divides.
DEVICE void store_shared(u32 to, const Bytes16& bytes) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(bytes.words[0]), "r"(bytes.words[1]),
                 "r"(bytes.words[2]), "r"(bytes.words[3])
                 : "memory");
}

// 16 bytes from an address that 16 divides.
DEVICE Bytes16 load_shared(u32 from) {
    Bytes16 bytes;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bytes.words[0]), "=r"(bytes.words[1]), "=r"(bytes.words[2]), "=r"(bytes.words[3])
                 : "r"(from)
                 : "memory");
    return bytes;
}

// ---- Copies from global to shared memory that go on while the warp computes.

// 16 bytes, past the first-level cache; those after `valid` (0 to 16) are zeros and are not read.
DEVICE void copy_async_16(u32 to, const void* from, u32 valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(valid)
                 : "memory");
}

// Likewise 4 bytes, of which `valid` are 0 or 4.
DEVICE void copy_async_4(u32 to, const void* from, u32 valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(valid)
                 : "memory");
}

// Closes a group of copies; it may be empty.
DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `PENDING` of this thread's latest groups are under way.
template <i32 PENDING> DEVICE void copy_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

// ---- Products of a warp, d += a * b. Lane l holds of a rows l / 4 and l / 4 + 8, of b column l / 4, of d those rows and
// columns 2(l % 4) and the next.

// 16x32 by 32x8 in I8, exact modulo 2^32.
DEVICE void multiply_add(i32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 16x16 by 16x8 in F16 or BF16, summed in F32. `T` says which.
template <typename T> DEVICE void multiply_add(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);

template <> DEVICE void multiply_add<f16>(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <> DEVICE void multiply_add<bf16>(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
