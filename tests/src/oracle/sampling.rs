//! Sampling and log-probabilities; formulas from `halite_kernels::sampling`.

pub mod verify;

use crate::tolerance::{Bound, TINY, U, exponential, summing};
use halite_kernels::sampling::SamplingParams;

/// Candidate ids, best first: by logit, NaN below everything, ties to the lower id.
pub fn ranking(logits: &[f64]) -> Vec<usize> {
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    let key = |id: usize| if logits[id].is_nan() { (0, 0.0) } else { (1, logits[id]) };
    ids.sort_by(|&a, &b| {
        let ((a_known, a_logit), (b_known, b_logit)) = (key(a), key(b));
        // No NaN is left in the second place; zeros of either sign are equal.
        let by_logit = b_logit.partial_cmp(&a_logit).unwrap_or(std::cmp::Ordering::Equal);
        b_known.cmp(&a_known).then(by_logit).then(a.cmp(&b))
    });
    ids
}

/// One round of SplitMix64.
fn mix(state: u64) -> u64 {
    let modulus = 1u128 << 64;
    let times = |a: u128, b: u128| a * b % modulus;
    let z = (u128::from(state) + 0x9E37_79B9_7F4A_7C15) % modulus;
    let z = times(z ^ (z >> 30), 0xBF58_476D_1CE4_E5B9);
    let z = times(z ^ (z >> 27), 0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as u64
}

/// The draw of `(seed, position)`: SplitMix64 twice, its upper 24 bits.
pub fn draw(seed: u64, position: u64) -> f64 {
    (mix(mix(seed) ^ position) >> 40) as f64 / (1u64 << 24) as f64
}

/// The further draws of `(seed, position)`: 1 accepts, 2 replaces.
pub fn further_draw(number: u64, seed: u64, position: u64) -> f64 {
    draw((u128::from(mix(seed)) + u128::from(number)) as u64, position)
}

/// What a right backend may keep of a row: the first candidates with their probabilities among the first `top_k`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kept {
    /// Ids, best first.
    pub ids: Vec<usize>,
    /// Of each of them.
    pub p: Vec<f64>,
    /// How far each of them may be off, relative.
    pub relative: Vec<f64>,
    /// The sum of the probabilities.
    pub mass: f64,
    /// How far a running sum may be off.
    pub slack: f64,
}

impl Kept {
    /// The probability of an id after renormalising, and how far off it may be.
    pub fn probability(&self, id: usize) -> Bound {
        let Some(place) = self.ids.iter().position(|&kept| kept == id) else { return Bound::exact(0.0) };
        let value = self.p[place] / self.mass;
        let least = if value > 0.0 && self.slack > 0.0 { TINY } else { 0.0 };
        Bound { value, error: value * (self.relative[place] + self.slack / self.mass) + least }
    }

    /// The ids that the fraction `u` of the mass may take.
    pub fn taken(&self, u: f64) -> Vec<usize> {
        let target = u * self.mass;
        let mut before = 0.0;
        let mut ids = Vec::new();
        for (&id, &p) in self.ids.iter().zip(&self.p) {
            if before + p > target - self.slack && before <= target + self.slack && p > 0.0 {
                ids.push(id);
            }
            before += p;
        }
        ids
    }
}

