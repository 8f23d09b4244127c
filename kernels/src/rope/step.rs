//! What a step turns by: positions, or cosines and sines of the caller's own.

use super::{CHECK, RopePlan};
use crate::Checked;
use halite_hal::Result;

/// What [`Positions`] and [`CosSin`] were checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PositionLimits {
    /// The largest number of tokens of a step.
    pub max_tokens: usize,
    /// Positions are below this.
    pub max_positions: usize,
    /// Axes of a position.
    pub axes: usize,
    /// Pairs that turn.
    pub pairs: usize,
}

/// The position of each token of a step.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    /// `[axes, tokens]`; `[tokens]` for a spec of one axis.
    pub positions: &'a [u32],
}

impl Positions<'_> {
    /// Checks the positions against the plan.
    ///
    /// # Errors
    /// Positions that are no whole rows of axes, more tokens than planned, or a position beyond the spec's.
    pub fn check(self, plan: &impl RopePlan) -> Result<Checked<Self, PositionLimits>> {
        let (limits, count) = (plan.limits(), self.positions.len());
        let axes = limits.axes.max(1);
        let whole = count.is_multiple_of(axes);
        CHECK.that(whole, "positions", format!("the same number on each of {axes} axes"), count)?;
        CHECK.limit("tokens", count / axes, limits.max_tokens)?;
        let limit = limits.max_positions;
        if let Some(position) = self.positions.iter().find(|&&position| position as usize >= limit) {
            return Err(CHECK.wrong("positions", format!("positions below {limit}"), position.to_string()));
        }
        Ok(Checked::with_context(self, limits))
    }
}

/// Cosines and sines that the caller made: the spec's frequencies, scaling and axes are not used. For rotations that no
/// spec describes, and for tables that come with a model.
#[derive(Clone, Copy, Debug)]
pub struct CosSin<'a> {
    /// `[tokens, rotary_dim / 2]`
    pub cos: &'a [f32],
    /// `[tokens, rotary_dim / 2]`
    pub sin: &'a [f32],
}

impl CosSin<'_> {
    /// `[tokens, 2, pairs]`: the cosines of each token and then its sines, as plans keep them; `pairs` is `rotary_dim / 2`.
    pub fn by_token(&self, pairs: usize) -> impl Iterator<Item = f32> {
        // A plan has at least one pair.
        let pairs = pairs.max(1);
        let tokens = self.cos.chunks_exact(pairs).zip(self.sin.chunks_exact(pairs));
        tokens.flat_map(|(cos, sin)| cos.iter().chain(sin).copied())
    }

    /// Checks the tables against the plan.
    ///
    /// # Errors
    /// Tables of different sizes or no whole tokens, or more tokens than planned.
    pub fn check(self, plan: &impl RopePlan) -> Result<Checked<Self, PositionLimits>> {
        let (limits, count) = (plan.limits(), self.cos.len());
        let pairs = limits.pairs.max(1);
        let whole = count.is_multiple_of(pairs);
        CHECK.that(whole, "cos", format!("{pairs} for each token"), count)?;
        CHECK.that(self.sin.len() == count, "sin", format!("{count}, as cosines"), self.sin.len())?;
        CHECK.limit("tokens", count / pairs, limits.max_tokens)?;
        Ok(Checked::with_context(self, limits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_cosines_and_then_its_sines() {
        let tables = CosSin { cos: &[1.0, 2.0, 5.0, 6.0], sin: &[3.0, 4.0, 7.0, 8.0] };
        let by_token: Vec<f32> = tables.by_token(2).collect();
        assert_eq!(by_token, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(CosSin { cos: &[], sin: &[] }.by_token(2).count(), 0);
    }
}
