//! Drafted tokens against the model's own distribution.

use super::{
    candidates::{Candidates, Kept},
    id_lists::IdLists,
};
use crate::{
    device::Cpu,
    room::room_for,
    view::{Reader, Rows, read, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked,
    sampling::{
        DraftProbabilities, SamplingParams, SamplingSpec, VerifyArgs, VerifyCapacity, VerifyLimits,
        VerifyPlan, VerifyStep, acceptance_uniform, residual_uniform,
    },
};

/// A step's requests, and where their rows are ranked.
#[derive(Debug)]
pub struct CpuVerifyPlan {
    spec: SamplingSpec,
    capacity: VerifyCapacity,
    params: Vec<SamplingParams>,
    cu_drafts: Vec<u32>,
    lists: IdLists,
}

impl CpuVerifyPlan {
    pub(super) fn new(spec: &SamplingSpec, capacity: &VerifyCapacity, threads: usize) -> Result<Self> {
        spec.check()?;
        Ok(CpuVerifyPlan {
            spec: spec.clone(),
            capacity: *capacity,
            params: room_for(capacity.max_requests)?,
            cu_drafts: room_for(capacity.max_requests.saturating_add(1))?,
            lists: IdLists::new(spec.vocabulary, threads, capacity.max_requests)?,
        })
    }

    pub(super) fn update(&mut self, step: &Checked<VerifyStep<'_>, VerifyLimits>) -> Result<()> {
        step.checked_against("sampling", &self.limits())?;
        self.params.clear();
        self.params.extend_from_slice(step.params);
        self.cu_drafts.clear();
        self.cu_drafts.extend_from_slice(step.cu_drafts);
        Ok(())
    }
}

impl VerifyPlan for CpuVerifyPlan {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }

    fn capacity(&self) -> &VerifyCapacity {
        &self.capacity
    }

    fn requests(&self) -> usize {
        self.params.len()
    }

    fn drafts(&self) -> usize {
        self.cu_drafts.last().map_or(0, |&drafts| drafts as usize)
    }
}

impl Cpu {
    pub(super) fn verify_drafts(&self, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        let (logits, drafts) = (read::<f32>(args.logits)?, read::<i32>(args.drafts)?);
        let q: Option<Reader<'_, f32>> = match args.probabilities {
            DraftProbabilities::Drawn(q) => Some(read(q)?),
            _ => None,
        };
        let (mut accepted, mut next) = (write::<i32>(args.accepted)?, write::<i32>(args.next)?);
        let whole = Drafts {
            logits: (logits.rows, logits.data()),
            ids: drafts.data(),
            q: q.as_ref().map(|q| (q.rows, q.data())),
        };
        let results = accepted.data().iter_mut().zip(next.data());
        let requests = args.plan.params.iter().zip(args.plan.cu_drafts.windows(2));
        self.team().each(results.zip(requests).enumerate(), |(request, (results, (params, drafts)))| {
            let range = drafts[0] as usize..drafts[1] as usize;
            let verify = |ids: &mut Vec<u32>| self.verify_request(&whole, request, range, params, ids);
            let (count, token) = args.plan.lists.lend(verify);
            (*results.0, *results.1) = (count as i32, token as i32);
        });
        Ok(())
    }

    /// How many of a request's drafts stand, and the token after them.
    fn verify_request(
        &self,
        drafts: &Drafts<'_>,
        request: usize,
        range: std::ops::Range<usize>,
        params: &SamplingParams,
        ids: &mut Vec<u32>,
    ) -> (usize, usize) {
        for (place, draft) in range.clone().enumerate() {
            let params = params.clone().at(params.position.wrapping_add(place as u64));
            let logits = drafts.logits(draft + request);
            let candidates = self.candidates(logits, &params, ids);
            // An id outside the vocabulary is none that can stand.
            let id = usize::try_from(drafts.ids[draft]).ok().filter(|&id| id < logits.len());
            let Some(q) = drafts.q(draft) else {
                let token = candidates.draw(&params);
                if id != Some(token) {
                    return (place, token);
                }
                continue;
            };
            if let Some(token) = reject(candidates, logits, q, id, &params) {
                return (place, token);
            }
        }
        let drafted = range.len();
        let params = params.clone().at(params.position.wrapping_add(drafted as u64));
        (drafted, self.candidates(drafts.logits(range.end + request), &params, ids).draw(&params))
    }
}

/// The step's tensors.
struct Drafts<'a> {
    logits: (Rows, &'a [f32]),
    ids: &'a [i32],
    q: Option<(Rows, &'a [f32])>,
}

impl Drafts<'_> {
    fn logits(&self, row: usize) -> &[f32] {
        self.logits.0.row(self.logits.1, row)
    }

    fn q(&self, draft: usize) -> Option<&[f32]> {
        self.q.map(|(rows, data)| rows.row(data, draft))
    }
}

/// The token in place of a draft of this id that was drawn from `q`; `None` if it stands.
fn reject(
    candidates: Candidates<'_>,
    logits: &[f32],
    q: &[f32],
    id: Option<usize>,
    params: &SamplingParams,
) -> Option<usize> {
    let mut kept = match candidates {
        // The distribution is certain, so what replaces another token is certain too.
        Candidates::One(token) if id == Some(token) => {
            let stands = accepts(q[token], 1.0, params);
            return (!stands).then_some(token);
        }
        Candidates::One(token) => return Some(token),
        Candidates::Kept(kept) => kept,
    };
    let p = Distribution::of(&mut kept);
    if id.is_some_and(|id| accepts(q[id], p.at(&kept, id, logits[id]), params)) {
        return None;
    }
    let residual = |id: usize| (p.at(&kept, id, logits[id]) - draft_probability(q[id])).max(0.0);
    let total: f64 = (0..logits.len()).map(residual).sum();
    if total <= 0.0 {
        return Some(Candidates::Kept(kept).draw(params));
    }
    let target = f64::from(residual_uniform(params.seed, params.position)) * total;
    let (mut running, mut last) = (0.0, 0);
    for id in 0..logits.len() {
        let weight = residual(id);
        if weight > 0.0 {
            running += weight;
            last = id;
            if running > target {
                break;
            }
        }
    }
    Some(last)
}

fn accepts(q: f32, p: f64, params: &SamplingParams) -> bool {
    f64::from(acceptance_uniform(params.seed, params.position)) * draft_probability(q) < p
}

/// NaN and what is below 0 count as 0.
fn draft_probability(q: f32) -> f64 {
    f64::from(q.max(0.0))
}

/// Which ids of a row are kept.
struct Distribution {
    least: f32,
    ties: usize,
}

impl Distribution {
    fn of(kept: &mut Kept<'_>) -> Self {
        let (least, ties) = kept.last();
        Distribution { least, ties }
    }

    /// The probability of an id.
    fn at(&self, kept: &Kept<'_>, id: usize, logit: f32) -> f64 {
        let inside = logit > self.least || (logit == self.least && id < self.ties);
        if inside { kept.weights.of(logit) / kept.sum } else { 0.0 }
    }
}