/// The prefixes of the ranking that a right backend may keep: more than one only where F32 rounding decides.
pub fn kept(logits: &[f64], params: &SamplingParams) -> Vec<Kept> {
    let ranking = ranking(logits);
    let (temperature, top_p) = (f64::from(params.temperature), f64::from(params.top_p));
    let finite = ranking.first().is_some_and(|&id| logits[id].is_finite());
    if temperature == 0.0 || !finite {
        let ids: Vec<usize> = ranking.into_iter().take(1).collect();
        let (p, relative) = (vec![1.0; ids.len()], vec![0.0; ids.len()]);
        return vec![Kept { ids, p, relative, mass: 1.0, slack: 0.0 }];
    }
    let top_k = if params.top_k == 0 { ranking.len() } else { ranking.len().min(params.top_k as usize) };
    let ranking = &ranking[..top_k];
    let largest = logits[ranking[0]];
    let weight = |id: usize| {
        let logit = logits[id];
        if logit.is_nan() { 0.0 } else { ((logit - largest) / temperature).exp() }
    };
    let weights: Vec<f64> = ranking.iter().map(|&id| weight(id)).collect();
    let total: f64 = weights.iter().sum();
    let p: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    // Each p is off by its exponential and its division, and so is every running sum.
    let relative = |place: usize| {
        let distance = (logits[ranking[place]] - largest) / temperature;
        if distance.is_finite() { exponential(distance) + 8.0 * U } else { 0.0 }
    };
    let mut slack = summing(top_k) + 8.0 * U;
    for (place, p) in p.iter().enumerate() {
        slack += p * relative(place);
    }

    let mut running = Vec::with_capacity(top_k);
    let mut sum = 0.0;
    for p in &p {
        sum += p;
        running.push(sum);
    }
    // Prefixes that may be the shortest to reach top_p.
    let mut prefixes: Vec<usize> = (1..=top_k)
        .filter(|&n| {
            let before = if n == 1 { 0.0 } else { running[n - 2] };
            running[n - 1] >= top_p - slack && before < top_p + slack
        })
        .collect();
    if top_p >= 1.0 {
        prefixes.push(top_k);
    }
    let min_p = f64::from(params.min_p) * p[0];
    let mut lengths = Vec::new();
    for prefix in prefixes {
        // p descends along the ranking, so those kept by min_p are a prefix as well.
        let surely = p[..prefix].iter().filter(|&&p| p >= min_p * (1.0 + slack)).count();
        let maybe = p[..prefix].iter().filter(|&&p| p >= min_p * (1.0 - slack)).count();
        lengths.extend(surely.max(1)..=maybe.max(1));
    }
    lengths.sort_unstable();
    lengths.dedup();
    let prefix = |n: usize| {
        let (ids, p, relative) = (ranking[..n].to_vec(), p[..n].to_vec(), (0..n).map(relative).collect());
        Kept { ids, p, relative, mass: running[n - 1], slack }
    };
    lengths.into_iter().map(prefix).collect()
}

/// The ids that a right backend may take: more than one only where F32 rounding decides.
pub fn acceptable(logits: &[f64], params: &SamplingParams) -> Vec<usize> {
    let u = draw(params.seed, params.position);
    let mut ids: Vec<usize> = kept(logits, params).iter().flat_map(|kept| kept.taken(u)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// `logits[target] - ln Σ exp(logits)`; NaN for a target outside the vocabulary, and in a row without weights.
pub fn log_prob(logits: &[f64], target: i32) -> Bound {
    match usize::try_from(target).ok().and_then(|target| logits.get(target)) {
        Some(&logit) => less_log_sum(logits)(logit),
        None => Bound::exact(f64::NAN),
    }
}

/// The log-probabilities of all tokens.
pub fn log_softmax(logits: &[f64]) -> Vec<Bound> {
    logits.iter().copied().map(less_log_sum(logits)).collect()
}

/// What takes one of these logits to its log-probability.
fn less_log_sum(logits: &[f64]) -> impl Fn(f64) -> Bound {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    let mut error = summing(logits.len()) + 8.0 * U;
    for logit in logits.iter().filter(|logit| !logit.is_nan()) {
        total += (logit - largest).exp();
    }
    for logit in logits.iter().filter(|logit| logit.is_finite()) {
        error +=
            (logit - largest).exp() / total * (exponential(logit - largest) + U * (logit - largest).abs());
    }
    let log_sum = largest + total.ln();
    move |logit| {
        if !largest.is_finite() {
            return Bound::exact(f64::NAN);
        }
        let error = error + 4.0 * U * (largest.abs() + total.ln().abs() + logit.abs());
        let value = logit - log_sum;
        Bound { value, error: if value.is_finite() { error } else { 0.0 } }
    }
}

/// The `n` highest log-probabilities of a row, with their ids.
pub fn top_log_probs(logits: &[f64], n: usize) -> Vec<(usize, Bound)> {
    let ids = ranking(logits).into_iter().take(n);
    ids.map(|id| (id, log_prob(logits, id as i32))).collect()
}
