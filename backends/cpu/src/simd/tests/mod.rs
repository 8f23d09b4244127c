//! Every operation against a scalar, in every tier.

mod floats;
mod integers;
mod memory;

use super::{Isa, Kernel, LANES, Tier, first_lanes, random::Random};

/// Values where operations go wrong, and ordinary ones.
fn floats() -> Vec<[f32; LANES]> {
    let mut x = vec![
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            -2.5,
            8_388_607.5,
            8_388_609.0,
            -4_194_303.5,
            f32::MIN_POSITIVE,
            1e-45,
            -1e-45,
        ],
        [
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN,
            2_147_483_648.0,
            -2_147_483_648.0,
            2_147_483_520.0,
            -2_147_483_904.0,
            127.5,
            128.5,
            -128.5,
            0.499_999_97,
            1e-40,
            16_777_217.0,
            3.0,
        ],
    ];
    let mut random = Random::new(1);
    for exponent in -20..20 {
        x.push(std::array::from_fn(|_| random.float() * 2f32.powi(exponent)));
    }
    x
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn masks_of_first_lanes() {
    assert_eq!(first_lanes(0), 0);
    assert_eq!(first_lanes(3), 0b111);
    assert_eq!(first_lanes(16), 0xffff);
    assert_eq!(first_lanes(100), 0xffff);
}

/// What a tier is compiled for.
struct TileRows;

impl Kernel for TileRows {
    type Output = usize;
    fn run<I: Isa>(self, _: I) -> usize {
        I::TILE_ROWS
    }
}

#[test]
fn tiers_have_names() {
    let names: Vec<_> = Tier::available().map(Tier::name).collect();
    assert_eq!(names[0], "portable");
    assert_eq!(Tier::best().to_string(), names[names.len() - 1]);
    // The most rows of a tile of weights: what each instruction set has registers for.
    for tier in Tier::available() {
        let expected = match tier.name() {
            "portable" => 4,
            "avx512" | "amx" => 12,
            _ => 2,
        };
        assert_eq!(tier.run(TileRows), expected, "{tier}");
    }
}
