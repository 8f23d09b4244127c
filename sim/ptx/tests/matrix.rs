//! `mma.sync`, `ldmatrix`, `stmatrix`, `movmatrix`: which lane holds which element, and what is multiplied.
//!
//! The layouts are written out here element by element, as the PTX manual's figures have them, and not by the formulas of
//! the interpreter.

mod common;

use common::run;
use half::{bf16, f16};

/// A generator of small numbers.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

/// What one instruction multiplies: `a` is m x k, `b` k x 8, both by rows, in bits of `width`.
struct Tiles<'a> {
    m: usize,
    k: usize,
    width: usize,
    a: &'a dyn Fn(usize, usize) -> u64,
    b: &'a dyn Fn(usize, usize) -> u64,
}

/// A's element `i` of a lane: group g, thread t in it. The manual's rule for tiles of 16 rows: elements alternate between
/// row g and g + 8 by registers, and go on along k after two registers.
fn row_and_column(tiles: &Tiles<'_>, lane: usize, i: usize) -> (usize, usize) {
    let (g, t, each) = (lane >> 2, lane & 3, 32 / tiles.width);
    let (register, within) = (i / each, i % each);
    let step = 4 * each;
    match (tiles.m, register) {
        (8, 0) => (g, t * each + within),
        (16, 0) => (g, t * each + within),
        (16, 1) => (g + 8, t * each + within),
        (16, 2) => (g, t * each + within + step),
        _ => (g + 8, t * each + within + step),
    }
}

