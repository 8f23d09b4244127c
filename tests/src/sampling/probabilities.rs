//! The distribution that a draw follows.

use super::{Case, logits};
use crate::{
    case::{Fault, Verdict},
    judge::judge,
    oracle,
    poison::{Guarded, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    sampling::{ProbabilityArgs, SamplingParams, SamplingSpec, SamplingStep},
};

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { vocabulary, rows, layout, seed } = case;
    let stream = &mut device.stream()?;
    let mut plan = device.sampling_plan(&SamplingSpec::new(*vocabulary), rows.len())?;
    let params: Vec<SamplingParams> = rows.iter().map(|row| row.1.clone()).collect();
    let step = SamplingStep { params: &params }.check(&plan)?;
    device.sampling_update(stream, &mut plan, &step)?;
    let mut rng = Rng::new(*seed);
    let values: Vec<f32> = rows.iter().flat_map(|row| logits(&mut rng, row.0, *vocabulary)).collect();
    let dims = [rows.len(), *vocabulary];
    let (guarded, values) = Guarded::<B>::input(stream, DType::F32, &values, &dims, *layout)?;
    let other = if *layout == Layout::Dense { Layout::Rows { before: 1, after: 2 } } else { Layout::Dense };
    let out = Guarded::<B>::output(stream, DType::F32, &dims, other)?;
    let args = ProbabilityArgs { plan: &plan, logits: &guarded.view, out: &out.view };
    device.probabilities(stream, args.check()?)?;
    let out = out.read(stream)?;
    for (row, params) in params.iter().enumerate() {
        let range = row * vocabulary..(row + 1) * vocabulary;
        let (logits, out) = (&values[range.clone()], &out[range]);
        // One of the prefixes that may be kept, in all of its elements.
        let mut verdict = Err(Fault::new("nothing may be kept"));
        for kept in oracle::sampling::kept(logits, params) {
            let expected: Vec<Bound> = (0..*vocabulary).map(|id| kept.probability(id)).collect();
            verdict = judge(&format!("out[{row}]"), &[*vocabulary], out, &expected);
            if verdict.is_ok() {
                break;
            }
        }
        verdict?;
    }
    Ok(())
}
