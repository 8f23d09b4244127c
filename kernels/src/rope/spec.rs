//! Which rotation.

use super::{CHECK, RopeScaling, scaling::usable};
use halite_hal::{DType, Result};

/// The largest `rotary_dim`: far beyond every model's, and small enough that a spec alone asks for little memory.
pub const MAX_ROTARY_DIM: usize = 1 << 16;

/// The most axes of positions: time, height, width, and one more.
pub const MAX_AXES: usize = 4;

/// Which two elements make pair `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RopeStyle {
    /// `i` and `i + rotary_dim / 2` (Hugging Face's layout).
    HalfSplit,
    /// `2i` and `2i + 1` (the paper's layout, and GGUF's for the Llama family).
    Interleaved,
}

/// Which rotation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RopeSpec {
    /// Elements of a head.
    pub head_dim: usize,
    /// Elements that turn: even, at most `head_dim`.
    pub rotary_dim: usize,
    /// The pairs.
    pub style: RopeStyle,
    /// The base of the frequencies.
    pub theta: f32,
    /// The stretching.
    pub scaling: RopeScaling,
    /// The axis whose position turns each pair, `[rotary_dim / 2]`; empty where positions have one axis.
    pub pair_axes: Vec<usize>,
    /// Positions are below this.
    pub max_positions: usize,
    /// Type of the heads.
    pub dtype: DType,
}

impl RopeSpec {
    /// All of an F32 head, base 10,000, no scaling, positions of one axis.
    pub fn new(head_dim: usize, style: RopeStyle, max_positions: usize) -> Self {
        RopeSpec {
            head_dim,
            rotary_dim: head_dim,
            style,
            theta: 10_000.0,
            scaling: RopeScaling::None,
            pair_axes: Vec::new(),
            max_positions,
            dtype: DType::F32,
        }
    }

    /// Another base.
    pub fn with_theta(mut self, theta: f32) -> Self {
        self.theta = theta;
        self
    }

    /// Only the first `rotary_dim` elements.
    pub fn with_rotary_dim(mut self, rotary_dim: usize) -> Self {
        self.rotary_dim = rotary_dim;
        self
    }

    /// Stretched frequencies.
    pub fn with_scaling(mut self, scaling: RopeScaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Positions of several axes: the first `sections[0]` pairs turn by axis 0, the next `sections[1]` by axis 1, and so
    /// on (Qwen2-VL's `mrope_section`, arXiv:2409.12191).
    pub fn with_sections(self, sections: &[usize]) -> Self {
        // More pairs than any head has are refused by the check; until then they need not be written out.
        let of = |(axis, &pairs): (usize, &usize)| std::iter::repeat_n(axis, pairs.min(MAX_ROTARY_DIM));
        self.with_pair_axes(sections.iter().take(MAX_AXES + 1).enumerate().flat_map(of).collect())
    }

    /// Positions of several axes, each pair's named: Qwen3-VL's go 0, 1, 2, 0, 1, 2 and end with 0.
    pub fn with_pair_axes(mut self, pair_axes: Vec<usize>) -> Self {
        self.pair_axes = pair_axes;
        self
    }

    /// Heads of another type. They are turned in F32 and rounded once.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Axes of a position.
    pub fn axes(&self) -> usize {
        self.pair_axes.iter().max().map_or(1, |&last| last.saturating_add(1))
    }

    /// Checks that the specification makes sense: a backend calls it before it plans.
    ///
    /// # Errors
    /// An odd `rotary_dim` or one beyond `head_dim` or [`MAX_ROTARY_DIM`], a base or factors that are not positive and
    /// finite, axes or divisors for another number of pairs.
    pub fn check(&self) -> Result<()> {
        let turning = self.rotary_dim;
        CHECK.that(
            turning.is_multiple_of(2) && (1..=self.head_dim).contains(&turning),
            "rotary_dim",
            format!("an even number from 2 to {}", self.head_dim),
            turning,
        )?;
        CHECK.limit("rotary_dim", turning, MAX_ROTARY_DIM)?;
        CHECK.that(usable(self.theta), "theta", "a positive number", self.theta)?;
        self.scaling.check(self)?;
        let (pairs, axes) = (turning / 2, self.pair_axes.len());
        CHECK.that(axes == 0 || axes == pairs, "pair_axes", format!("none, or {pairs}"), axes)?;
        CHECK.limit("pair_axes", self.axes(), MAX_AXES)?;
        CHECK.limit("max_positions", self.max_positions, i32::MAX as usize)
    }

    /// The scaled frequencies, `[rotary_dim / 2]`, in f64: every backend makes its tables from these.
    pub fn frequencies(&self) -> Vec<f64> {
        let of = |pair| self.scaling.frequency(pair, self.rotary_dim, self.theta);
        (0..self.rotary_dim / 2).map(of).collect()
    }

    /// The factor of cosines and sines, which lengthens queries and keys; 1 without YaRN and its like.
    pub fn attention_factor(&self) -> f32 {
        self.scaling.attention_factor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        let spec = || RopeSpec::new(64, RopeStyle::Interleaved, 10);
        let factor = RopeScaling::Linear { factor: 0.0 };
        for bad in [
            spec().with_rotary_dim(0),
            spec().with_rotary_dim(3),
            spec().with_rotary_dim(66),
            RopeSpec::new(1 << 60, RopeStyle::HalfSplit, 10),
            spec().with_theta(0.0),
            spec().with_theta(f32::INFINITY),
            spec().with_scaling(factor),
            spec().with_sections(&[16, 8]),
            spec().with_sections(&[usize::MAX, usize::MAX]),
            spec().with_sections(&[8, 8, 8, 4, 4]),
            spec().with_pair_axes(vec![usize::MAX; 32]),
            RopeSpec { max_positions: usize::MAX, ..spec() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(spec().with_rotary_dim(32).check().is_ok());
        let sections = spec().with_sections(&[8, 12, 12]);
        assert!(sections.check().is_ok() && sections.axes() == 3);
    }
}
