//! Verification of drafted tokens; rules from `halite_kernels::sampling::VerifyArgs`.

use super::{Kept, acceptable, further_draw, kept};
use crate::tolerance::U;
use halite_kernels::sampling::SamplingParams;

/// One request.
#[derive(Clone, Debug)]
pub struct Drafted<'a> {
    /// `[drafts + 1][vocabulary]`.
    pub logits: &'a [Vec<f64>],
    /// `[drafts]`.
    pub drafts: &'a [i32],
    /// `[drafts][vocabulary]`, where they were drawn.
    pub q: Option<&'a [Vec<f64>]>,
    /// The position is that of the first draft.
    pub params: &'a SamplingParams,
}

/// What a right backend may give: how many drafts stand, and the token after them.
pub fn outcomes(request: &Drafted<'_>) -> Vec<(usize, usize)> {
    let mut outcomes = Vec::new();
    for (place, &draft) in request.drafts.iter().enumerate() {
        let params = at(request.params, place);
        let logits = &request.logits[place];
        let Some(q) = request.q else {
            let taken = acceptable(logits, &params);
            let others = taken.iter().filter(|&&id| id as i64 != i64::from(draft));
            outcomes.extend(others.map(|&id| (place, id)));
            if !taken.iter().any(|&id| id as i64 == i64::from(draft)) {
                return outcomes;
            }
            continue;
        };
        let q: Vec<f64> = q[place].iter().map(|&q| if q > 0.0 { q } else { 0.0 }).collect();
        let mut may_stand = false;
        for kept in kept(logits, &params) {
            let (stands, falls) = standing(&kept, &q, draft, &params);
            may_stand |= stands;
            if falls {
                outcomes.extend(replacements(&kept, &q, logits, &params).into_iter().map(|id| (place, id)));
            }
        }
        if !may_stand {
            return outcomes;
        }
    }
    let last = request.drafts.len();
    let taken = acceptable(&request.logits[last], &at(request.params, last));
    outcomes.extend(taken.into_iter().map(|id| (last, id)));
    outcomes
}

fn at(params: &SamplingParams, place: usize) -> SamplingParams {
    params.clone().at(params.position.wrapping_add(place as u64))
}

/// Whether a draft may stand, and whether it may fall.
fn standing(kept: &Kept, q: &[f64], draft: i32, params: &SamplingParams) -> (bool, bool) {
    let Some(&q) = usize::try_from(draft).ok().and_then(|id| q.get(id)) else { return (false, true) };
    let p = kept.probability(draft as usize);
    let threshold = further_draw(1, params.seed, params.position) * q;
    let slack = p.error + U * threshold;
    (threshold < p.value + slack, threshold >= p.value - slack)
}

/// What may replace a draft that fell.
fn replacements(kept: &Kept, q: &[f64], logits: &[f64], params: &SamplingParams) -> Vec<usize> {
    let mut rest = Vec::new();
    let mut slack = 0.0;
    for (id, &q) in q.iter().enumerate() {
        let p = kept.probability(id);
        slack += p.error;
        rest.push(((p.value - q).max(0.0), p.value - q + p.error > 0.0 && p.value > 0.0));
    }
    let total: f64 = rest.iter().map(|&(weight, _)| weight).sum();
    let mut ids = Vec::new();
    if total <= slack {
        ids = acceptable(logits, params);
    }
    let (target, slack) = (further_draw(2, params.seed, params.position) * total, slack + U * total);
    let mut before = 0.0;
    for (id, (weight, possible)) in rest.into_iter().enumerate() {
        if possible && before + weight > target - 2.0 * slack && before <= target + 2.0 * slack {
            ids.push(id);
        }
        before += weight;
    }
    ids
}
