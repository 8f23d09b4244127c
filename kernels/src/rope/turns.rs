//! Cosines and sines of positions, in f64 and quickly.
//!
//! A position is a multiple of 256 and a rest; the turns of both are kept, and their product as complex numbers is the
//! position's turn. So a token takes a few products a pair instead of a sine and a cosine, and what it gets depends on
//! its position alone, whatever step it comes in.

use super::RopeSpec;
use std::collections::HashMap;

/// Positions below this, and its multiples, are kept.
const FINE: u32 = 256;
/// The most turns that are kept, of all positions and pairs.
const KEPT: usize = 1 << 20;

/// The cosine and the sine of each pair at one position.
type Turn = Box<[[f64; 2]]>;

/// Makes a step's tables on the host, for backends whose devices have no f64 to speak of.
#[derive(Debug)]
pub struct Turns {
    frequencies: Vec<f64>,
    /// The axis of each pair; none where there is one.
    pair_axes: Vec<usize>,
    axes: usize,
    /// Of cosines and sines.
    factor: f64,
    kept: HashMap<u32, Turn>,
}

impl Turns {
    /// Of a specification whose check has passed.
    pub fn new(spec: &RopeSpec) -> Self {
        Turns {
            frequencies: spec.frequencies(),
            pair_axes: spec.pair_axes.clone(),
            axes: spec.axes(),
            factor: f64::from(spec.attention_factor()),
            kept: HashMap::new(),
        }
    }

    /// `[tokens, 2, pairs]`, cosines and then sines, of positions `[axes, tokens]`.
    pub fn tables(&mut self, positions: &[u32]) -> Vec<f32> {
        let (tokens, pairs) = (positions.len() / self.axes.max(1), self.frequencies.len());
        let mut table = vec![0.0; tokens * 2 * pairs];
        for (token, cos_sin) in table.chunks_exact_mut(2 * pairs).enumerate() {
            let (cos, sin) = cos_sin.split_at_mut(pairs);
            for axis in 0..self.axes {
                let parts = parts(positions[axis * tokens + token]);
                self.keep(parts);
                let [Some(coarse), Some(fine)] = parts.map(|part| self.kept.get(&part)) else { continue };
                let turns = coarse.iter().zip(fine).zip(cos.iter_mut().zip(sin.iter_mut()));
                for (pair, ((coarse, fine), (cos, sin))) in turns.enumerate() {
                    if self.pair_axes.get(pair).copied().unwrap_or(0) == axis {
                        *cos = ((coarse[0] * fine[0] - coarse[1] * fine[1]) * self.factor) as f32;
                        *sin = ((coarse[1] * fine[0] + coarse[0] * fine[1]) * self.factor) as f32;
                    }
                }
            }
        }
        table
    }

    /// Makes the turns of these positions, where they are not kept.
    fn keep(&mut self, positions: [u32; 2]) {
        if (self.kept.len() + positions.len()) * self.frequencies.len() > KEPT {
            self.kept.clear();
        }
        for position in positions {
            self.kept.entry(position).or_insert_with(|| {
                let turn = |frequency: &f64| (f64::from(position) * frequency).sin_cos();
                self.frequencies.iter().map(turn).map(|(sin, cos)| [cos, sin]).collect()
            });
        }
    }
}

/// The two positions that a position's turn is the product of.
fn parts(position: u32) -> [u32; 2] {
    [position / FINE * FINE, position % FINE]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rope::RopeStyle;

    #[test]
    fn products_of_turns_are_the_turns_of_positions() {
        let spec = RopeSpec::new(128, RopeStyle::HalfSplit, 1 << 31).with_sections(&[20, 44]);
        let positions = [0, 1, 255, 256, 4097, 131_071, 3_000_000, 5, 4_000_000, 70_000, 0, 9, 511, 512];
        let (mut turns, tokens) = (Turns::new(&spec), positions.len() / 2);
        let table = turns.tables(&positions);
        for (token, cos_sin) in table.chunks_exact(128).enumerate() {
            for (pair, frequency) in spec.frequencies().into_iter().enumerate() {
                let position = positions[usize::from(pair >= 20) * tokens + token];
                let (sin, cos) = (f64::from(position) * frequency).sin_cos();
                let off = |got: f32, exact: f64| (f64::from(got) - exact).abs();
                assert!(off(cos_sin[pair], cos) < 6e-8 && off(cos_sin[64 + pair], sin) < 6e-8, "{position}");
            }
            // Alone it gets the same bits.
            let alone = turns.tables(&[positions[token], positions[tokens + token]]);
            assert_eq!(alone, cos_sin);
        }
    }
}