/// D of each lane's registers, with C zero; at most four registers of A and two of B.
fn multiply(instruction: &str, tiles: &Tiles<'_>, registers_of_d: usize) -> Vec<Vec<u64>> {
    let each = 32 / tiles.width;
    let registers_of_a = tiles.m * tiles.k / 32 / each;
    let registers_of_b = tiles.k * 8 / 32 / each;
    let inputs: Vec<[u64; 3]> = (0..32)
        .map(|lane| {
            let mut words = [0u64; 6];
            for i in 0..registers_of_a * each {
                let (row, column) = row_and_column(tiles, lane, i);
                words[i / each] |= (tiles.a)(row, column) << (i % each * tiles.width);
            }
            for i in 0..registers_of_b * each {
                let (g, t) = (lane >> 2, lane & 3);
                let k = t * each + i % each + if i >= each { 4 * each } else { 0 };
                words[4 + i / each] |= (tiles.b)(k, g) << (i % each * tiles.width);
            }
            [words[0] | words[1] << 32, words[2] | words[3] << 32, words[4] | words[5] << 32]
        })
        .collect();
    let names = |from: usize, count: usize| {
        let names: Vec<String> = (from..from + count).map(|i| format!("%r{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let zeros: Vec<&str> = vec!["%r29"; registers_of_d];
    (0..registers_of_d)
        .map(|register| {
            let body = format!(
                "mov.b64 {{%r10, %r11}}, %d1; mov.b64 {{%r12, %r13}}, %d2; mov.b64 {{%r14, %r15}}, %d3;
                mov.b32 %r29, 0;
                {instruction} {}, {}, {}, {{{}}};
                cvt.u64.u32 %d0, %r{};",
                names(20, registers_of_d),
                names(10, registers_of_a),
                names(14, registers_of_b),
                zeros.join(", "),
                20 + register,
            );
            run(&body, "", &inputs)
        })
        .collect()
}

/// The row and column of D that register `i` of a lane has.
fn of_d(lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane & 3);
    match i {
        0 => (g, 2 * t),
        1 => (g, 2 * t + 1),
        2 => (g + 8, 2 * t),
        _ => (g + 8, 2 * t + 1),
    }
}

/// Bytes, by their signs, against sums in i64.
fn bytes(m: usize, k: usize, signs: [bool; 2]) {
    let mut numbers = Numbers(5);
    let a: Vec<u8> = (0..m * k).map(|_| numbers.next() as u8).collect();
    let b: Vec<u8> = (0..k * 8).map(|_| numbers.next() as u8).collect();
    let value = |byte: u8, signed: bool| if signed { i64::from(byte as i8) } else { i64::from(byte) };
    let name = |signed| if signed { "s8" } else { "u8" };
    let instruction =
        format!("mma.sync.aligned.m{m}n8k{k}.row.col.s32.{}.{}.s32", name(signs[0]), name(signs[1]));
    let element_a = |row: usize, column: usize| u64::from(a[row * k + column]);
    let element_b = |row: usize, column: usize| u64::from(b[row * 8 + column]);
    let tiles = Tiles { m, k, width: 8, a: &element_a, b: &element_b };
    for (i, lanes) in multiply(&instruction, &tiles, m / 4).iter().enumerate() {
        for (lane, &result) in lanes.iter().enumerate() {
            let (row, column) = of_d(lane, i);
            let sum: i64 =
                (0..k).map(|j| value(a[row * k + j], signs[0]) * value(b[j * 8 + column], signs[1])).sum();
            assert_eq!(result as u32 as i32, sum as i32, "{instruction}, lane {lane}, register {i}");
        }
    }
}

#[test]
fn products_of_bytes() {
    for signs in [[true, true], [false, false], [true, false], [false, true]] {
        bytes(8, 16, signs);
        bytes(16, 16, signs);
        bytes(16, 32, signs);
    }
}

/// Floats: small integers and halves, whose sums every format has.
fn floats(name: &str, k: usize, width: usize, encode: &dyn Fn(f32) -> u64) {
    let mut numbers = Numbers(9);
    let mut small =
        |count: usize| -> Vec<f32> { (0..count).map(|_| (numbers.next() % 17) as f32 / 2.0 - 4.0).collect() };
    let (a, b) = (small(16 * k), small(k * 8));
    let element_a = |row: usize, column: usize| encode(a[row * k + column]);
    let element_b = |row: usize, column: usize| encode(b[row * 8 + column]);
    let tiles = Tiles { m: 16, k, width, a: &element_a, b: &element_b };
    let instruction = format!("mma.sync.aligned.m16n8k{k}.row.col.f32.{name}.{name}.f32");
    for (i, lanes) in multiply(&instruction, &tiles, 4).iter().enumerate() {
        for (lane, &result) in lanes.iter().enumerate() {
            let (row, column) = of_d(lane, i);
            let sum: f32 = (0..k).map(|j| a[row * k + j] * b[j * 8 + column]).sum();
            assert_eq!(f32::from_bits(result as u32), sum, "{instruction}, lane {lane}, register {i}");
        }
    }
    if name != "f16" {
        return;
    }
    // Two sums a register, of the two columns.
    let instruction = format!("mma.sync.aligned.m16n8k{k}.row.col.f16.f16.f16.f16");
    for (i, lanes) in multiply(&instruction, &tiles, 2).iter().enumerate() {
        for (lane, &result) in lanes.iter().enumerate() {
            for half in 0..2 {
                let (row, column) = of_d(lane, 2 * i + half);
                let sum: f32 = (0..k).map(|j| a[row * k + j] * b[j * 8 + column]).sum();
                let result = f16::from_bits((result >> (16 * half)) as u16);
                assert_eq!(result, f16::from_f32(sum), "{instruction}, lane {lane}, register {i}");
            }
        }
    }
}

#[test]
fn products_of_floats() {
    let f16_bits = |value| u64::from(f16::from_f32(value).to_bits());
    let bf16_bits = |value| u64::from(bf16::from_f32(value).to_bits());
    floats("f16", 8, 16, &f16_bits);
    floats("f16", 16, 16, &f16_bits);
    floats("bf16", 8, 16, &bf16_bits);
    floats("bf16", 16, 16, &bf16_bits);
    // The lower 13 bits take no part.
    let tf32_bits = |value: f32| u64::from(value.to_bits() | 0x1fff);
    floats("tf32", 4, 32, &tf32_bits);
    floats("tf32", 8, 32, &tf32_bits);
    // The upper byte of an f16 is an E5M2; E4M3 has a bit less of the exponent and one more of the fraction.
    let e5m2_bits = |value| f16_bits(value) >> 8;
    floats("e5m2", 16, 8, &e5m2_bits);
    floats("e5m2", 32, 8, &e5m2_bits);
    let e4m3_bits = |value: f32| {
        let bits = f16_bits(value.abs()) >> 7;
        u64::from(value < 0.0) << 7 | if value == 0.0 { 0 } else { bits - (8 << 3) }
    };
    floats("e4m3", 16, 8, &e4m3_bits);
    floats("e4m3", 32, 8, &e4m3_bits);
}

/// C is added, and what overflows wraps or saturates.
#[test]
fn sums_of_integers() {
    let ones = "mov.b32 %r10, 0x01010101; mov.b32 %r11, 0x7fffffff; mov.b32 %r12, 5;";
    let product = |saturate: &str| {
        format!(
            "{ones} mma.sync.aligned.m16n8k32.row.col{saturate}.s32.s8.s8.s32 {{%r20, %r21, %r22, %r23}},
            {{%r10, %r10, %r10, %r10}}, {{%r10, %r10}}, {{%r11, %r12, %r11, %r12}};"
        )
    };
    let register = |saturate: &str, i: u32| {
        run(&format!("{} cvt.u64.u32 %d0, %r{i};", product(saturate)), "", &[[0; 3]; 32])
    };
    assert_eq!(register("", 20), [0x8000_001f; 32]);
    assert_eq!(register(".satfinite", 20), [0x7fff_ffff; 32]);
    assert_eq!(register("", 21), [37; 32]);
    assert_eq!(register(".satfinite", 23), [37; 32]);
}

/// Products are exact, and the sum is rounded once.
#[test]
fn sums_of_floats() {
    // 2^11 · 2^11 in every one of 16 places, and 1 in C: 2^26 + 1 is no f32, and 2^26 the nearest.
    let body = |c: f32| {
        format!(
            "mov.b32 %r10, 0x68006800; mov.b32 %r11, 0x{:x};
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%r20, %r21, %r22, %r23}},
            {{%r10, %r10, %r10, %r10}}, {{%r10, %r10}}, {{%r11, %r11, %r11, %r11}};
            cvt.u64.u32 %d0, %r20;",
            c.to_bits()
        )
    };
    let result = |c: f32| f32::from_bits(run(&body(c), "", &[[0; 3]; 32])[7] as u32);
    assert_eq!(result(0.0), 67_108_864.0);
    assert_eq!(result(1.0), 67_108_864.0);
    assert_eq!(result(-67_108_864.0), 0.0);
    assert!(result(f32::NAN).to_bits() == 0x7fff_ffff);
}

