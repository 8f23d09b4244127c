//! The choice of experts; formulas from `halite_kernels::moe::RoutingSpec`.

use crate::tolerance::{Bound, U};
use halite_kernels::moe::{GroupScore, RouterWeights, RoutingSpec, Scoring};
use std::cmp::Ordering;

/// `exp(x[i] - max) / Σ` of a row.
pub fn softmax(row: &[f64]) -> Vec<Bound> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<Bound> = row
        .iter()
        .map(|x| {
            let distance = x - max;
            let error = if distance.is_finite() { U * distance.abs() } else { 0.0 };
            Bound { value: distance, error }.exp()
        })
        .collect();
    let sum = Bound::sum_of(&powers);
    powers.into_iter().map(|power| power.divided_by(sum)).collect()
}

/// What one row's experts rank by, and what they weigh.
#[derive(Clone, Debug)]
pub struct Router<'a> {
    spec: &'a RoutingSpec,
    logits: &'a [f64],
    scores: Vec<Bound>,
    ranks: Vec<Bound>,
    /// Empty without groups.
    groups: Vec<Bound>,
}

/// The order in which experts, or groups, come: `Less` comes first. `None` where rounding decides.
fn order(values: &[Bound], a: usize, b: usize) -> Option<Ordering> {
    let (x, y) = (values[a], values[b]);
    if x.value == y.value || (x.value.is_nan() && y.value.is_nan()) {
        return Some(a.cmp(&b));
    }
    if x.value.is_nan() || y.value.is_nan() {
        return Some(x.value.is_nan().cmp(&y.value.is_nan()));
    }
    let sure = (x.value - y.value).abs() > x.error + y.error;
    if sure { y.value.partial_cmp(&x.value) } else { None }
}

/// Sorts places by the exact values.
fn sort(values: &[Bound], places: &mut [usize]) {
    let exact: Vec<Bound> = values.iter().map(|value| Bound::exact(value.value)).collect();
    places.sort_by(|&a, &b| order(&exact, a, b).unwrap_or(Ordering::Equal));
}

/// One addition; an infinite sum is exact.
fn sum(a: Bound, b: Bound) -> Bound {
    let sum = a.plus(b);
    if sum.value.is_finite() { sum } else { Bound::exact(sum.value) }
}

impl<'a> Router<'a> {
    /// The row of `logits`; `bias` is there for the choice only.
    pub fn new(spec: &'a RoutingSpec, logits: &'a [f64], bias: Option<&[f64]>) -> Self {
        let exact: Vec<Bound> = logits.iter().copied().map(Bound::exact).collect();
        let scores = match spec.scoring {
            Scoring::Softmax => softmax(logits),
            Scoring::SoftmaxOfChosen => exact.clone(),
            Scoring::Sigmoid => exact.iter().map(|logit| logit.sigmoid()).collect(),
            // A scoring that the oracle does not know makes every comparison fail.
            _ => vec![Bound::exact(f64::NAN); logits.len()],
        };
        let sums: Vec<Bound> = match bias {
            Some(bias) => scores.iter().zip(bias).map(|(&s, &b)| sum(s, Bound::exact(b))).collect(),
            None => scores.clone(),
        };
        let ranks = if bias.is_some() { sums.clone() } else { exact };
        let groups = spec.groups.map_or(Vec::new(), |groups| {
            let size = logits.len() / groups.groups;
            (0..groups.groups)
                .map(|group| {
                    let mut members: Vec<usize> = (group * size..(group + 1) * size).collect();
                    sort(&ranks, &mut members);
                    match groups.score {
                        GroupScore::TopTwo => members
                            .iter()
                            .take(2)
                            .map(|&member| sums[member])
                            .reduce(sum)
                            .unwrap_or(Bound::exact(f64::NAN)),
                        _ => ranks[members[0]],
                    }
                })
                .collect()
        });
        Router { spec, logits, scores, ranks, groups }
    }

    /// The ids of the exact order.
    pub fn ids(&self) -> Vec<i32> {
        let experts = self.logits.len();
        let mut taking_part: Vec<usize> = match self.spec.groups {
            None => (0..experts).collect(),
            Some(groups) => {
                let size = experts / groups.groups;
                let mut best: Vec<usize> = (0..groups.groups).collect();
                sort(&self.groups, &mut best);
                best[..groups.kept].iter().flat_map(|&group| group * size..(group + 1) * size).collect()
            }
        };
        sort(&self.ranks, &mut taking_part);
        taking_part.into_iter().take(self.spec.top_k).map(|id| id as i32).collect()
    }

    /// Whether `ids` may be the answer of a right backend; if not, why.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn judge_ids(&self, ids: &[i32]) -> Result<(), String> {
        let experts = self.logits.len();
        let mut chosen = vec![false; experts];
        for &id in ids {
            match usize::try_from(id).ok().and_then(|id| chosen.get_mut(id)) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return Err(format!("{ids:?}: {id} comes twice")),
                None => return Err(format!("{ids:?}: {id} is no expert of {experts}")),
            }
        }
        let ids: Vec<usize> = ids.iter().map(|&id| id as usize).collect();
        for (slot, pair) in ids.windows(2).enumerate() {
            if order(&self.ranks, pair[0], pair[1]) == Some(Ordering::Greater) {
                return Err(format!("{ids:?}: slots {slot} and {} in the wrong order", slot + 1));
            }
        }
        let Some(&last) = ids.last() else { return Ok(()) };
        for &id in &ids {
            if !self.may_take_part(id) {
                return Err(format!("{ids:?}: {id} is in a group that takes no part"));
            }
        }
        for expert in (0..experts).filter(|&expert| !chosen[expert] && self.surely_takes_part(expert)) {
            if order(&self.ranks, expert, last) == Some(Ordering::Less) {
                return Err(format!("{ids:?}: {expert} comes before {last}"));
            }
        }
        Ok(())
    }

    fn may_take_part(&self, expert: usize) -> bool {
        let Some(groups) = self.spec.groups else { return true };
        let group = expert / (self.logits.len() / groups.groups);
        let before =
            |&other: &usize| other != group && order(&self.groups, other, group) == Some(Ordering::Less);
        (0..groups.groups).filter(before).count() < groups.kept
    }

    fn surely_takes_part(&self, expert: usize) -> bool {
        let Some(groups) = self.spec.groups else { return true };
        let group = expert / (self.logits.len() / groups.groups);
        let not_after =
            |&other: &usize| other != group && order(&self.groups, group, other) != Some(Ordering::Less);
        (0..groups.groups).filter(not_after).count() < groups.kept
    }

    /// The weights of the chosen.
    pub fn weights(&self, ids: &[i32]) -> Vec<Bound> {
        let chosen: Vec<usize> = ids.iter().map(|&id| id as usize).collect();
        let mut weights: Vec<Bound> = if self.spec.scoring == Scoring::SoftmaxOfChosen {
            softmax(&chosen.iter().map(|&id| self.logits[id]).collect::<Vec<f64>>())
        } else {
            chosen.iter().map(|&id| self.scores[id]).collect()
        };
        if self.spec.weights == RouterWeights::Renormalized {
            let sum = Bound::sum_of(&weights).plus(Bound::exact(1e-20));
            weights.iter_mut().for_each(|weight| *weight = weight.divided_by(sum));
        }
        let scale = Bound::exact(f64::from(self.spec.scale));
        weights.into_iter().map(|weight| weight.times(scale)).collect()
    }
}
