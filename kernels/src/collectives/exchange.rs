//! Collectives between threads of one process, by copies: for backends on which a rank's input outlives its call only as a
//! copy, since work is queued and done later.
//!
//! Each rank brings a copy of its input to a meeting. When all are there and their calls fit, each computes its own output
//! on its own device, from the copies, and nobody waits on the host any more. Where all ranks have handles of one device the
//! copies are device memory, and streams wait for each other; otherwise they are bytes on the host, which each rank uploads
//! as far as it needs them.

use super::{
    AllGatherArgs, AllReduceArgs, AllToAllArgs, CollectiveCall, Collectives, CommunicatorInfo, Meeting,
    ReduceScatterArgs, Reduction, check_devices, check_together,
};
use crate::Checked;
use halite_hal::{Device, Pending, Result, Stream, Tensor};
use std::{cell::Cell, fmt::Debug, marker::PhantomData, ops::Range, sync::Arc};

/// What a backend does for an [`Exchange`].
pub trait ExchangeOps: Device {
    /// A point in a stream's order of work that other streams of the device can wait for.
    type Mark: Debug + Send + Sync + 'static;

    /// Whether both are handles of one device, whose memory each reads.
    fn is_same(&self, other: &Self) -> bool;

    /// Copies the elements of a dense tensor to another of the same type and shape.
    ///
    /// # Errors
    /// The device's.
    fn copy_dense(stream: &mut Self::Stream, from: &Tensor<Self>, to: &Tensor<Self>) -> Result<()>;

    /// The point behind all that is queued.
    ///
    /// # Errors
    /// The device's, or a stream that is being captured: ranks meet on the host.
    fn mark(stream: &mut Self::Stream) -> Result<Self::Mark>;

    /// What is queued from now on comes after such a point of another stream.
    ///
    /// # Errors
    /// The device's.
    fn wait_for(stream: &mut Self::Stream, mark: &Self::Mark) -> Result<()>;

    /// Reduces dense tensors of one shape, a rank each in ascending rank, as the contract has it. `out` may be one of them,
    /// the very same elements.
    ///
    /// # Errors
    /// The device's.
    fn reduce(
        stream: &mut Self::Stream,
        reduction: Reduction,
        x: &[Tensor<Self>],
        out: &Tensor<Self>,
    ) -> Result<()>;
}

/// One rank's end of a communicator.
#[derive(Debug)]
pub struct Exchange<B: ExchangeOps> {
    meeting: Arc<Meeting<Brought<B>>>,
    rank: usize,
    one_device: bool,
    /// It may be sent to another thread, not shared: a rank calls one thing at a time.
    alone: PhantomData<Cell<()>>,
}

/// What a rank brings to the meeting of a call.
#[derive(Debug)]
struct Brought<B: ExchangeOps> {
    call: CollectiveCall,
    x: Tensor<B>,
    out: Tensor<B>,
    copy: Copied<B>,
}

/// A rank's input as it was when it called, for the others.
#[derive(Debug)]
enum Copied<B: ExchangeOps> {
    /// On the device of all ranks, and the point behind the copy.
    Device(Tensor<B>, B::Mark),
    Host(Vec<u8>),
}

impl<B: ExchangeOps> Copied<B> {
    /// Of a dense tensor.
    fn of(stream: &mut B::Stream, x: &Tensor<B>, one_device: bool) -> Result<Self> {
        if !one_device {
            return Ok(Copied::Host(stream.download(x)?.wait()?));
        }
        let copy = Tensor::new(stream.device(), x.dtype(), x.dims())?;
        B::copy_dense(stream, x, &copy)?;
        Ok(Copied::Device(copy, B::mark(stream)?))
    }

    /// Some rows of the copy of `x`, on the stream's device.
    fn rows(&self, stream: &mut B::Stream, x: &Tensor<B>, rows: Range<usize>) -> Result<Tensor<B>> {
        let bytes = match self {
            Copied::Device(copy, mark) => {
                B::wait_for(stream, mark)?;
                return copy.narrow(0, rows);
            }
            Copied::Host(bytes) => bytes,
        };
        let mut dims = x.dims().to_vec();
        let row = bytes.len() / dims.first().copied().unwrap_or(0).max(1);
        dims.iter_mut().take(1).for_each(|first| *first = rows.len());
        let tensor = Tensor::new(stream.device(), x.dtype(), &dims)?;
        stream.upload(&tensor, bytes.get(rows.start * row..rows.end * row).unwrap_or_default())?;
        Ok(tensor)
    }
}

impl<B: ExchangeOps> CommunicatorInfo for Exchange<B> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.meeting.ranks()
    }
}

impl<B: ExchangeOps> Drop for Exchange<B> {
    fn drop(&mut self) {
        self.meeting.leave(self.rank);
    }
}

/// Rows of a tensor.
fn rows_of<D: Device>(tensor: &Tensor<D>) -> usize {
    tensor.dims().first().copied().unwrap_or(0)
}

