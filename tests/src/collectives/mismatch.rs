//! Calls that do not fit each other, and ranks that are lost: everybody is told, and nobody waits for ever.

use super::{
    all_alike,
    ranks::{Part, Rank, Tensors, call, together},
};
use crate::{
    case::{Fault, Shown, Verdict, ensure},
    judge::refused,
};
use halite_hal::{Error, Tensor};
use halite_kernels::{
    Backend, DType,
    collectives::{Collective, Reduction},
};
use std::{thread, time::Duration};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("one rank calls for something else", mismatches),
        ("one rank cannot, so that nobody does", unsupported_on_one),
        ("a rank writes where another reads or writes", shared_memory),
        ("a rank that leaves, before and while others wait", lost),
    ]
}

fn part(collective: Collective, x: [usize; 2]) -> Part {
    let elements = x[0] * x[1];
    Part {
        collective,
        dtype: DType::F32,
        x,
        values: vec![1; elements],
        floats: vec![1.0; elements],
        send_counts: vec![],
        receive_counts: vec![],
        in_place: false,
    }
}

fn exchange(x: [usize; 2], send: &[usize], receive: &[usize]) -> Part {
    let (send_counts, receive_counts) = (send.to_vec(), receive.to_vec());
    Part { send_counts, receive_counts, ..part(Collective::AllToAll, x) }
}

const SUM: Collective = Collective::AllReduce(Reduction::Sum);

/// Runs the parts, one a rank, and gives each rank's error; outputs must not be written to.
fn errors_of<B: Backend>(device: &B, parts: Vec<Part>) -> Result<Vec<Error>, Fault> {
    let ranks = parts.len();
    together(device, ranks, move |rank: Rank<B>| {
        let stream = &mut rank.device.stream()?;
        let odd = &parts[rank.rank];
        let tensors = Tensors::new(stream, odd, ranks)?;
        let Err(error) = call(&rank, stream, odd, &tensors.x.view, &tensors.out().view) else {
            return Err(Fault::new("calls that do not fit each other ran"));
        };
        tensors.out().untouched(stream)?;
        // The communicator is whole: a call that fits gives its result.
        let sum = part(SUM, [2, 3]);
        let tensors = Tensors::new(stream, &sum, ranks)?;
        call(&rank, stream, &sum, &tensors.x.view, &tensors.out().view)?;
        let out = tensors.out().read(stream)?;
        ensure(out == [ranks as f64; 6], || {
            format!("after an error, ones of {ranks} ranks add up to {out:?}")
        })?;
        Ok(error)
    })
}

fn mismatches<B: Backend>(device: &B) -> Verdict {
    let usual = || part(SUM, [6, 4]);
    let others = [
        part(Collective::AllReduce(Reduction::Max), [6, 4]),
        part(Collective::ReduceScatter(Reduction::Sum), [6, 4]),
        part(Collective::AllGather, [6, 4]),
        exchange([6, 4], &[2, 2, 2], &[2, 2, 2]),
        part(SUM, [6, 5]),
        part(SUM, [7, 4]),
        part(SUM, [4, 6]),
        Part { dtype: DType::Bf16, ..part(SUM, [6, 4]) },
    ];
    for (number, other) in others.into_iter().enumerate() {
        let odd = number % 3;
        let parts = (0..3).map(|rank| if rank == odd { other.clone() } else { usual() }).collect();
        let errors = errors_of(device, parts)?;
        refused::<()>("collectives", "call", Err(errors[0].clone()))?;
        all_alike(&format!("{other:?}"), &errors.iter().map(Error::to_string).collect::<Vec<_>>())?;
    }
    let even = || exchange([6, 4], &[2, 2, 2], &[2, 2, 2]);
    for (argument, other) in [
        ("receive_counts", exchange([6, 4], &[1, 3, 2], &[2, 2, 2])),
        ("receive_counts", exchange([6, 4], &[2, 2, 2], &[2, 2, 3])),
        ("call", exchange([6, 5], &[2, 2, 2], &[2, 2, 2])),
    ] {
        let errors = errors_of(device, vec![even(), other.clone(), even()])?;
        refused::<()>("collectives", argument, Err(errors[0].clone()))?;
        all_alike(&format!("{other:?}"), &errors.iter().map(Error::to_string).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn unsupported_on_one<B: Backend>(device: &B) -> Verdict {
    let odd = Part { dtype: DType::U8, ..part(SUM, [6, 4]) };
    let errors = errors_of(device, vec![part(SUM, [6, 4]), odd, part(SUM, [6, 4])])?;
    all_alike("sums of U8", &errors.iter().map(Error::to_string).collect::<Vec<_>>())
}

/// Rank 0's output is an input or the output of rank 1, in part: whoever is first would take what the other needs.
fn shared_memory<B: Backend>(device: &B) -> Verdict {
    for collective in [SUM, Collective::AllGather] {
        for of_input in [true, false] {
            let stream = &mut device.stream()?;
            let odd = part(collective, [6, 4]);
            let tensors: Vec<_> =
                (0..3).map(|_| Tensors::<B>::new(stream, &odd, 3)).collect::<Result<_, Fault>>()?;
            let rows = odd.rows(3);
            let views = |rank: usize| (tensors[rank].x.view.clone(), tensors[rank].out().view.clone());
            let mut shared: Vec<_> = (0..3).map(views).collect();
            let big = Tensor::<B>::from_slice(stream, &vec![1.0f32; 4 * (rows + 6)], &[rows + 6, 4])?;
            shared[0].1 = big.narrow(0, 0..rows)?;
            if of_input {
                shared[1].0 = big.narrow(0, rows - 1..rows + 5)?;
            } else {
                shared[1].1 = big.narrow(0, 5..rows + 5)?;
            }
            let errors = together(device, 3, move |rank: Rank<B>| {
                let stream = &mut rank.device.stream()?;
                let (x, out) = &shared[rank.rank];
                match call(&rank, stream, &odd, x, out) {
                    Ok(()) => Err(Fault::new("ranks that share memory ran")),
                    Err(error) => Ok(error),
                }
            })?;
            refused::<()>("collectives", "out", Err(errors[0].clone()))?;
            all_alike("shared memory", &errors.iter().map(Error::to_string).collect::<Vec<_>>())?;
            tensors[2].out().untouched(stream)?;
        }
    }
    Ok(())
}

fn lost<B: Backend>(device: &B) -> Verdict {
    for (late, gone) in [(false, 0), (false, 3), (true, 1), (true, 3)] {
        let ranks = 4;
        let errors = together(device, ranks, move |rank: Rank<B>| {
            if rank.rank == gone {
                // Long enough that the others wait; a short time changes nothing but what is shown.
                thread::sleep(Duration::from_millis(if late { 30 } else { 0 }));
                return Ok(None);
            }
            let stream = &mut rank.device.stream()?;
            let sum = part(SUM, [5, 7]);
            let tensors = Tensors::new(stream, &sum, ranks)?;
            let mut last = None;
            for attempt in 0..2 {
                if attempt == 0 && !late {
                    thread::sleep(Duration::from_millis(10));
                }
                last = Some(call(&rank, stream, &sum, &tensors.x.view, &tensors.out().view));
            }
            tensors.out().untouched(stream)?;
            Ok(last)
        })?;
        for (rank, error) in errors.into_iter().enumerate().filter(|&(rank, _)| rank != gone) {
            let right = matches!(
                error,
                Some(Err(Error::RankLost { operator: "collectives", rank: lost, ranks: 4 })) if lost == gone
            );
            ensure(right, || format!("rank {gone} left; rank {rank} got {error:?}"))?;
        }
    }
    Ok(())
}
