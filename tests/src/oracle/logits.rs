//! Penalties, biases and masks; formulas from `halite_kernels::logits`.

use crate::tolerance::Bound;
use halite_hal::DType;
use halite_kernels::logits::LogitsRow;

/// One row of logits after what is asked of it.
pub fn adjusted(logits: &[f64], asked: &LogitsRow<'_>) -> Vec<Bound> {
    let number = |x: f32| Bound::exact(f64::from(x));
    let negative = |x: f32| Bound::exact(-f64::from(x));
    let mut row = Vec::with_capacity(logits.len());
    for (token, &logit) in logits.iter().enumerate() {
        let times = |tokens: &[u32]| tokens.iter().filter(|&&seen| seen as usize == token).count();
        let (before, drawn) = (times(asked.prompt), times(asked.output));
        let mut x = Bound::exact(logit);
        let mut changed = false;
        let penalties = asked.penalties;
        if before + drawn > 0 && penalties.repetition != 1.0 {
            let repetition = f64::from(penalties.repetition);
            x = if logit > 0.0 { x.over(repetition) } else { x.times(Bound::exact(repetition)) };
            changed = true;
        }
        if drawn > 0 {
            // n · (-frequency), so that one addition is left.
            x = x.plus(negative(penalties.frequency).times(Bound::exact(drawn as f64)));
            x = x.plus(negative(penalties.presence));
            changed = true;
        }
        for (_, bias) in asked.bias.iter().filter(|(biased, _)| *biased as usize == token) {
            x = x.plus(number(*bias));
            changed = true;
        }
        if let Some(words) = asked.allowed {
            let allowed = words[token / 32] / 2u32.pow(token as u32 % 32) % 2 == 1;
            let least = f64::from(f32::MIN);
            if !allowed {
                x = Bound::exact(f64::NEG_INFINITY);
            } else if x.value.is_nan() || x.value < least {
                x = Bound::exact(least);
            }
        }
        row.push(if changed && x.value.is_finite() { x.rounded(DType::F32) } else { x });
    }
    row
}
