//! Collectives, judged: every rank on a thread of its own, late or early at random.

mod errors;
mod mismatch;
pub(crate) mod ranks;

use crate::{
    case::{Fault, Group, Verdict, ensure},
    judge::{judge, same_bits, unsupported},
    oracle,
    poison::stored,
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Support,
    collectives::{Collective, CollectiveSpec, Reduction},
};
use ranks::{Part, Rank, Tensors, call, together};
use std::{thread, time::Duration};

const ALL: [Collective; 6] = [
    Collective::AllReduce(Reduction::Sum),
    Collective::AllReduce(Reduction::Max),
    Collective::ReduceScatter(Reduction::Sum),
    Collective::ReduceScatter(Reduction::Max),
    Collective::AllGather,
    Collective::AllToAll,
];
const DTYPES: [DType; 6] = [DType::F32, DType::F16, DType::Bf16, DType::I32, DType::I8, DType::U8];

/// One call of all ranks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What to compute.
    pub spec: CollectiveSpec,
    /// Rows of a rank's part: of its input, or of its share of one; the most that one rank sends to another.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Whether `all_reduce` writes over its input.
    pub in_place: bool,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("collectives", "reduce", cases(&ALL[..4]), body),
        Group::listed("collectives", "exchange", cases(&ALL[4..]), body),
        Group::listed("collectives", "supports", supports(), body),
        Group::seeded("collectives", "random", 40, random, body),
        Group::bodies(
            "collectives",
            "sequences",
            vec![("many calls in a row, memory used again", sequences)],
        ),
        Group::bodies("collectives", "mismatch", mismatch::bodies()),
        Group::bodies("collectives", "errors", errors::bodies()),
    ]
}

