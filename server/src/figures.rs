//! Figures for people: rates, medians, and where a model ran.

use crate::answer::Answer;
use halite_engine::{FinishReason, ModelInfo};
use std::fmt;

/// The line at the end of an answer.
pub(crate) fn of_answer(answer: &Answer, max_tokens: usize, info: &ModelInfo, seed: Option<u64>) -> String {
    let finished = &answer.finished;
    let generated = finished.generated.len();
    let ended = match finished.reason {
        FinishReason::Length if generated < max_tokens => " (no more room: --context)",
        FinishReason::Length => " (cut: --max-tokens)",
        FinishReason::Cancelled => " (interrupted)",
        _ => "",
    };
    let first = match answer.time_to_first_token {
        Some(time) => format!("first token after {:.0} ms", time.as_secs_f64() * 1e3),
        None => "no token".to_owned(),
    };
    let cached = match finished.cached_tokens {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    let seed = seed.map(|seed| format!(" | seed {seed}")).unwrap_or_default();
    format!(
        "prompt {} tokens{cached}, {} tokens/s | generated {generated} tokens{ended}, {} tokens/s | {first}{seed} | {}",
        finished.prompt_tokens,
        Rate(answer.prompt_tokens_per_s()),
        Rate(answer.generated_tokens_per_s()),
        Place(info),
    )
}

/// Weights' format, backend, tier and threads; of a GPU its name.
pub(crate) struct Place<'a>(pub(crate) &'a ModelInfo);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelInfo { weights, device, .. } = self.0;
        if device.backend != "cpu" {
            return write!(f, "{weights} on {} {}, {}", device.backend, device.tier, device.name);
        }
        let threads = if device.parallelism == 1 { "thread" } else { "threads" };
        write!(f, "{weights} on {} {}, {} {threads}", device.backend, device.tier, device.parallelism)
    }
}

/// A rate with one decimal, or a dash where there is none.
pub(crate) struct Rate(pub(crate) Option<f64>);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => write!(f, "{rate:.1}"),
            None => f.write_str("-"),
        }
    }
}

/// What several runs gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of no runs there is none.
    pub(crate) fn of(mut runs: Vec<f64>) -> Option<Self> {
        runs.sort_by(f64::total_cmp);
        let (min, max) = (*runs.first()?, *runs.last()?);
        // The two in the middle, which are one and the same for an odd number.
        let (low, high) = (runs.get((runs.len() - 1) / 2)?, runs.get(runs.len() / 2)?);
        Some(Self { median: (low + high) / 2.0, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = |runs: &[f64]| Spread::of(runs.to_vec());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[2.0]), Some(Spread { median: 2.0, min: 2.0, max: 2.0 }));
        assert_eq!(spread(&[9.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[4.0, 9.0, 1.0, 2.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn a_missing_rate_is_a_dash() {
        assert_eq!(format!("{} {}", Rate(None), Rate(Some(12.34))), "- 12.3");
    }
}