impl<B: ExchangeOps> Exchange<B> {
    /// A communicator for these devices: one end a rank, in rank order.
    ///
    /// # Errors
    /// No devices.
    pub fn between(devices: &[B]) -> Result<Vec<Self>> {
        check_devices(devices)?;
        let meeting = Arc::new(Meeting::new(devices.len()));
        let one_device = devices.windows(2).all(|pair| pair[0].is_same(&pair[1]));
        let end = |rank| {
            let (meeting, alone) = (Arc::clone(&meeting), PhantomData);
            Exchange { meeting, rank, one_device, alone }
        };
        Ok((0..devices.len()).map(end).collect())
    }

    /// Whether all ranks have handles of one device, so that nothing goes by the host.
    pub fn is_one_device(&self) -> bool {
        self.one_device
    }

    /// Rows of a rank's input, on this device.
    fn rows(
        &self,
        stream: &mut B::Stream,
        (rank, brought): (usize, &Brought<B>),
        rows: Range<usize>,
    ) -> Result<Tensor<B>> {
        if rank == self.rank {
            return brought.x.narrow(0, rows);
        }
        brought.copy.rows(stream, &brought.x, rows)
    }

    /// The reduction of the same rows of all.
    fn reduce_rows(
        &self,
        stream: &mut B::Stream,
        reduction: Reduction,
        brought: &[Brought<B>],
        rows: Range<usize>,
        out: &Tensor<B>,
    ) -> Result<()> {
        let inputs = brought.iter().enumerate().map(|from| self.rows(stream, from, rows.clone()));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        B::reduce(stream, reduction, &inputs, out)
    }

    /// Some rows of each rank's input, one after the other.
    fn collect(
        &self,
        stream: &mut B::Stream,
        brought: &[Brought<B>],
        out: &Tensor<B>,
        rows_of: impl Fn(&CollectiveCall) -> Range<usize>,
    ) -> Result<()> {
        let mut end = 0;
        for (rank, brought) in brought.iter().enumerate() {
            let rows = rows_of(&brought.call);
            let start = end;
            end += rows.len();
            let from = self.rows(stream, (rank, brought), rows)?;
            B::copy_dense(stream, &from, &out.narrow(0, start..end)?)?;
        }
        Ok(())
    }
}

/// The family's operators, with the errors of [`Collectives`].
impl<B: ExchangeOps + Collectives<Communicator = Exchange<B>>> Exchange<B> {
    /// Meets with the others' calls. What this device cannot do, nobody does.
    fn meet(
        &self,
        stream: &mut B::Stream,
        call: &CollectiveCall,
        x: &Tensor<B>,
        out: &Tensor<B>,
    ) -> Result<Arc<[Brought<B>]>> {
        let spec = call.spec(self.ranks());
        let mut bring = || {
            let device = stream.device();
            device.collectives_supports(&spec).require("collectives", device, &spec)?;
            let copy = Copied::of(stream, x, self.one_device)?;
            Ok(Brought { call: call.clone(), x: x.clone(), out: out.clone(), copy })
        };
        self.meeting.meet(self.rank, bring(), |brought| {
            check_together(brought.iter().map(|brought| (&brought.call, &brought.x, &brought.out)))
        })
    }

    /// Every rank gets the reduction of all.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    pub fn all_reduce(
        stream: &mut B::Stream,
        args: &Checked<AllReduceArgs<'_, B>, CollectiveCall>,
    ) -> Result<()> {
        let &AllReduceArgs { communicator, reduction, x, out } = &**args;
        let brought = communicator.meet(stream, args.context(), x, out)?;
        communicator.reduce_rows(stream, reduction, &brought, 0..rows_of(x), out)
    }

    /// Every rank gets its part of the reduction of all.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    pub fn reduce_scatter(
        stream: &mut B::Stream,
        args: &Checked<ReduceScatterArgs<'_, B>, CollectiveCall>,
    ) -> Result<()> {
        let &ReduceScatterArgs { communicator, reduction, x, out } = &**args;
        let brought = communicator.meet(stream, args.context(), x, out)?;
        let start = communicator.rank * rows_of(out);
        communicator.reduce_rows(stream, reduction, &brought, start..start + rows_of(out), out)
    }

    /// Every rank gets the rows of all.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    pub fn all_gather(
        stream: &mut B::Stream,
        args: &Checked<AllGatherArgs<'_, B>, CollectiveCall>,
    ) -> Result<()> {
        let &AllGatherArgs { communicator, x, out } = &**args;
        let brought = communicator.meet(stream, args.context(), x, out)?;
        communicator.collect(stream, &brought, out, |_| 0..rows_of(x))
    }

    /// Every rank sends rows to every other.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    pub fn all_to_all(
        stream: &mut B::Stream,
        args: &Checked<AllToAllArgs<'_, B>, CollectiveCall>,
    ) -> Result<()> {
        let &AllToAllArgs { communicator, x, out, .. } = &**args;
        let brought = communicator.meet(stream, args.context(), x, out)?;
        communicator.collect(stream, &brought, out, |call| call.rows_for(communicator.rank))
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