fn cases(collectives: &[Collective]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &collective in collectives {
        for ranks in [1, 2, 3, 5, 8] {
            for (rows, columns) in [(0, 3), (1, 0), (1, 1), (2, 3), (1, 17), (33, 4), (7, 64), (3, 301)] {
                let (seed, spec) = (cases.len() as u64, CollectiveSpec::new(collective, ranks));
                let in_place = matches!(collective, Collective::AllReduce(_)) && rows % 2 == 1;
                cases.push(Case { spec, rows, columns, in_place, seed });
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for collective in ALL {
        for dtype in DTYPES {
            let spec = CollectiveSpec::new(collective, 3).with_dtype(dtype);
            cases.push(Case { spec, rows: 5, columns: 13, in_place: false, seed: cases.len() as u64 });
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (collective, ranks) = (rng.pick(&ALL), 1 + rng.below(6));
    let spec = CollectiveSpec::new(collective, ranks).with_dtype(rng.pick(&DTYPES));
    let in_place = matches!(collective, Collective::AllReduce(_)) && rng.coin();
    Case { spec, rows: rng.below(40), columns: rng.below(50), in_place, seed }
}

/// Every rank's part, its values as stored beside it.
fn parts(case: &Case) -> (Vec<Part>, Vec<Vec<f64>>) {
    let CollectiveSpec { collective, dtype, ranks, .. } = case.spec;
    let mut rng = Rng::new(case.seed);
    // Rows that one rank sends to another: some send nothing.
    let counts: Vec<Vec<usize>> =
        (0..ranks).map(|_| (0..ranks).map(|_| rng.below(case.rows + 1)).collect()).collect();
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0];
    let part = |rank: usize| {
        let (send_counts, receive_counts) = if collective == Collective::AllToAll {
            (counts[rank].clone(), counts.iter().map(|counts| counts[rank]).collect())
        } else {
            (vec![], vec![])
        };
        let rows = match collective {
            Collective::ReduceScatter(_) => case.rows * ranks,
            Collective::AllToAll => send_counts.iter().sum(),
            _ => case.rows,
        };
        let elements = rows * case.columns;
        let mut floats = rng.spreads(elements);
        if case.seed % 4 == 3 {
            floats.iter_mut().skip(rank).step_by(7).for_each(|value| *value = rng.pick(&special));
        }
        let narrow = |bits: u64| match dtype {
            DType::I8 => i32::from(bits as i8),
            DType::U8 => i32::from(bits as u8),
            _ => bits as i32,
        };
        let values = (0..elements).map(|_| narrow(rng.bits())).collect();
        let (x, in_place) = ([rows, case.columns], case.in_place);
        Part { collective, dtype, x, values, floats, send_counts, receive_counts, in_place }
    };
    let parts: Vec<Part> = (0..ranks).map(part).collect();
    let held = |part: &Part| -> Vec<f64> {
        if dtype.is_float() {
            part.floats.iter().map(|&value| stored(dtype, value)).collect()
        } else {
            part.values.iter().map(|&value| f64::from(value)).collect()
        }
    };
    let held = parts.iter().map(held).collect();
    (parts, held)
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let CollectiveSpec { collective, dtype, ranks, .. } = case.spec;
    let (parts, held) = parts(case);
    let supported = device.collectives_supports(&case.spec);
    let refused = matches!(supported, Support::No(_));
    if refused && let Err(error) = B::communicators(&vec![device.clone(); ranks]) {
        return unsupported::<()>("collectives", Err(error));
    }
    let (seed, asked) = (case.seed, parts.clone());
    let results = together(device, ranks, move |rank: Rank<B>| {
        let stream = &mut rank.device.stream()?;
        let part = &asked[rank.rank];
        let tensors = Tensors::new(stream, part, ranks)?;
        thread::sleep(Duration::from_micros(Rng::new(seed + rank.rank as u64).below(200) as u64));
        let ran = call(&rank, stream, part, &tensors.x.view, &tensors.out().view);
        if refused {
            unsupported("collectives", ran)?;
            if let Some(out) = &tensors.out {
                out.untouched(stream)?;
            }
            return Ok((vec![], vec![]));
        }
        ran?;
        Ok((tensors.out().read(stream)?, tensors.x.read(stream)?))
    })?;
    if refused {
        return Ok(());
    }
    let counts: Vec<Vec<usize>> = parts.iter().map(|part| part.send_counts.clone()).collect();
    let whole = match collective {
        Collective::AllReduce(reduction) | Collective::ReduceScatter(reduction) => {
            oracle::collectives::reduced(reduction, dtype, &held)
        }
        _ => held.concat().into_iter().map(Bound::exact).collect(),
    };
    for (rank, (out, x)) in results.into_iter().enumerate() {
        let dims = [parts[rank].rows(ranks), case.columns];
        let elements = dims[0] * dims[1];
        let expected = match collective {
            Collective::ReduceScatter(_) => whole[rank * elements..][..elements].to_vec(),
            Collective::AllToAll => {
                let rows = oracle::collectives::exchanged(&held, &counts, case.columns, rank);
                rows.into_iter().map(Bound::exact).collect()
            }
            _ => whole.clone(),
        };
        judge(&format!("out of rank {rank}"), &dims, &out, &expected)?;
        if !case.in_place {
            let before: Vec<Bound> = held[rank].iter().copied().map(Bound::exact).collect();
            judge(&format!("x of rank {rank}"), &parts[rank].x, &x, &before)?;
        }
    }
    Ok(())
}

/// A rank goes on to the next call, and writes over what it gave to the last, while others may still be late.
fn sequences<B: Backend>(device: &B) -> Verdict {
    let ranks = 4;
    let case = |round: usize| Case {
        spec: CollectiveSpec::new(ALL[round % ALL.len()], ranks),
        rows: 1 + round % 5,
        columns: 33,
        in_place: round % 12 == 6,
        seed: 4 * round as u64,
    };
    let rounds: Vec<_> = (0..48).map(|round| parts(&case(round))).collect();
    let asked: Vec<Vec<Part>> = rounds.iter().map(|(parts, _)| parts.clone()).collect();
    let results = together(device, ranks, move |rank: Rank<B>| {
        let stream = &mut rank.device.stream()?;
        let mut rng = Rng::new(rank.rank as u64);
        let mut results = Vec::new();
        for parts in &asked {
            let part = &parts[rank.rank];
            let tensors = Tensors::new(stream, part, ranks)?;
            if rng.below(3) == 0 {
                thread::sleep(Duration::from_micros(rng.below(300) as u64));
            }
            call(&rank, stream, part, &tensors.x.view, &tensors.out().view)?;
            results.push(tensors.out().read(stream)?);
            tensors.x.view.write(stream, &vec![f32::NAN; part.floats.len()])?;
        }
        Ok(results)
    })?;
    for (round, (parts, held)) in rounds.iter().enumerate() {
        let case = case(round);
        for (rank, results) in results.iter().enumerate() {
            let expected = match case.spec.collective {
                Collective::AllReduce(reduction) => oracle::collectives::reduced(reduction, DType::F32, held),
                Collective::ReduceScatter(reduction) => {
                    let elements = case.rows * case.columns;
                    oracle::collectives::reduced(reduction, DType::F32, held)[rank * elements..][..elements]
                        .to_vec()
                }
                Collective::AllGather => held.concat().into_iter().map(Bound::exact).collect(),
                _ => {
                    let counts: Vec<_> = parts.iter().map(|part| part.send_counts.clone()).collect();
                    let rows = oracle::collectives::exchanged(held, &counts, case.columns, rank);
                    rows.into_iter().map(Bound::exact).collect()
                }
            };
            let dims = [parts[rank].rows(ranks), case.columns];
            judge(&format!("round {round}, out of rank {rank}"), &dims, &results[round], &expected)?;
        }
    }
    Ok(())
}

/// Sums are made in ascending rank: the same bits in every rank, alone or among others, whatever the timing.
pub(crate) fn in_order<B: Backend>(device: &B) -> Verdict {
    for (ranks, elements) in [(2, 1), (3, 17), (5, 300), (8, 1000)] {
        let mut rng = Rng::new(elements as u64);
        // Of magnitudes that make every other order round otherwise somewhere.
        let inputs: Vec<Vec<f32>> = (0..ranks).map(|_| rng.spreads(elements)).collect();
        let sums = oracle::collectives::summed_in_order(&inputs);
        // Together, and the last half alone.
        for start in [0, elements / 2] {
            for (scatter, attempt) in [(false, 1), (false, 2), (true, 3)] {
                let collective = if scatter { ALL[2] } else { ALL[0] };
                let copies = if scatter { ranks } else { 1 };
                let parts: Vec<Part> = inputs
                    .iter()
                    .map(|input| Part {
                        collective,
                        dtype: DType::F32,
                        x: [copies, elements - start],
                        values: vec![],
                        floats: input[start..].repeat(copies),
                        send_counts: vec![],
                        receive_counts: vec![],
                        in_place: attempt == 2,
                    })
                    .collect();
                let results = together(device, ranks, move |rank: Rank<B>| {
                    let stream = &mut rank.device.stream()?;
                    let tensors = Tensors::new(stream, &parts[rank.rank], ranks)?;
                    let late = Rng::new(attempt * 100 + rank.rank as u64).below(200);
                    thread::sleep(Duration::from_micros(late as u64));
                    call(&rank, stream, &parts[rank.rank], &tensors.x.view, &tensors.out().view)?;
                    tensors.out().read_bytes(stream)
                })?;
                let expected: Vec<u8> = sums[start..].iter().flat_map(|sum| sum.to_le_bytes()).collect();
                for (rank, bytes) in results.iter().enumerate() {
                    same_bits(&format!("{collective:?} of {ranks}, rank {rank}"), bytes, &expected)?;
                }
            }
        }
    }
    Ok(())
}

/// The same outcome on every rank.
fn all_alike(what: &str, errors: &[String]) -> Verdict {
    let first = errors.first().map(String::as_str).unwrap_or_default();
    match errors.iter().position(|error| error != first) {
        None => Ok(()),
        Some(rank) => {
            Err(Fault::new(format!("{what}: rank 0 got {first}, rank {rank} got {}", errors[rank])))
        }
    }
    .and_then(|()| ensure(!errors.is_empty(), || format!("{what}: nobody came back")))
}
