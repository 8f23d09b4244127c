//! A test of the adapter itself, when a device is made: some pass every check of features and compute wrong results.
//!
//! One dispatch computes a handful of points of everything that kernels rely on and drivers got wrong; the host knows the
//! answers. What WGSL leaves open, such as subnormal numbers of F32, may come out either way.

use crate::{
    device::{NAME, Wgpu},
    launch::{Access, Launch, Shader},
    operand::Operand,
    stream::WgpuStream,
};
use half::{bf16, f16};
use halite_hal::{DType, Device, Error, Pending, Result};

static SELF_TEST: Shader = Shader { name: "self-test", source: &[include_str!("self_test.wgsl")] };

/// Invocations of a workgroup.
const LANES: usize = 256;
/// Workgroups, in two rows, since larger grids have rows.
const GROUPS: [usize; 3] = [4, 2, 1];
/// Points of each check, one an invocation.
const POINTS: usize = LANES * GROUPS[0] * GROUPS[1];

/// What is computed with, the same on every machine.
struct Numbers {
    /// Any words: as integers, as packed bytes, as the bits of floats of every kind.
    a: Vec<u32>,
    b: Vec<u32>,
    /// Arguments of functions; `y` are divisors.
    x: Vec<f32>,
    y: Vec<f32>,
}

impl Numbers {
    fn new() -> Self {
        // A linear congruential generator (Knuth's MMIX constants).
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        // A float of 2^(low - 127) and above, below `powers` powers of two more, of either sign.
        let float = |bits: u32, low: u32, powers: u32| {
            f32::from_bits(bits & 0x807f_ffff | (low + (bits >> 23) % powers) << 23)
        };
        let mut a: Vec<u32> = (0..POINTS).map(|_| random()).collect();
        // Every other one within the range of F16, its subnormal numbers included.
        a.iter_mut().step_by(2).for_each(|a| *a = float(*a, 102, 41).to_bits());
        a[..WORDS.len()].copy_from_slice(&WORDS);
        let mut b: Vec<u32> = (0..POINTS).map(|_| random()).collect();
        // Small divisors too.
        b.iter_mut().step_by(3).for_each(|b| *b >>= 20);
        // -128 · -128, four times.
        (a[POINTS - 1], b[POINTS - 1]) = (0x8080_8080, 0x8080_8080);
        // Quotients stay within the normal range; every other dividend is also within exponential's.
        let mut x: Vec<f32> = (0..POINTS).map(|_| float(random(), 96, 64)).collect();
        x.iter_mut().step_by(2).for_each(|x| *x = random() as i32 as f32 * (88.0 / (1u32 << 31) as f32));
        x[..ARGUMENTS.len()].copy_from_slice(&ARGUMENTS);
        let y = (0..POINTS).map(|_| float(random(), 96, 64)).collect();
        Numbers { a, b, x, y }
    }

    fn bytes(&self) -> Vec<u8> {
        let floats = self.x.iter().chain(&self.y).map(|value| value.to_bits());
        self.a.iter().chain(&self.b).copied().chain(floats).flat_map(u32::to_le_bytes).collect()
    }

    /// `a` of the workgroup that a point belongs to.
    fn group<'a>(&self, of: &'a [u32], point: usize) -> &'a [u32] {
        let start = point / LANES * LANES;
        &of[start..start + LANES]
    }
}

/// Bits of floats where conversions go wrong: zeros, infinities, NaN both ways; F16's largest, what rounds to it and
/// what no longer does, its smallest normal and subnormal numbers and ties between them; BF16's ties and largest.
#[rustfmt::skip]
const WORDS: [u32; 36] = [
    0x0000_0000, 0x8000_0000, 0x3f80_7c00, 0xbf80_fc00, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0000,
    0x7f80_0001, 0xffa1_2345, 0x477f_e000, 0x477f_efff, 0x477f_f000, 0xc77f_ffff, 0x3880_0000, 0x387f_ffff,
    0x387f_efff, 0x387f_f000, 0x3380_0000, 0x3300_0000, 0x3300_0001, 0x32ff_ffff, 0xb3c0_0000, 0xb420_0000,
    0x3f80_1000, 0x3f80_3000, 0x3f80_1001, 0x3f80_8000, 0x3f81_8000, 0x3f80_8001, 0x7f7f_7fff, 0x7f7f_8000,
    0x0080_0000, 0x0000_0001, 0x807f_ffff, 0x7f7f_ffff,
];

/// Where `exponential` changes its way.
const ARGUMENTS: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.346_573_6,
    88.72,
    88.722_83,
    88.73,
    1e30,
    -87.336,
    -87.34,
    -104.0,
    -1e30,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// What a point of a check has to give: the answer is `right` or not.
type Right = fn(&Numbers, point: usize, answer: u32) -> bool;

