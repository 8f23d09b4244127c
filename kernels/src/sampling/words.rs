//! How rows are sampled, as words for backends whose kernels read a step's parameters from a table.

use super::{SamplingParams, VerifyCapacity, VerifyStep, acceptance_uniform, residual_uniform, uniform};

/// Words of a row's parameters, see [`SamplingParams::words`].
pub const ROW_WORDS: usize = 9;

impl SamplingParams {
    /// Whether the row is drawn from: a single candidate is the greedy choice at any temperature.
    pub fn is_drawn(&self) -> bool {
        self.temperature > 0.0 && self.top_k != 1
    }

    /// The row for a kernel, which has the drafted token `draft` of a step, if any. The draws are made here, since they
    /// depend on nothing that only the device knows.
    ///
    /// | word | what |
    /// |---|---|
    /// | 0, 1 | F32 factors of a logit's distance from the greatest, one after the other: together `1 / temperature`, and neither is subnormal or infinite. The second is 0 where the row is not drawn from |
    /// | 2 | `top_k`; 0 keeps all |
    /// | 3 | `top_p` in units of 2^-32, at least 1; 0 keeps all |
    /// | 4 | F32 `min_p` |
    /// | 5, 6, 7 | [`uniform`], [`acceptance_uniform`] and [`residual_uniform`] in units of 2^-32 |
    /// | 8 | the number of the drafted token; all ones where there is none |
    pub fn words(&self, draft: Option<u32>) -> [u32; ROW_WORDS] {
        let SamplingParams { temperature, top_k, top_p, min_p, seed, position } = *self;
        let (mut before, mut scale) = (1.0f32, 0.0f32);
        if self.is_drawn() {
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
        let draws =
            [uniform, acceptance_uniform, residual_uniform].map(|draw| fraction(draw(seed, position)));
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
}

impl VerifyCapacity {
    /// Rows of logits that a step has at most.
    pub fn max_rows(&self) -> usize {
        self.max_requests.saturating_add(self.max_drafts)
    }

    /// Words that [`VerifyStep::words`] appends at most.
    pub fn max_words(&self) -> usize {
        self.max_rows().saturating_mul(ROW_WORDS).saturating_add(self.max_requests).saturating_add(1)
    }
}

impl VerifyStep<'_> {
    /// Appends [`SamplingParams::words`] of each row of logits, with the drafted token of that place, and behind them all
    /// of `cu_drafts`.
    pub fn words(&self, words: &mut Vec<u32>) {
        for (params, drafts) in self.params.iter().zip(self.cu_drafts.windows(2)) {
            let range = drafts[0]..drafts[1];
            let drafts = range.map(Some).chain([None]);
            for (place, draft) in drafts.enumerate() {
                let params = params.clone().at(params.position.wrapping_add(place as u64));
                words.extend(params.words(draft));
            }
        }
        words.extend_from_slice(self.cu_drafts);
    }
}

/// Bits of a candidate's weight where weights are whole numbers of units of `2^-bits`: as many as a 64-bit sum over the
/// vocabulary has room for, at most 44. Such sums are exact in any order, so a row's draw depends on nothing but the row.
pub fn weight_bits(vocabulary: usize) -> u32 {
    (63 - vocabulary.max(1).next_power_of_two().trailing_zeros()).min(44)
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
            let row = SamplingParams::seeded(temperature, 1).words(None);
            assert_eq!([row[0], row[1]], [before, scale].map(f32::to_bits), "temperature {temperature}");
        }
        assert_eq!(SamplingParams::seeded(1.0, 1).with_top_k(1).words(None)[1], 0);
    }

    #[test]
    fn masses_and_draws_are_fractions_of_2_to_the_32() {
        let params = |top_p| SamplingParams::seeded(1.0, 7).with_top_p(top_p).at(3);
        for (top_p, mass) in [(1.0, 0), (0.5, 1 << 31), (1e-30, 1), (1.0 - 2f32.powi(-24), u32::MAX - 255)] {
            assert_eq!(params(top_p).words(Some(5))[3], mass, "{top_p}");
        }
        let row = params(1.0).words(Some(5));
        assert_eq!(row[5] as f32 / 2f32.powi(32), uniform(7, 3));
        assert_eq!(row[6] as f32 / 2f32.powi(32), acceptance_uniform(7, 3));
        assert_eq!(row[7] as f32 / 2f32.powi(32), residual_uniform(7, 3));
        assert_eq!(row[8], 5);
        assert_eq!(params(1.0).words(None)[8], u32::MAX);
    }

    #[test]
    fn a_request_has_a_row_a_draft_and_one_more() {
        let params = [SamplingParams::seeded(1.0, 7).at(u64::MAX), SamplingParams::greedy().with_top_k(3)];
        let (cu_drafts, mut words) = ([0, 2, 2], vec![1]);
        VerifyStep { params: &params, cu_drafts: &cu_drafts }.words(&mut words);
        let [first, second] = params;
        let rows = [
            first.clone().words(Some(0)),
            first.clone().at(0).words(Some(1)),
            first.at(1).words(None),
            second.words(None),
        ];
        assert_eq!(words[0], 1, "what stood there stays");
        assert_eq!(words[1..][..4 * ROW_WORDS], rows.concat());
        assert_eq!(words[1 + 4 * ROW_WORDS..], cu_drafts);
        assert_eq!(
            words.len() - 1,
            VerifyCapacity::new(2, 2).max_words(),
            "the room that is planned is full"
        );
    }

    #[test]
    fn sums_of_weights_have_room() {
        for vocabulary in [1, 2, 3, 50_257, 151_936, 262_144, 1 << 21, (1 << 24) - 1, i32::MAX as usize] {
            let bits = weight_bits(vocabulary);
            assert!((vocabulary as u128) << bits <= 1 << 63, "{vocabulary}: {bits} bits");
            assert!((32..=44).contains(&bits), "{vocabulary}: {bits} bits");
            assert!(bits >= 42 || vocabulary > 1 << 21, "{vocabulary}: {bits} bits");
        }
    }
}
