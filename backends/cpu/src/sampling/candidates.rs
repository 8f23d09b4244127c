//! What may be drawn from a row: the contract's first three steps, and the draw of the fourth.

use super::mass::{Mass, MassOf, Weights};
use crate::device::Cpu;
use halite_kernels::sampling::{SamplingParams, uniform};

/// What may be drawn from a row.
pub(super) enum Candidates<'a> {
    /// This token alone: temperature 0, or a row without weights.
    One(usize),
    /// Several, each with a weight.
    Kept(Kept<'a>),
}

/// A prefix of the candidates' order, with the sum of its weights.
pub(super) struct Kept<'a> {
    ranking: Ranking<'a>,
    pub(super) weights: Weights,
    first: usize,
    count: usize,
    /// `Σ exp((logit - max) · factor)` over those kept.
    pub(super) sum: f64,
}

/// Ids in the order of candidates, sorted only as far as somebody looked.
struct Ranking<'a> {
    logits: &'a [f32],
    /// Of all logits but NaN; the first `sorted` are in order and before all others.
    ids: &'a mut [u32],
    sorted: usize,
}

impl Ranking<'_> {
    /// The id at `place`, which is below the number of candidates.
    fn at(&mut self, place: usize) -> u32 {
        while place >= self.sorted {
            self.sort_more();
        }
        self.ids[place]
    }

    fn sort_more(&mut self) {
        let Ranking { logits, ids, sorted } = self;
        // -0 and 0 are the same logit to the contract; total_cmp tells them apart. NaN is not here.
        let order = |a: &u32, b: &u32| {
            let (x, y) = (logits[*a as usize], logits[*b as usize]);
            if x == y { a.cmp(b) } else { y.total_cmp(&x) }
        };
        let end = sorted_next(*sorted, ids.len());
        if end < ids.len() {
            ids[*sorted..].select_nth_unstable_by(end - *sorted, order);
        }
        ids[*sorted..end].sort_unstable_by(order);
        *sorted = end;
    }
}

/// How many of `candidates` are sorted when somebody looks beyond `sorted` of them: few at first, since most draws end
/// among the best, and then so many more that a row is sorted in a few passes.
const fn sorted_next(sorted: usize, candidates: usize) -> usize {
    let more = sorted.saturating_mul(4);
    let more = if more < 256 { 256 } else { more };
    if more < candidates { more } else { candidates }
}

impl Cpu {
    /// What may be drawn from a row with these parameters; `ids` is where it is ranked.
    pub(super) fn candidates<'a>(
        &self,
        logits: &'a [f32],
        params: &SamplingParams,
        ids: &'a mut Vec<u32>,
    ) -> Candidates<'a> {
        // A single candidate is the greedy choice at any temperature.
        if params.temperature == 0.0 || params.top_k == 1 {
            return Candidates::One(self.tier().run(MassOf { logits, factor: 0.0 }).first);
        }
        // The reciprocal of a subnormal temperature may be infinite, and equal logits would differ by 0 times that.
        let factor = (1.0 / params.temperature).min(f32::MAX);
        let mass = self.tier().run(MassOf { logits, factor });
        if !mass.max.is_finite() {
            return Candidates::One(mass.first);
        }
        Candidates::Kept(Kept::of(logits, factor, mass, params, ids))
    }
}

impl Candidates<'_> {
    /// The token that the row's own draw takes.
    pub(super) fn draw(self, params: &SamplingParams) -> usize {
        match self {
            Candidates::One(id) => id,
            Candidates::Kept(kept) => kept.draw(params),
        }
    }
}

