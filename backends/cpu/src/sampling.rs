//! The next token of a row of logits, and log-probabilities.

use crate::{
    device::Cpu,
    simd::{Isa, Kernel, LANES, first_lanes, math::exp},
    stream::CpuStream,
    view::{read, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, Sampling, SamplingArgs, SamplingLimits, SamplingParams, SamplingPlan, SamplingSpec,
        SamplingStep, uniform,
    },
};

/// A step's parameters.
#[derive(Debug)]
pub struct CpuSamplingPlan {
    spec: SamplingSpec,
    max_rows: usize,
    params: Vec<SamplingParams>,
}

impl SamplingPlan for CpuSamplingPlan {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn rows(&self) -> usize {
        self.params.len()
    }
}

impl Sampling for Cpu {
    type SamplingPlan = CpuSamplingPlan;

    fn sampling_supports(&self, _spec: &SamplingSpec) -> Support {
        Support::Native
    }

    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<CpuSamplingPlan> {
        spec.check()?;
        Ok(CpuSamplingPlan { spec: spec.clone(), max_rows, params: Vec::new() })
    }

    fn sampling_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuSamplingPlan,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &plan.limits())?;
        plan.params.clear();
        plan.params.extend_from_slice(step.params);
        Ok(())
    }

    fn sample(&self, _stream: &mut CpuStream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        let (logits, mut ids) = (read::<f32>(args.logits)?, write::<i32>(args.ids)?);
        let (rows, data) = (logits.rows, logits.data());
        self.team().each(ids.data().iter_mut().zip(&args.plan.params).enumerate(), |(row, (id, params))| {
            *id = self.next_token(rows.row(data, row), params) as i32;
        });
        Ok(())
    }

    fn log_probs(&self, _stream: &mut CpuStream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        let (logits, targets) = (read::<f32>(args.logits)?, read::<i32>(args.targets)?);
        let mut out = write::<f32>(args.out)?;
        let (rows, data) = (logits.rows, logits.data());
        self.team().each(out.data().iter_mut().zip(targets.data()).enumerate(), |(row, (out, &target))| {
            let logits = rows.row(data, row);
            *out = match usize::try_from(target).ok().and_then(|target| logits.get(target)) {
                Some(&logit) => {
                    let Mass { max, sum, .. } = self.tier().run(MassOf { logits, factor: 1.0 });
                    (f64::from(logit) - f64::from(max) - sum.ln()) as f32
                }
                None => f32::NAN,
            };
        });
        Ok(())
    }
}

impl Cpu {
    fn next_token(&self, logits: &[f32], params: &SamplingParams) -> usize {
        // A single candidate is the greedy choice at any temperature.
        if params.temperature == 0.0 || params.top_k == 1 {
            return self.tier().run(MassOf { logits, factor: 0.0 }).first;
        }
        // The reciprocal of a subnormal temperature may be infinite, and equal logits would differ by 0 times that.
        let factor = (1.0 / params.temperature).min(f32::MAX);
        let mass = self.tier().run(MassOf { logits, factor });
        if !mass.max.is_finite() {
            return mass.first;
        }
        draw(logits, factor, &mass, params)
    }
}

/// What one pass over a row finds.
struct Mass {
    /// The greatest logit; NaN counts as -inf.
    max: f32,
    /// The first id that has it.
    first: usize,
    /// `Σ exp((logit - max) · factor)`, NaN left out.
    sum: f64,
}

struct MassOf<'a> {
    logits: &'a [f32],
    /// 0 where the sum is not wanted.
    factor: f32,
}

