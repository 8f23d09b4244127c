//! Vocabularies that are searched in parts: draws, distributions and verified drafts against the oracle's.

use halite_hal::{DType, Device, Tensor};
use halite_kernels::sampling::{
    DraftProbabilities, ProbabilityArgs, Sampling, SamplingArgs, SamplingParams, SamplingSpec, SamplingStep,
    VerifyArgs, VerifyCapacity, VerifyStep,
};
use halite_parity::{oracle, random::Rng};
use halite_wgpu::{Options, Wgpu, adapters};

/// Whether there is an adapter to test. Without any, a test is not run, which is a failure where `CI=true`.
fn there_is_a_gpu() -> bool {
    let there = adapters().iter().any(|adapter| adapter.lacks.is_none());
    if !there {
        eprintln!("NOT RUN: this machine has no adapter that can be used");
        assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "not run although CI=true");
    }
    there
}

/// Two whole parts, and some of a third.
const VOCABULARY: usize = 9001;

/// Rows by what their lists of likely tokens hold: a few tokens; none but ties; more than there is room for; a few, of
/// which those that lie outside weigh as much together; nothing that can be drawn.
fn rows() -> Vec<Vec<f32>> {
    let mut rng = Rng::new(1);
    let mut row = |of: &mut dyn FnMut(&mut Rng, usize) -> f32| -> Vec<f32> {
        (0..VOCABULARY).map(|id| of(&mut rng, id)).collect()
    };
    vec![
        row(&mut |rng, id| if id % 97 == 5 { 4.0 * rng.unit() + 9.0 } else { 5.0 * rng.unit() - 12.0 }),
        row(&mut |_, _| 0.5),
        row(&mut |rng, _| 8.0 * rng.unit()),
        row(&mut |rng, id| if id == 8200 { 23.2 } else { 0.1 * rng.unit() + 14.1 - 5.1 * (id % 2) as f32 }),
        row(&mut |_, id| if id % 2 == 0 { f32::NAN } else { f32::NEG_INFINITY }),
    ]
}

fn params() -> Vec<SamplingParams> {
    let plain = SamplingParams::seeded(1.0, 3);
    vec![
        plain.clone(),
        plain.clone().with_top_k(40),
        plain.clone().with_top_k(8000).with_top_p(0.999),
        plain.clone().with_top_p(0.9),
        plain.clone().with_min_p(0.05),
        plain.clone().with_min_p(1e-7),
        SamplingParams::seeded(0.2, 4).with_top_p(0.95),
        SamplingParams::seeded(2e38, 5),
        SamplingParams::greedy(),
    ]
}

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}

#[test]
fn large_vocabularies_are_drawn_from_as_small_ones_are() {
    if !there_is_a_gpu() {
        return;
    }
    let device = Wgpu::new(Options::default()).unwrap();
    let stream = &mut device.stream().unwrap();
    let (mut logits, mut all) = (Vec::new(), Vec::new());
    for (number, params) in params().into_iter().enumerate() {
        for (place, row) in rows().into_iter().enumerate() {
            all.push(params.clone().at((number * 100 + place) as u64));
            logits.push(row);
        }
    }
    let rows = all.len();
    let x = Tensor::<Wgpu>::from_slice(stream, &logits.concat(), &[rows, VOCABULARY]).unwrap();
    let mut plan = device.sampling_plan(&SamplingSpec::new(VOCABULARY), rows).unwrap();
    let step = SamplingStep { params: &all }.check(&plan).unwrap();
    device.sampling_update(stream, &mut plan, &step).unwrap();
    let ids = Tensor::new(&device, DType::I32, &[rows]).unwrap();
    device.sample(stream, SamplingArgs { plan: &plan, logits: &x, ids: &ids }.check().unwrap()).unwrap();
    let ids = ids.to_vec::<i32>(stream).unwrap();
    let out = Tensor::new(&device, DType::F32, &[rows, VOCABULARY]).unwrap();
    let args = ProbabilityArgs { plan: &plan, logits: &x, out: &out };
    device.probabilities(stream, args.check().unwrap()).unwrap();
    let out = out.to_vec::<f32>(stream).unwrap();
    for (row, (logits, params)) in logits.iter().zip(&all).enumerate() {
        let logits = wide(logits);
        let right = oracle::sampling::acceptable(&logits, params);
        assert!(right.contains(&(ids[row] as usize)), "row {row}, {params:?}: {} of {right:?}", ids[row]);
        let out = &out[row * VOCABULARY..][..VOCABULARY];
        let holds = oracle::sampling::kept(&logits, params).iter().any(|kept| {
            // No others are there, and those looked at are right.
            let mut some = kept.ids.iter().step_by(kept.ids.len().div_ceil(40));
            out.iter().filter(|&&p| p > 0.0).count() <= kept.ids.len()
                && some.all(|&id| kept.probability(id).holds(f64::from(out[id])))
                && (out.iter().map(|&p| f64::from(p)).sum::<f64>() - 1.0).abs() < 1e-4
        });
        assert!(holds, "row {row}, {params:?}: the distribution is another");
    }
}

