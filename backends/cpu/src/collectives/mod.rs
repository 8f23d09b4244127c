//! Collectives between threads of one process.
//!
//! Each rank brings handles of its tensors to a meeting; when all are there and their calls fit, each computes its own part
//! from the others' memory, and a second meeting keeps everybody until nobody reads any more.

mod reduce;

use crate::{device::Cpu, stream::CpuStream};
use halite_hal::{Result, Tensor};
use halite_kernels::collectives::Meeting;
use halite_kernels::{
    Checked, Support,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, CollectiveCall, CollectiveSpec, Collectives,
        CommunicatorInfo, ReduceScatterArgs, check_devices, check_together, numbers_only,
    },
};
use std::{cell::Cell, marker::PhantomData, ops::Range, sync::Arc};

/// One rank's end of a communicator.
#[derive(Debug)]
pub struct CpuCommunicator {
    meeting: Arc<Meeting<Option<Brought>>>,
    rank: usize,
    /// It may be sent to another thread, not shared: a rank calls one thing at a time.
    alone: PhantomData<Cell<()>>,
}

/// What a rank brings to the first meeting of a call.
#[derive(Debug)]
struct Brought {
    call: CollectiveCall,
    x: Tensor<Cpu>,
    out: Tensor<Cpu>,
}

impl CommunicatorInfo for CpuCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.meeting.ranks()
    }
}

impl Drop for CpuCommunicator {
    fn drop(&mut self) {
        self.meeting.leave(self.rank);
    }
}

impl CpuCommunicator {
    /// Meets with the others' calls. What this device cannot do, nobody does.
    fn call(
        &self,
        device: &Cpu,
        call: &CollectiveCall,
        x: &Tensor<Cpu>,
        out: &Tensor<Cpu>,
    ) -> Result<Arc<[Option<Brought>]>> {
        let spec = call.spec(self.ranks());
        let supported = device.collectives_supports(&spec).require("collectives", device, &spec);
        let brings = supported.map(|()| Some(Brought { call: call.clone(), x: x.clone(), out: out.clone() }));
        self.meeting.meet(self.rank, brings, |brought| {
            check_together(brought.iter().flatten().map(|brought| (&brought.call, &brought.x, &brought.out)))
        })
    }

    /// Keeps this rank until all have come so far; all of them fail where one has.
    fn wait(&self, so_far: Result<()>) -> Result<()> {
        self.meeting.meet(self.rank, so_far.map(|()| None), |_| Ok(())).map(drop)
    }

    /// Copies rows of each rank's input, one after the other, and keeps this rank until all have done so.
    fn collect(
        &self,
        device: &Cpu,
        call: &CollectiveCall,
        x: &Tensor<Cpu>,
        out: &Tensor<Cpu>,
        rows_of: impl Fn(&CollectiveCall) -> Range<usize>,
    ) -> Result<()> {
        let brought = self.call(device, call, x, out)?;
        let copy = || -> Result<()> {
            let mut end = 0;
            for from in brought.iter().flatten() {
                let rows = rows_of(&from.call);
                let start = end;
                end += rows.len();
                copy(&from.x.narrow(0, rows)?, &out.narrow(0, start..end)?)?;
            }
            Ok(())
        };
        self.wait(copy())
    }
}

/// The bytes of one dense tensor to another of the same size.
fn copy(from: &Tensor<Cpu>, to: &Tensor<Cpu>) -> Result<()> {
    let source = from.buffer().read(from.byte_range())?;
    to.buffer().write(to.byte_range())?.copy_from_slice(&source);
    Ok(())
}

/// Part `part` of `parts` of a dense tensor, as one dimension.
fn part(tensor: &Tensor<Cpu>, part: usize, parts: usize) -> Result<Tensor<Cpu>> {
    let elements = tensor.shape().elements();
    let flat = tensor.reshape(&[elements])?;
    flat.narrow(0, share(elements, part, parts))
}