impl<'a> Kept<'a> {
    fn of(
        logits: &'a [f32],
        factor: f32,
        mass: Mass,
        params: &SamplingParams,
        ids: &'a mut Vec<u32>,
    ) -> Self {
        ids.clear();
        ids.extend((0..logits.len() as u32).filter(|&id| !logits[id as usize].is_nan()));
        let candidates = ids.len();
        let top_k = if params.top_k == 0 { candidates } else { candidates.min(params.top_k as usize) };
        let ranking = Ranking { logits, ids, sorted: 0 };
        let weights = Weights { max: mass.max, factor };
        let mut kept = Kept { ranking, weights, first: mass.first, count: top_k, sum: mass.sum };
        // Step 1: the mass of the kept.
        if top_k < candidates {
            kept.sum = (0..top_k).map(|place| kept.weight_at(place)).sum();
        }
        // Steps 2 and 3: a prefix of the order, since weights descend.
        if params.top_p >= 1.0 && params.min_p <= 0.0 {
            return kept;
        }
        let enough = f64::from(params.top_p) * kept.sum;
        let (mut count, mut sum) = (0, 0.0);
        while count < top_k && (count == 0 || params.top_p >= 1.0 || sum < enough) {
            let weight = kept.weight_at(count);
            if weight < f64::from(params.min_p) {
                break;
            }
            sum += weight;
            count += 1;
        }
        Kept { count, sum, ..kept }
    }

    fn weight_at(&mut self, place: usize) -> f64 {
        let id = self.ranking.at(place);
        self.weights.of(self.ranking.logits[id as usize])
    }

    /// The last candidate that is kept: its logit, and how many ids of that logit count, from 0 up to its own.
    pub(super) fn last(&mut self) -> (f32, usize) {
        // All of them: whatever the id.
        if self.count == self.ranking.ids.len() {
            return (f32::NEG_INFINITY, usize::MAX);
        }
        let id = self.ranking.at(self.count.saturating_sub(1)) as usize;
        (self.ranking.logits[id], id + 1)
    }

    /// Step 4.
    fn draw(mut self, params: &SamplingParams) -> usize {
        let target = f64::from(uniform(params.seed, params.position)) * self.sum;
        let (mut running, mut last) = (0.0, self.first);
        for place in 0..self.count {
            let weight = self.weight_at(place);
            // Weights descend, and what weighs nothing is never drawn.
            if weight == 0.0 {
                break;
            }
            running += weight;
            last = self.ranking.at(place) as usize;
            if running > target {
                break;
            }
        }
        // Where rounding left the running sum a hair short of the target: the last that weighs anything.
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_sorted_as_far_as_somebody_looks() {
        for (sorted, candidates, expected) in [
            (0, 0, 0),
            (0, 1, 1),
            (0, 255, 255),
            (0, 256, 256),
            (0, 257, 256),
            (0, 49_152, 256),
            (63, 49_152, 256),
            (65, 49_152, 260),
            (256, 49_152, 1024),
            (256, 1023, 1023),
            (16_384, 49_152, 49_152),
        ] {
            assert_eq!(sorted_next(sorted, candidates), expected, "{sorted} of {candidates}");
        }
    }

    #[test]
    fn parameters_and_logits_choose_one_or_several() {
        let cpu = Cpu::new(crate::Options::default().threads(1)).unwrap();
        let drawn = |top_k: usize| SamplingParams::seeded(0.8, 7).with_top_k(top_k as _);
        let (row, nothing) = ([0.5, 2.0, f32::NAN, -1.0], [f32::NEG_INFINITY; 3]);
        // The one, or how many are kept.
        for (logits, params, expected) in [
            (&row[..], SamplingParams::greedy(), Err(1)),
            (&row, drawn(1), Err(1)),
            (&row, drawn(2), Ok(2)),
            (&row, drawn(3), Ok(3)),
            (&row, drawn(4), Ok(3)),
            (&row, drawn(0), Ok(3)),
            (&row, drawn(0).with_top_p(0.01), Ok(1)),
            (&row[..1], drawn(0), Ok(1)),
            (&nothing, drawn(0), Err(0)),
        ] {
            let chosen = match cpu.candidates(logits, &params, &mut Vec::new()) {
                Candidates::One(id) => Err(id),
                Candidates::Kept(kept) => Ok(kept.count),
            };
            assert_eq!(chosen, expected, "{params:?} over {logits:?}");
        }
    }
}
