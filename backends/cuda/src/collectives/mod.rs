//! Collectives between threads of one process.
//!
//! Each rank brings a copy of its input to a meeting. When all are there and their calls fit, each computes its own output
//! on its own device, from the copies, and only streams wait for each other. Where all ranks have handles of one device
//! the copies are device memory; otherwise they are bytes on the host, which each rank uploads as far as it needs them.

mod copied;
mod reduce;

use crate::{compile::Program, copy, device::Cuda, driver, stream::CudaStream};
use copied::Copied;
use halite_hal::{DType, Result, Tensor};
use halite_kernels::collectives::Meeting;
use halite_kernels::{
    Checked, Support,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, Collective, CollectiveCall, CollectiveSpec, Collectives,
        CommunicatorInfo, ReduceScatterArgs, Reduction, check_apart, check_devices,
    },
};
use std::{cell::Cell, marker::PhantomData, ops::Range, sync::Arc};

/// One rank's end of a communicator.
#[derive(Debug)]
pub struct CudaCommunicator {
    meeting: Arc<Meeting<Brought>>,
    rank: usize,
    /// Whether all ranks have handles of one device.
    one_device: bool,
    /// It may be sent to another thread, not shared: a rank calls one thing at a time.
    alone: PhantomData<Cell<()>>,
}

/// What a rank brings to the meeting of a call.
#[derive(Debug)]
struct Brought {
    call: CollectiveCall,
    x: Tensor<Cuda>,
    out: Tensor<Cuda>,
    copy: Copied,
    /// After the copy, in its rank's stream.
    copied: driver::Event,
}

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    reduce::programs()
}

impl CommunicatorInfo for CudaCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.meeting.ranks()
    }
}

impl Drop for CudaCommunicator {
    fn drop(&mut self) {
        self.meeting.leave(self.rank);
    }
}

impl CudaCommunicator {
    /// Meets with the others' calls. What this device cannot do, nobody does.
    fn call(
        &self,
        device: &Cuda,
        stream: &mut CudaStream,
        call: &CollectiveCall,
        x: &Tensor<Cuda>,
        out: &Tensor<Cuda>,
    ) -> Result<Arc<[Brought]>> {
        let spec = call.spec(self.ranks());
        let mut bring = || {
            device.collectives_supports(&spec).require("collectives", device, &spec)?;
            let copy = Copied::of(device, stream, x, self.one_device)?;
            let copied = stream.mark()?;
            Ok(Brought { call: call.clone(), x: x.clone(), out: out.clone(), copy, copied })
        };
        self.meeting.meet(self.rank, bring(), |brought| {
            let calls: Vec<CollectiveCall> = brought.iter().map(|brought| brought.call.clone()).collect();
            CollectiveCall::fit(&calls)?;
            let tensors: Vec<_> = brought.iter().map(|brought| (&brought.x, &brought.out)).collect();
            check_apart(&tensors)
        })
    }

    /// Rows of a rank's input, on this device.
    fn rows(
        &self,
        device: &Cuda,
        stream: &mut CudaStream,
        (rank, brought): (usize, &Brought),
        rows: Range<usize>,
    ) -> Result<Tensor<Cuda>> {
        if rank == self.rank {
            return brought.x.narrow(0, rows);
        }
        if self.one_device {
            stream.wait_for(&brought.copied)?;
        }
        brought.copy.rows(device, stream, &brought.x, rows)
    }

    /// The reduction of the same rows of all.
    fn reduce(
        &self,
        device: &Cuda,
        stream: &mut CudaStream,
        reduction: Reduction,
        brought: &[Brought],
        rows: Range<usize>,
        out: &Tensor<Cuda>,
    ) -> Result<()> {
        let inputs = brought.iter().enumerate().map(|from| self.rows(device, stream, from, rows.clone()));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        reduce::reduce(device, stream, reduction, &inputs, out)
    }

    /// Some rows of each rank's input, one after the other.
    fn collect(
        &self,
        device: &Cuda,
        stream: &mut CudaStream,
        brought: &[Brought],
        out: &Tensor<Cuda>,
        rows_of: impl Fn(&CollectiveCall) -> Range<usize>,
    ) -> Result<()> {
        let mut end = 0;
        for (rank, brought) in brought.iter().enumerate() {
            let rows = rows_of(&brought.call);
            let start = end;
            end += rows.len();
            let from = self.rows(device, stream, (rank, brought), rows)?;
            copy::elements(stream, &from, &out.narrow(0, start..end)?)?;
        }
        Ok(())
    }
}

/// Rows of a tensor.
fn rows_of(tensor: &Tensor<Cuda>) -> usize {
    tensor.dims().first().copied().unwrap_or(0)
}

impl Collectives for Cuda {
    type Communicator = CudaCommunicator;

    fn collectives_supports(&self, spec: &CollectiveSpec) -> Support {
        let sums = matches!(spec.dtype, DType::F32 | DType::F16 | DType::Bf16 | DType::I32);
        match spec.collective {
            Collective::AllReduce(reduction) | Collective::ReduceScatter(reduction) => match reduction {
                Reduction::Sum | Reduction::Max if sums => Support::Native,
                Reduction::Sum | Reduction::Max => {
                    Support::No(format!("reductions of {}: only of floats and I32", spec.dtype))
                }
                other => Support::No(format!("{other:?} is not implemented")),
            },
            Collective::AllGather | Collective::AllToAll => Support::Native,
            other => Support::No(format!("{other:?} is not implemented")),
        }
    }