/// The checks, in the shader's order.
const CHECKS: [(&str, Right); 18] = [
    ("numbers of workgroups", |_, point, answer| answer as usize == point / LANES),
    ("F16 to F32", |numbers, point, answer| {
        let bits = numbers.a[point] as u16;
        same_float(f16::from_bits(bits).to_f32(), f32::from_bits(answer))
    }),
    ("telling NaN and infinity", |numbers, point, answer| {
        let value = f32::from_bits(numbers.a[point]);
        let nan = u32::from(value.is_nan());
        answer == nan | u32::from(value.is_finite()) << 1 | nan << 2
    }),
    ("infinity", |_, _, answer| answer == f32::INFINITY.to_bits()),
    ("sums of products of packed bytes", |numbers, point, answer| {
        let (a, b) = (numbers.a[point].to_le_bytes(), numbers.b[point].to_le_bytes());
        let products = a.into_iter().zip(b).map(|(a, b)| i32::from(a as i8) * i32::from(b as i8));
        answer as i32 == products.sum::<i32>()
    }),
    ("division of unsigned integers", |numbers, point, answer| {
        let (a, b) = (numbers.a[point], numbers.b[point] | 1);
        answer == (a / b) ^ (a % b)
    }),
    ("division of signed integers", |numbers, point, answer| {
        let (a, b) = (numbers.a[point] as i32, (numbers.b[point] >> 1 | 1) as i32);
        answer as i32 == (a / b) ^ (a % b)
    }),
    ("shifts", |numbers, point, answer| {
        let (a, b) = (numbers.a[point], numbers.b[point]);
        answer == (a as i32 >> (b & 31)) as u32 ^ (a << (b >> 5 & 31))
    }),
    ("taking signed bytes out of words", |numbers, point, answer| {
        answer as i32 == i32::from((numbers.a[point] >> (numbers.b[point] % 24)) as i8)
    }),
    ("rounding to nearest even", |numbers, point, answer| {
        let value = ((numbers.a[point] & 0x3ff) as f32 - 512.0) * 0.5;
        answer as i32 == value.round_ties_even() as i32
    }),
    ("the exponential function", |numbers, point, answer| {
        let (x, answer) = (numbers.x[point], f32::from_bits(answer));
        if x > 88.722_83 { answer == f32::INFINITY } else { near(f64::from(x).exp(), answer) }
    }),
    ("division of floats", |numbers, point, answer| {
        let (x, y) = (numbers.x[point], numbers.y[point]);
        same_float(x / y, f32::from_bits(answer))
    }),
    ("workgroup memory", |numbers, point, answer| {
        answer == numbers.group(&numbers.a, point)[LANES - 1 - point % LANES]
    }),
    ("atomic addition", |numbers, point, answer| answer == sum(numbers.group(&numbers.b, point))),
    ("atomic maximum", |numbers, point, answer| {
        Some(&answer) == numbers.group(&numbers.b, point).iter().max()
    }),
    ("sums in workgroup memory", |numbers, point, answer| answer == sum(numbers.group(&numbers.a, point))),
    ("logarithms", |numbers, point, answer| {
        near(f64::from(numbers.y[point].abs()).ln(), f32::from_bits(answer))
    }),
    ("the hyperbolic tangent", |numbers, point, answer| {
        near(f64::from(numbers.x[point]).tanh(), f32::from_bits(answer))
    }),
];

fn sum(of: &[u32]) -> u32 {
    of.iter().fold(0, |sum, &value| sum.wrapping_add(value))
}

/// Within a few units in the last place; of the number below the normal range that it may be flushed from.
fn near(right: f64, answer: f32) -> bool {
    let error = (f64::from(answer) - right).abs();
    right.is_nan() && answer.is_nan()
        || error <= 4.0 * f64::from(f32::EPSILON) * right.abs()
        || error < 1.2e-38
}

/// The same bits; any NaN for a NaN, and 0 for what is below the normal range.
fn same_float(right: f32, answer: f32) -> bool {
    let flushed = right.abs() < f32::MIN_POSITIVE && answer == 0.0;
    right.to_bits() == answer.to_bits() || right.is_nan() && answer.is_nan() || flushed
}

/// Where the answers lie in one buffer, in bytes.
const FOUND: usize = 4 * CHECKS.len() * POINTS;
const HALVES: usize = FOUND + 2 * POINTS;
const BRAINS: usize = HALVES + 2 * POINTS;
const ALL: usize = BRAINS + POINTS;

/// What the bytes hold before: writing half a word must not depend on it.
const BEFORE: u8 = 0xa5;

/// Fails where the adapter computes wrong results.
pub(crate) fn run(gpu: &Wgpu, adapter: &wgpu::AdapterInfo) -> Result<()> {
    let said = |cause: String| Error::Device {
        device: NAME.to_owned(),
        cause: format!("{} cannot be used: {cause}", adapter.name),
    };
    let numbers = Numbers::new();
    let answers = compute(gpu, &numbers).map_err(|error| said(format!("its self-test failed: {error}")))?;
    judge(&numbers, &answers).map_err(|(check, detail)| {
        let driver = format!("{} {}", adapter.driver, adapter.driver_info);
        said(format!(
            "its driver ({}) computes {check} wrong ({detail}); install a newer one, or use another adapter",
            driver.trim()
        ))
    })
}

