//! Sampling and log-probabilities; formulas from `halite_kernels::sampling`.

use crate::tolerance::{Bound, U, exponential, summing};
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

/// The draw of `(seed, position)`: SplitMix64 twice, its upper 24 bits.
pub fn draw(seed: u64, position: u64) -> f64 {
    let modulus = 1u128 << 64;
    let times = |a: u128, b: u128| a * b % modulus;
    let next = |state: u64| {
        let z = (u128::from(state) + 0x9E37_79B9_7F4A_7C15) % modulus;
        let z = times(z ^ (z >> 30), 0xBF58_476D_1CE4_E5B9);
        let z = times(z ^ (z >> 27), 0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as u64
    };
    (next(next(seed) ^ position) >> 40) as f64 / (1u64 << 24) as f64
}

/// The ids that a right backend may take: more than one only where F32 rounding decides.
pub fn acceptable(logits: &[f64], params: &SamplingParams) -> Vec<usize> {
    let ranking = ranking(logits);
    let (temperature, top_p) = (f64::from(params.temperature), f64::from(params.top_p));
    let finite = ranking.first().is_some_and(|&id| logits[id].is_finite());
    if temperature == 0.0 || !finite {
        return ranking.into_iter().take(1).collect();
    }
    let top_k = if params.top_k == 0 { ranking.len() } else { ranking.len().min(params.top_k as usize) };
    let kept = &ranking[..top_k];
    let largest = logits[kept[0]];
    let weight = |id: usize| {
        let logit = logits[id];
        if logit.is_nan() { 0.0 } else { ((logit - largest) / temperature).exp() }
    };
    let weights: Vec<f64> = kept.iter().map(|&id| weight(id)).collect();
    let total: f64 = weights.iter().sum();
    let p: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    // Each p is off by its exponential and its division, and so is every running sum.
    let relative = |place: usize| {
        let distance = (logits[kept[place]] - largest) / temperature;
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
    let mut ids = Vec::new();
    for prefix in prefixes {
        // p descends along the ranking, so those kept by min_p are a prefix as well.
        let surely = p[..prefix].iter().filter(|&&p| p >= min_p * (1.0 + slack)).count();
        let maybe = p[..prefix].iter().filter(|&&p| p >= min_p * (1.0 - slack)).count();
        for n in surely.max(1)..=maybe.max(1) {
            let target = draw(params.seed, params.position) * running[n - 1];
            for place in 0..n {
                let before = if place == 0 { 0.0 } else { running[place - 1] };
                let inside = running[place] > target - slack && before <= target + slack;
                if inside && p[place] > 0.0 {
                    ids.push(kept[place]);
                }
            }
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// `logits[target] - ln Σ exp(logits)`; NaN for a target outside the vocabulary.
pub fn log_prob(logits: &[f64], target: i32) -> Bound {
    let Some(&logit) = usize::try_from(target).ok().and_then(|target| logits.get(target)) else {
        return Bound::exact(f64::NAN);
    };
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    let mut error = summing(logits.len()) + 8.0 * U;
    for logit in logits {
        total += (logit - largest).exp();
    }
    for logit in logits.iter().filter(|logit| logit.is_finite()) {
        error +=
            (logit - largest).exp() / total * (exponential(logit - largest) + U * (logit - largest).abs());
    }
    let log_sum = largest + total.ln();
    let error = error + 4.0 * U * (largest.abs() + total.ln().abs() + logit.abs());
    let value = logit - log_sum;
    Bound { value, error: if value.is_finite() { error } else { 0.0 } }
}
