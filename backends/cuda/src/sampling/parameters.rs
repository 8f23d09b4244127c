//! How a row is sampled, as the kernels read it.

use halite_kernels::sampling::{SamplingParams, acceptance_uniform, residual_uniform, uniform};

/// Words of a row in a table; `Parameters` in kept.cuh names them.
pub(super) const ROW_WORDS: usize = 9;

/// Whether a row is drawn from: a single candidate is the greedy choice at any temperature.
pub(super) fn is_drawn(params: &SamplingParams) -> bool {
    params.temperature > 0.0 && params.top_k != 1
}

/// The words of a row, which has the drafted token of this number. The draws are made here: they depend on nothing that
/// only the device knows.
pub(super) fn row(params: &SamplingParams, draft: Option<u32>) -> [u32; ROW_WORDS] {
    let SamplingParams { temperature, top_k, top_p, min_p, seed, position, .. } = *params;
    let (mut before, mut scale) = (1.0f32, 0.0f32);
    if is_drawn(params) {
        // The reciprocal of a subnormal temperature may be infinite, and equal logits would differ by 0 times that.
        scale = (1.0 / temperature).min(f32::MAX);
        if scale < 2f32.powi(-64) {
            before = 2f32.powi(-64);
            scale /= before;
        }
    }
    let fraction = |x: f32| (f64::from(x) * 2f64.powi(32)) as u32;
    // 0 keeps all.
    let mass = if top_p < 1.0 { fraction(top_p).max(1) } else { 0 };
    let draws = [uniform, acceptance_uniform, residual_uniform].map(|draw| fraction(draw(seed, position)));
    [
        before.to_bits(),
        scale.to_bits(),
        top_k,
        mass,
        min_p.to_bits(),
        draws[0],
        draws[1],
        draws[2],
        draft.unwrap_or(u32::MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_told_as_factors_that_no_device_flushes() {
        for (temperature, before, scale) in [
            (0.0, 1.0, 0.0),
            (0.5, 1.0, 2.0),
            (1e-45, 1.0, f32::MAX),
            (2f32.powi(127), 2f32.powi(-64), 2f32.powi(-63)),
        ] {
            let row = row(&SamplingParams::seeded(temperature, 1), None);
            assert_eq!([row[0], row[1]], [before, scale].map(f32::to_bits), "temperature {temperature}");
        }
        assert_eq!(row(&SamplingParams::seeded(1.0, 1).with_top_k(1), None)[1], 0);
    }

    #[test]
    fn masses_and_draws_are_fractions_of_2_to_the_32() {
        let params = |top_p| SamplingParams::seeded(1.0, 7).with_top_p(top_p).at(3);
        for (top_p, mass) in [(1.0, 0), (0.5, 1 << 31), (1e-30, 1), (1.0 - 2f32.powi(-24), u32::MAX - 255)] {
            assert_eq!(row(&params(top_p), Some(5))[3], mass, "{top_p}");
        }
        let row = row(&params(1.0), Some(5));
        assert_eq!(row[5] as f32 / 2f32.powi(32), uniform(7, 3));
        assert_eq!(row[6] as f32 / 2f32.powi(32), acceptance_uniform(7, 3));
        assert_eq!(row[7] as f32 / 2f32.powi(32), residual_uniform(7, 3));
        assert_eq!(row[8], 5);
    }
}