/// A register of f64 is an element.
#[test]
fn products_of_f64() {
    let body = "cvt.rn.f64.u32 %d4, %r1; cvt.rn.f64.u32 %d5, %r2; mov.b64 %d6, 0;
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d7, %d8}, {%d4}, {%d5}, {%d6, %d6};
        mov.b64 %d0, %d8;";
    // A's row g is g + t, B's column g 10 g + t.
    let inputs: Vec<[u64; 3]> =
        (0..32).map(|lane| [lane / 4 + lane % 4, 10 * (lane / 4) + lane % 4, 0]).collect();
    for (lane, result) in (0u64..32).zip(run(body, "", &inputs)) {
        let (row, column) = (lane / 4, 2 * (lane % 4) + 1);
        let sum: u64 = (0..4).map(|t| (row + t) * (10 * column + t)).sum();
        assert_eq!(f64::from_bits(result), sum as f64, "lane {lane}");
    }
}

/// Rows of a matrix in shared memory: row r has the values 8 r to 8 r + 7.
const FILL: &str = ".shared .align 16 .b8 matrix[128];
    mov.u32 %r10, matrix;
    mad.lo.u32 %r11, %r1, 4, %r10;
    shl.b32 %r12, %r1, 1;
    add.u32 %r13, %r12, 1;
    shl.b32 %r13, %r13, 16;
    or.b32 %r12, %r12, %r13;
    st.shared.b32 [%r11], %r12;
    bar.sync 0;
    and.b32 %r14, %r1, 7;
    mad.lo.u32 %r15, %r14, 16, %r10;";

fn lanes() -> Vec<[u64; 3]> {
    (0..32).map(|lane| [lane, 0, 0]).collect()
}

#[test]
fn matrices_are_loaded_by_rows_and_by_columns() {
    let load = |form: &str| {
        let body = format!(
            "{FILL} ldmatrix.sync.aligned.m8n8.x1{form}.shared.b16 {{%r20}}, [%r15]; cvt.u64.u32 %d0, %r20;"
        );
        run(&body, "", &lanes())
    };
    let plain: Vec<u64> = (0..32).map(|lane| (2 * lane) | ((2 * lane + 1) << 16)).collect();
    assert_eq!(load(""), plain);
    // Lane 4 c + t has of column c the rows 2 t and 2 t + 1.
    let by_columns: Vec<u64> = (0..32)
        .map(|lane| {
            let (column, row) = (lane / 4, lane % 4 * 2);
            (8 * row + column) | ((8 * (row + 1) + column) << 16)
        })
        .collect();
    assert_eq!(load(".trans"), by_columns);
    let moved = format!(
        "{FILL} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r20}}, [%r15];
        movmatrix.sync.aligned.m8n8.trans.b16 %r21, %r20; cvt.u64.u32 %d0, %r21;"
    );
    assert_eq!(run(&moved, "", &lanes()), by_columns);
}

/// Of four matrices each has the addresses of eight lanes.
#[test]
fn four_matrices_have_their_own_rows() {
    let load = |register: u32| {
        // Lane l gives row 7 - l / 8 of the one matrix to all of its rows.
        let body = format!(
            "{FILL} shr.u32 %r16, %r1, 3; sub.u32 %r16, 7, %r16; mad.lo.u32 %r16, %r16, 16, %r10;
            ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r16];
            cvt.u64.u32 %d0, %r{register};"
        );
        run(&body, "", &lanes())
    };
    for i in 0..4u32 {
        let row = u64::from(7 - i);
        let expected: Vec<u64> = (0..32)
            .map(|lane| {
                let first = 8 * row + lane % 4 * 2;
                first | ((first + 1) << 16)
            })
            .collect();
        assert_eq!(load(20 + i), expected, "matrix {i}");
    }
}

#[test]
fn matrices_are_stored() {
    for (form, load) in [("", ""), (".trans", ".trans")] {
        let body = format!(
            "{FILL} ldmatrix.sync.aligned.m8n8.x1{load}.shared.b16 {{%r20}}, [%r15];
            bar.sync 0;
            st.shared.b32 [%r11], 0;
            bar.sync 0;
            stmatrix.sync.aligned.m8n8.x1{form}.shared.b16 [%r15], {{%r20}};
            bar.sync 0;
            ld.shared.b32 %r21, [%r11]; cvt.u64.u32 %d0, %r21;"
        );
        let plain: Vec<u64> = (0..32).map(|lane| (2 * lane) | ((2 * lane + 1) << 16)).collect();
        assert_eq!(run(&body, "", &lanes()), plain, "{form}");
    }
}