fn compute(gpu: &Wgpu, numbers: &Numbers) -> Result<Vec<u8>> {
    let mut stream: WgpuStream = gpu.stream()?;
    let (given, answers) = (gpu.alloc(16 * POINTS as u64)?, gpu.alloc(ALL as u64)?);
    stream.stage(&given, 0, &numbers.bytes())?;
    stream.stage(&answers, 0, &[BEFORE; ALL])?;
    let part = |start: usize, end: usize, dtype| Operand::bytes(&answers, start as u64..end as u64, dtype);
    let launch = Launch::new(&SELF_TEST)
        .operand("numbers", Access::Words, Operand::bytes(&given, 0..16 * POINTS as u64, DType::I32))
        .operand("found", Access::Words, part(0, FOUND, DType::I32))
        .operand("halves", Access::Out, part(FOUND, HALVES, DType::F16))
        .operand("brains", Access::Out, part(HALVES, BRAINS, DType::Bf16))
        .operand("bytes", Access::Out, part(BRAINS, ALL, DType::I8))
        .size("points", POINTS);
    stream.launch(launch, GROUPS)?;
    stream.read(&answers, 0, ALL as u64)?.wait()
}

/// The first check that is wrong, and how.
fn judge(numbers: &Numbers, answers: &[u8]) -> std::result::Result<(), (&'static str, String)> {
    let halves = |bytes: &[u8], point| u16::from_le_bytes([bytes[2 * point], bytes[2 * point + 1]]);
    for (check, (name, right)) in CHECKS.iter().enumerate() {
        for point in 0..POINTS {
            let place = 4 * (check * POINTS + point);
            let answer = [0, 1, 2, 3].map(|byte| answers[place + byte]);
            let answer = u32::from_le_bytes(answer);
            if !right(numbers, point, answer) {
                return Err((name, format!("point {point} gave {answer:#010x}")));
            }
        }
    }
    for (point, &bits) in numbers.a.iter().enumerate() {
        let value = f32::from_bits(bits);
        let half = f16::from_bits(halves(&answers[FOUND..HALVES], point));
        let right = f16::from_f32(value);
        if half.to_bits() != right.to_bits() && !(half.is_nan() && right.is_nan()) {
            return Err(("F32 to F16", format!("{bits:#010x} gave {:#06x}", half.to_bits())));
        }
        let brain = bf16::from_bits(halves(&answers[HALVES..BRAINS], point));
        if !same_float(bf16::from_f32(value).to_f32(), brain.to_f32()) {
            return Err(("F32 to BF16", format!("{bits:#010x} gave {:#06x}", brain.to_bits())));
        }
        let byte = answers[BRAINS + point % LANES * (POINTS / LANES) + point / LANES];
        if byte != bits as u8 {
            return Err((
                "neighbouring bytes of a word",
                format!("{:#04x} came to be {byte:#04x}", bits as u8),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_an_adapter_computes_wrong_is_found_and_named() {
        let Some(gpu) = testing::gpu("self-test") else { return };
        let numbers = Numbers::new();
        let answers = compute(&gpu, &numbers).unwrap();
        assert_eq!(judge(&numbers, &answers), Ok(()));
        let named = |place: usize| {
            let mut wrong = answers.clone();
            wrong[place] ^= 0x60;
            judge(&numbers, &wrong).unwrap_err().0
        };
        for (check, (name, _)) in CHECKS.iter().enumerate() {
            // The upper half of a point's word, as one among the points in the middle.
            assert_eq!(named(4 * (check * POINTS + POINTS / 2) + 3), *name);
        }
        assert_eq!(named(FOUND + POINTS), "F32 to F16");
        assert_eq!(named(HALVES + POINTS), "F32 to BF16");
        assert_eq!(named(BRAINS + POINTS / 2), "neighbouring bytes of a word");
    }

    #[test]
    fn numbers_meet_what_goes_wrong() {
        let numbers = Numbers::new();
        let halves = || numbers.a.iter().map(|&bits| f16::from_bits(bits as u16));
        assert!(halves().any(f16::is_nan) && halves().any(f16::is_infinite));
        let subnormal = |half: &f16| half.classify() == std::num::FpCategory::Subnormal;
        assert!(halves().filter(subnormal).count() > 10);
        let converted = || numbers.a.iter().map(|&bits| f16::from_f32(f32::from_bits(bits)));
        assert!(converted().filter(subnormal).count() > 10);
        let quotients = numbers.x.iter().zip(&numbers.y).map(|(x, y)| (x / y).abs());
        let odd = quotients.filter(|q| !(f32::MIN_POSITIVE..f32::MAX).contains(q)).count();
        assert!(odd < ARGUMENTS.len(), "{odd}");
    }
}
