//! Hidden states between two ranks: reduced as tensor parallelism does, exchanged as expert parallelism does.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, check_first, for_each_device};
use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::collectives::*;
use std::thread;

const RANKS: usize = 2;

const CALLS: [Collective; 4] = [
    Collective::AllReduce(Reduction::Sum),
    Collective::ReduceScatter(Reduction::Sum),
    Collective::AllGather,
    Collective::AllToAll,
];

/// Rows of a rank's result.
fn out_rows(call: Collective, rows: usize) -> usize {
    match call {
        Collective::ReduceScatter(_) => rows / RANKS,
        Collective::AllGather => rows * RANKS,
        _ => rows,
    }
}

struct Calls;

impl Bench for Calls {
    const OPERATOR: &'static str = "collectives";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        // Llama 3 8B: a decode step of two sequences, and a prompt.
        for rows in [2, 512] {
            for call in CALLS {
                measure(group, device, call, rows, 4096)?;
            }
        }
        Ok(())
    }
}

/// One rank: its communicator, its stream and its tensors.
struct Rank<B: Measured> {
    device: B,
    communicator: B::Communicator,
    x: Tensor<B>,
    out: Tensor<B>,
}

impl<B: Measured> Rank<B> {
    fn new(
        device: &B,
        stream: &mut B::Stream,
        communicator: B::Communicator,
        call: Collective,
        rows: usize,
        columns: usize,
    ) -> Result<Self> {
        let value = communicator.rank() as f32 + 1.0;
        let x = Tensor::from_slice(stream, &vec![value; rows * columns], &[rows, columns])?;
        let out = Tensor::new(device, DType::F32, &[out_rows(call, rows), columns])?;
        Ok(Rank { device: device.clone(), communicator, x, out })
    }

    fn call(&mut self, stream: &mut B::Stream, call: Collective) -> Result<()> {
        let Rank { device, communicator, x, out } = self;
        let counts = [x.dims()[0] / RANKS; RANKS];
        match call {
            Collective::AllReduce(reduction) => {
                device.all_reduce(stream, AllReduceArgs { communicator, reduction, x, out }.check()?)
            }
            Collective::ReduceScatter(reduction) => {
                device.reduce_scatter(stream, ReduceScatterArgs { communicator, reduction, x, out }.check()?)
            }
            Collective::AllGather => {
                device.all_gather(stream, AllGatherArgs { communicator, x, out }.check()?)
            }
            _ => {
                let (send_counts, receive_counts) = (&counts[..], &counts[..]);
                let args = AllToAllArgs { communicator, x, send_counts, receive_counts, out };
                device.all_to_all(stream, args.check()?)
            }
        }
    }
}

fn measure<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    call: Collective,
    rows: usize,
    columns: usize,
) -> Result<()> {
    let ends = B::communicators(&[device.clone(), device.clone()])?;
    let Ok([first, second]) = <[B::Communicator; RANKS]>::try_from(ends) else {
        unreachable!("a communicator has an end for each device")
    };
    thread::scope(|scope| {
        // It calls as often as the first rank does, which is over when that one's communicator is gone.
        let other = scope.spawn(move || -> Result<()> {
            let stream = &mut device.stream()?;
            let mut rank = Rank::new(device, stream, second, call, rows, columns)?;
            loop {
                match rank.call(stream, call) {
                    Err(Error::RankLost { .. }) => return Ok(()),
                    outcome => outcome?,
                }
            }
        });
        let stream = &mut device.stream()?;
        let mut rank = Rank::new(device, stream, first, call, rows, columns)?;
        rank.call(stream, call)?;
        let answer = rank.out.to_vec::<f32>(stream)?;
        // The first rank's input is 1 and the second's 2: what was reduced is 3 throughout.
        let reduced = matches!(call, Collective::AllReduce(_) | Collective::ReduceScatter(_));
        let [start, end] = if reduced { [3.0; 2] } else { [1.0, 2.0] };
        check_first(&answer, start, 0.0);
        check_first(&answer[answer.len() - 1..], end, 0.0);
        // Every rank's input is read and its result written.
        let bytes = RANKS * (rows + out_rows(call, rows)) * columns * 4;
        let id = format!("{call:?}/{RANKS}-ranks/{rows}x{columns}");
        let outcome = group.measure(&id, Work::bytes(bytes as u64), stream, |stream| rank.call(stream, call));
        drop(rank);
        outcome.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn collectives(criterion: &mut Criterion) {
    for_each_device(criterion, &Calls);
}

criterion_group!(benches, collectives);
criterion_main!(benches);