/// The elements of part `part` of `parts`: whole cache lines of F32, so that ranks do not write to the same one. The last
/// parts have less, or nothing.
fn share(elements: usize, part: usize, parts: usize) -> Range<usize> {
    let size = elements.div_ceil(parts).next_multiple_of(16);
    (part * size).min(elements)..((part + 1) * size).min(elements)
}

/// The same part of every rank's input.
fn inputs(
    brought: &[Option<Brought>],
    piece: impl Fn(&Tensor<Cpu>) -> Result<Tensor<Cpu>>,
) -> Result<Vec<Tensor<Cpu>>> {
    brought.iter().flatten().map(|brought| piece(&brought.x)).collect()
}

impl Collectives for Cpu {
    type Communicator = CpuCommunicator;

    fn collectives_supports(&self, spec: &CollectiveSpec) -> Support {
        numbers_only(spec)
    }

    fn communicators(devices: &[Cpu]) -> Result<Vec<CpuCommunicator>> {
        check_devices(devices)?;
        let meeting = Arc::new(Meeting::new(devices.len()));
        let end = |rank| CpuCommunicator { meeting: Arc::clone(&meeting), rank, alone: PhantomData };
        Ok((0..devices.len()).map(end).collect())
    }

    /// Each rank reduces a part of the elements into its own output, and then copies the other parts from where they are.
    fn all_reduce(
        &self,
        _stream: &mut CpuStream,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let AllReduceArgs { communicator, reduction, x, out } = *args;
        let (rank, ranks) = (communicator.rank(), communicator.ranks());
        let brought = communicator.call(self, args.context(), x, out)?;
        let own = || -> Result<()> {
            reduce::reduce(reduction, &inputs(&brought, |x| part(x, rank, ranks))?, &part(out, rank, ranks)?)
        };
        communicator.wait(own())?;
        let others = || -> Result<()> {
            for (from, brought) in brought.iter().flatten().enumerate().filter(|&(from, _)| from != rank) {
                copy(&part(&brought.out, from, ranks)?, &part(out, from, ranks)?)?;
            }
            Ok(())
        };
        communicator.wait(others())
    }

    fn reduce_scatter(
        &self,
        _stream: &mut CpuStream,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let ReduceScatterArgs { communicator, reduction, x, out } = *args;
        let brought = communicator.call(self, args.context(), x, out)?;
        let (elements, rows) = (out.shape().elements(), out.dims().first().copied().unwrap_or(0));
        let first = communicator.rank() * rows;
        let own = || -> Result<()> {
            let inputs = inputs(&brought, |x| x.narrow(0, first..first + rows)?.reshape(&[elements]))?;
            reduce::reduce(reduction, &inputs, &out.reshape(&[elements])?)
        };
        communicator.wait(own())
    }

    fn all_gather(
        &self,
        _stream: &mut CpuStream,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let AllGatherArgs { communicator, x, out } = *args;
        communicator.collect(self, args.context(), x, out, |call| 0..call.dims.first().copied().unwrap_or(0))
    }

    fn all_to_all(
        &self,
        _stream: &mut CpuStream,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let AllToAllArgs { communicator, x, out, .. } = *args;
        communicator.collect(self, args.context(), x, out, |call| call.rows_for(communicator.rank()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_whole_cache_lines() {
        for (elements, expected) in [
            (0, [0..0, 0..0, 0..0]),
            (1, [0..1, 1..1, 1..1]),
            (16, [0..16, 16..16, 16..16]),
            (17, [0..16, 16..17, 17..17]),
            (48, [0..16, 16..32, 32..48]),
            (49, [0..32, 32..49, 49..49]),
            (96, [0..32, 32..64, 64..96]),
            (97, [0..48, 48..96, 96..97]),
        ] {
            assert_eq!([0, 1, 2].map(|part| share(elements, part, 3)), expected, "{elements} elements");
        }
        assert_eq!(share(1000, 0, 1), 0..1000);
    }
}
