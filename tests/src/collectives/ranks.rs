//! Ranks on threads of their own, watched: a rank that hangs is a fault, not a test without end.

use crate::{
    case::Fault,
    poison::{Guarded, Layout},
};
use halite_hal::{DType, Error, Tensor};
use halite_kernels::{
    Backend,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, Collective, CommunicatorInfo, ReduceScatterArgs,
    },
};
use std::{sync::mpsc, thread, time::Duration};

/// Far more than any call takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// One rank on its thread.
pub(crate) struct Rank<B: Backend> {
    pub(crate) device: B,
    pub(crate) communicator: B::Communicator,
    pub(crate) rank: usize,
}

/// Runs `job` on every rank of a new communicator; results in rank order.
pub(crate) fn together<B: Backend, T: Send + 'static>(
    device: &B,
    ranks: usize,
    job: impl Fn(Rank<B>) -> Result<T, Fault> + Clone + Send + 'static,
) -> Result<Vec<T>, Fault> {
    let devices = vec![device.clone(); ranks];
    let communicators = B::communicators(&devices)?;
    let told: Vec<_> = communicators.iter().map(|end| (end.rank(), end.ranks())).collect();
    let expected: Vec<_> = (0..ranks).map(|rank| (rank, ranks)).collect();
    if told != expected {
        return Err(Fault::new(format!("communicators of (rank, ranks) {told:?}, expected {expected:?}")));
    }
    let (sender, results) = mpsc::channel();
    for (rank, (communicator, device)) in communicators.into_iter().zip(devices).enumerate() {
        let (sender, job) = (sender.clone(), job.clone());
        // Who listens no more has seen a fault already.
        thread::spawn(move || drop(sender.send((rank, job(Rank { device, communicator, rank })))));
    }
    drop(sender);
    let mut done: Vec<Option<T>> = (0..ranks).map(|_| None).collect();
    for count in 0..ranks {
        let (rank, result) = results
            .recv_timeout(PATIENCE)
            .map_err(|why| Fault::new(format!("only {count} of {ranks} ranks came back: {why}")))?;
        done[rank] = Some(result.map_err(|Fault(fault)| Fault(format!("rank {rank}: {fault}")))?);
    }
    Ok(done.into_iter().flatten().collect())
}

/// One rank's part of a call.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) collective: Collective,
    pub(crate) dtype: DType,
    /// `[rows, columns]`.
    pub(crate) x: [usize; 2],
    pub(crate) values: Vec<i32>,
    pub(crate) floats: Vec<f32>,
    pub(crate) send_counts: Vec<usize>,
    pub(crate) receive_counts: Vec<usize>,
    pub(crate) in_place: bool,
}

impl Part {
    /// Rows of the output.
    pub(crate) fn rows(&self, ranks: usize) -> usize {
        match self.collective {
            Collective::AllReduce(_) => self.x[0],
            Collective::ReduceScatter(_) => self.x[0] / ranks,
            Collective::AllGather => self.x[0] * ranks,
            _ => self.receive_counts.iter().sum(),
        }
    }
}

/// A rank's tensors, with what it put into the first.
pub(crate) struct Tensors<B: Backend> {
    pub(crate) x: Guarded<B>,
    /// None where the input is the output too.
    pub(crate) out: Option<Guarded<B>>,
}

impl<B: Backend> Tensors<B> {
    pub(crate) fn new(stream: &mut B::Stream, part: &Part, ranks: usize) -> Result<Self, Fault> {
        let x = if part.dtype.is_float() {
            Guarded::input(stream, part.dtype, &part.floats, &part.x, Layout::Dense)?.0
        } else {
            Guarded::integers(stream, part.dtype, &part.values, &part.x, Layout::Dense)?
        };
        let dims = [part.rows(ranks), part.x[1]];
        let out = if part.in_place {
            None
        } else {
            Some(Guarded::output(stream, part.dtype, &dims, Layout::Dense)?)
        };
        Ok(Tensors { x, out })
    }

    pub(crate) fn out(&self) -> &Guarded<B> {
        self.out.as_ref().unwrap_or(&self.x)
    }
}

/// The call itself.
pub(crate) fn call<B: Backend>(
    rank: &Rank<B>,
    stream: &mut B::Stream,
    part: &Part,
    x: &Tensor<B>,
    out: &Tensor<B>,
) -> Result<(), Error> {
    let (device, communicator) = (&rank.device, &rank.communicator);
    match part.collective {
        Collective::AllReduce(reduction) => {
            device.all_reduce(stream, AllReduceArgs::<B> { communicator, reduction, x, out }.check()?)
        }
        Collective::ReduceScatter(reduction) => {
            device.reduce_scatter(stream, ReduceScatterArgs::<B> { communicator, reduction, x, out }.check()?)
        }
        Collective::AllGather => {
            device.all_gather(stream, AllGatherArgs::<B> { communicator, x, out }.check()?)
        }
        _ => {
            let (send_counts, receive_counts) = (&part.send_counts, &part.receive_counts);
            let args = AllToAllArgs::<B> { communicator, x, send_counts, receive_counts, out };
            device.all_to_all(stream, args.check()?)
        }
    }
}