#[test]
fn drafts_of_large_vocabularies_are_verified_as_small_ones_are() {
    if !there_is_a_gpu() {
        return;
    }
    let device = Wgpu::new(Options::default()).unwrap();
    let stream = &mut device.stream().unwrap();
    let all: Vec<SamplingParams> = params().into_iter().step_by(2).map(|params| params.at(7)).collect();
    let requests = all.len();
    let drafted = rows().len() - 1;
    let logits: Vec<Vec<f32>> = (0..requests).flat_map(|_| rows()).collect();
    let cu_drafts: Vec<u32> = (0..=requests).map(|request| (request * drafted) as u32).collect();
    // The first drafts stand mostly; each q is even, and one is of the wrong token alone.
    let even = vec![1.0 / VOCABULARY as f32; VOCABULARY];
    let (mut drafts, mut q) = (Vec::new(), Vec::new());
    for (request, params) in all.iter().enumerate() {
        for place in 0..drafted {
            let params = params.clone().at(params.position + place as u64);
            let row = wide(&logits[request * (drafted + 1) + place]);
            let right = oracle::sampling::acceptable(&row, &params);
            let wrong = request == 2 && place == 1;
            drafts.push(if wrong { 17 } else { right[0] as i32 });
            let mut one = even.clone();
            if wrong {
                one.fill(0.0);
                one[17] = 1.0;
            }
            q.push(one);
        }
    }
    let spec = SamplingSpec::new(VOCABULARY);
    let x = Tensor::<Wgpu>::from_slice(stream, &logits.concat(), &[logits.len(), VOCABULARY]).unwrap();
    let ids = Tensor::<Wgpu>::from_slice(stream, &drafts, &[drafts.len()]).unwrap();
    let drawn = Tensor::<Wgpu>::from_slice(stream, &q.concat(), &[q.len(), VOCABULARY]).unwrap();
    let mut plan = device.verify_plan(&spec, &VerifyCapacity::new(requests, drafts.len())).unwrap();
    let step = VerifyStep { params: &all, cu_drafts: &cu_drafts }.check(&plan).unwrap();
    device.verify_update(stream, &mut plan, &step).unwrap();
    for chosen in [true, false] {
        let [accepted, next] = [(); 2].map(|()| Tensor::new(&device, DType::I32, &[requests]).unwrap());
        let probabilities =
            if chosen { DraftProbabilities::Chosen } else { DraftProbabilities::Drawn(&drawn) };
        let (plan, accepted_out, next_out) = (&plan, &accepted, &next);
        let args = VerifyArgs {
            plan,
            logits: &x,
            drafts: &ids,
            probabilities,
            accepted: accepted_out,
            next: next_out,
        };
        device.verify(stream, args.check().unwrap()).unwrap();
        let (accepted, next) = (accepted.to_vec::<i32>(stream).unwrap(), next.to_vec::<i32>(stream).unwrap());
        for (request, params) in all.iter().enumerate() {
            let own: Vec<Vec<f64>> =
                logits[request * (drafted + 1)..][..=drafted].iter().map(|row| wide(row)).collect();
            let range = request * drafted..(request + 1) * drafted;
            let q: Vec<Vec<f64>> = q[range.clone()].iter().map(|row| wide(row)).collect();
            let right = oracle::sampling::verify::outcomes(&oracle::sampling::verify::Drafted {
                logits: &own,
                drafts: &drafts[range],
                q: (!chosen).then_some(&q[..]),
                params,
            });
            let got = (accepted[request] as usize, next[request] as usize);
            assert!(right.contains(&got), "request {request}, chosen {chosen}: {got:?} of {right:?}");
        }
    }
}