impl Kernel for MassOf<'_> {
    type Output = Mass;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Mass {
        let infinity = isa.splat(f32::NEG_INFINITY);
        let mut max = infinity;
        for logits in self.logits.chunks(LANES) {
            max = isa.max(load_or_least(isa, logits), max);
        }
        let max = isa.max_lane(max);
        let greatest = isa.splat(max);
        let mut first = 0;
        for (vector, logits) in self.logits.chunks(LANES).enumerate() {
            let here = isa.equal(load_or_least(isa, logits), greatest) & first_lanes(logits.len());
            if here != 0 {
                first = vector * LANES + here.trailing_zeros() as usize;
                break;
            }
        }
        let mut sum = 0.0f64;
        if self.factor != 0.0 {
            let (factor, zero) = (isa.splat(self.factor), isa.splat(0.0));
            // Sums of 1,024 elements in F32, added in F64: exact enough for any vocabulary.
            for block in self.logits.chunks(64 * LANES) {
                let mut lanes = zero;
                for logits in block.chunks(LANES) {
                    let x = load_or_least(isa, logits);
                    let power = exp(isa, isa.mul(isa.sub(x, greatest), factor));
                    lanes = isa.add(lanes, isa.select(isa.equal(x, x), power, zero));
                }
                sum += f64::from(isa.sum(lanes));
            }
        }
        Mass { max, first, sum }
    }
}

/// Up to 16 logits; lanes beyond them are minus infinity, since as zeros they could win.
#[inline(always)]
fn load_or_least<I: Isa>(isa: I, logits: &[f32]) -> I::F32 {
    isa.select(first_lanes(logits.len()), isa.load_partial(logits), isa.splat(f32::NEG_INFINITY))
}

/// The draw of the contract's four steps, sorting only as many candidates as it needs.
fn draw(logits: &[f32], factor: f32, mass: &Mass, params: &SamplingParams) -> usize {
    let mut ids: Vec<u32> = (0..logits.len() as u32).filter(|&id| !logits[id as usize].is_nan()).collect();
    let weight = |id: u32| (f64::from(logits[id as usize] - mass.max) * f64::from(factor)).exp();
    let order = |a: &u32, b: &u32| {
        let (x, y) = (logits[*a as usize], logits[*b as usize]);
        y.total_cmp(&x).then(a.cmp(b))
    };
    // -0 and 0 are the same logit to the contract; total_cmp tells them apart.
    let order =
        |a: &u32, b: &u32| if logits[*a as usize] == logits[*b as usize] { a.cmp(b) } else { order(a, b) };
    let top_k = if params.top_k == 0 { ids.len() } else { ids.len().min(params.top_k as usize) };
    let mut sorted = 0;
    let mut sort_more = |ids: &mut Vec<u32>| {
        let end = (sorted * 4).max(256).min(ids.len());
        if end < ids.len() {
            ids[sorted..].select_nth_unstable_by(end - sorted, order);
        }
        ids[sorted..end].sort_unstable_by(order);
        sorted = end;
        sorted
    };
    let mut known = sort_more(&mut ids);
    // Step 1: the mass of the kept.
    let total: f64 = if top_k == ids.len() {
        mass.sum
    } else {
        while known < top_k {
            known = sort_more(&mut ids);
        }
        ids[..top_k].iter().map(|&id| weight(id)).sum()
    };
    // Steps 2 and 3: a prefix of the order, since weights descend.
    let whole = params.top_p >= 1.0 && params.min_p <= 0.0;
    let (mut kept, mut kept_sum) = (0, 0.0);
    if whole {
        (kept, kept_sum) = (top_k, total);
    } else {
        let enough = f64::from(params.top_p) * total;
        while kept < top_k && (kept == 0 || params.top_p >= 1.0 || kept_sum < enough) {
            while kept >= known {
                known = sort_more(&mut ids);
            }
            let weight = weight(ids[kept]);
            if weight < f64::from(params.min_p) {
                break;
            }
            kept_sum += weight;
            kept += 1;
        }
    }
    // Step 4.
    let target = f64::from(uniform(params.seed, params.position)) * kept_sum;
    let (mut running, mut last) = (0.0, mass.first);
    for at in 0..kept {
        while at >= known {
            known = sort_more(&mut ids);
        }
        let weight = weight(ids[at]);
        // Weights descend, and what weighs nothing is never drawn.
        if weight == 0.0 {
            break;
        }
        running += weight;
        last = ids[at] as usize;
        if running > target {
            break;
        }
    }
    // Where rounding left the running sum a hair short of the target: the last that weighs anything.
    last
}