    fn communicators(devices: &[Cuda]) -> Result<Vec<CudaCommunicator>> {
        check_devices(devices)?;
        let meeting = Arc::new(Meeting::new(devices.len()));
        let one_device = devices.windows(2).all(|pair| pair[0].id() == pair[1].id());
        let end = |rank| {
            let (meeting, alone) = (Arc::clone(&meeting), PhantomData);
            CudaCommunicator { meeting, rank, one_device, alone }
        };
        Ok((0..devices.len()).map(end).collect())
    }

    fn all_reduce(
        &self,
        stream: &mut CudaStream,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let AllReduceArgs { communicator, reduction, x, out } = *args;
        let brought = communicator.call(self, stream, args.context(), x, out)?;
        communicator.reduce(self, stream, reduction, &brought, 0..rows_of(x), out)
    }

    fn reduce_scatter(
        &self,
        stream: &mut CudaStream,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let ReduceScatterArgs { communicator, reduction, x, out } = *args;
        let brought = communicator.call(self, stream, args.context(), x, out)?;
        let start = communicator.rank() * rows_of(out);
        communicator.reduce(self, stream, reduction, &brought, start..start + rows_of(out), out)
    }

    fn all_gather(
        &self,
        stream: &mut CudaStream,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let AllGatherArgs { communicator, x, out } = *args;
        let brought = communicator.call(self, stream, args.context(), x, out)?;
        communicator.collect(self, stream, &brought, out, |_| 0..rows_of(x))
    }

    fn all_to_all(
        &self,
        stream: &mut CudaStream,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        let AllToAllArgs { communicator, x, out, .. } = *args;
        let rank = communicator.rank();
        let brought = communicator.call(self, stream, args.context(), x, out)?;
        communicator.collect(self, stream, &brought, out, |call| {
            let start: usize = call.send_counts.iter().take(rank).sum();
            start..start + call.send_counts.get(rank).copied().unwrap_or(0)
        })
    }
}

#[cfg(all(test, feature = "interpreter"))]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::Device;
    use std::thread;

    /// Two devices: what a rank gives goes by the host.
    #[test]
    fn ranks_on_devices_of_their_own_exchange_bytes() {
        let Some(first) = testing::cuda("ranks on devices of their own") else { return };
        let devices = [first.clone(), first.rebuild().unwrap(), first];
        let ends = Cuda::communicators(&devices).unwrap();
        assert!(ends.iter().all(|end| !end.one_device));
        let results = thread::scope(|scope| {
            let ranks = ends.into_iter().zip(devices).map(|(communicator, device)| {
                scope.spawn(move || {
                    let stream = &mut device.stream().unwrap();
                    let (rank, communicator) = (communicator.rank(), &communicator);
                    let values: Vec<f32> = (0..6).map(|place| (place + 10 * rank) as f32).collect();
                    let x = Tensor::from_slice(stream, &values, &[6, 1]).unwrap();
                    let out = |rows| Tensor::new(&device, DType::F32, &[rows, 1]).unwrap();
                    let reduction = Reduction::Sum;
                    let (part, whole, own) = (out(2), out(18), out(6));
                    let args = ReduceScatterArgs { communicator, reduction, x: &x, out: &part };
                    device.reduce_scatter(stream, args.check().unwrap()).unwrap();
                    let args = AllGatherArgs { communicator, x: &x, out: &whole };
                    device.all_gather(stream, args.check().unwrap()).unwrap();
                    let counts = &[[1, 2, 3], [2, 2, 2], [3, 2, 1]];
                    let receive_counts = &counts.map(|counts| counts[rank]);
                    let send_counts = &counts[rank];
                    let args = AllToAllArgs { communicator, x: &x, send_counts, receive_counts, out: &own };
                    device.all_to_all(stream, args.check().unwrap()).unwrap();
                    let args = AllReduceArgs { communicator, reduction, x: &x, out: &x };
                    device.all_reduce(stream, args.check().unwrap()).unwrap();
                    [part, whole, own, x].map(|tensor| tensor.to_vec::<f32>(stream).unwrap())
                })
            });
            let ranks: Vec<_> = ranks.collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
        });
        let all: Vec<f32> = (0..18).map(|place| (place % 6 + place / 6 * 10) as f32).collect();
        let sums: Vec<f32> = (0..6).map(|place| (3 * place + 30) as f32).collect();
        let exchanged: [&[f32]; 3] =
            [&[0., 10., 11., 20., 21., 22.], &[1., 2., 12., 13., 23., 24.], &[3., 4., 5., 14., 15., 25.]];
        for (rank, [part, whole, own, x]) in results.into_iter().enumerate() {
            assert_eq!(part, sums[2 * rank..][..2], "rank {rank}");
            assert_eq!((whole, x), (all.clone(), sums.clone()), "rank {rank}");
            assert_eq!(own, exchanged[rank], "rank {rank}");
        }
    }
}
