//! Collectives between threads of one process, by copies of what each rank brings.

mod reduce;

use crate::{compile::Program, copy, device::Cuda, driver, stream::CudaStream};
use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, Support,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, CollectiveCall, CollectiveSpec, Collectives, Exchange,
        ExchangeOps, ReduceScatterArgs, Reduction, numbers_only,
    },
};

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    reduce::programs()
}

/// One rank's end of a communicator.
pub type CudaCommunicator = Exchange<Cuda>;

impl ExchangeOps for Cuda {
    type Mark = driver::Event;

    fn is_same(&self, other: &Self) -> bool {
        self.id() == other.id()
    }

    fn copy_dense(stream: &mut CudaStream, from: &Tensor<Cuda>, to: &Tensor<Cuda>) -> Result<()> {
        copy::elements(stream, from, to)
    }

    fn mark(stream: &mut CudaStream) -> Result<driver::Event> {
        stream.mark()
    }

    fn wait_for(stream: &mut CudaStream, mark: &driver::Event) -> Result<()> {
        stream.wait_for(mark)
    }

    fn reduce(
        stream: &mut CudaStream,
        reduction: Reduction,
        x: &[Tensor<Cuda>],
        out: &Tensor<Cuda>,
    ) -> Result<()> {
        reduce::reduce(stream, reduction, x, out)
    }
}

impl Collectives for Cuda {
    type Communicator = CudaCommunicator;

    fn collectives_supports(&self, spec: &CollectiveSpec) -> Support {
        numbers_only(spec)
    }

    fn communicators(devices: &[Cuda]) -> Result<Vec<CudaCommunicator>> {
        Exchange::between(devices)
    }

    fn all_reduce(
        &self,
        stream: &mut CudaStream,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::all_reduce(stream, &args)
    }

    fn reduce_scatter(
        &self,
        stream: &mut CudaStream,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::reduce_scatter(stream, &args)
    }

    fn all_gather(
        &self,
        stream: &mut CudaStream,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::all_gather(stream, &args)
    }

    fn all_to_all(
        &self,
        stream: &mut CudaStream,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::all_to_all(stream, &args)
    }
}

#[cfg(all(test, feature = "interpreter"))]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::{DType, Device};
    use halite_kernels::collectives::CommunicatorInfo;
    use std::thread;

    /// Two devices: what a rank gives goes by the host.
    #[test]
    fn ranks_on_devices_of_their_own_exchange_bytes() {
        let Some(first) = testing::cuda("ranks on devices of their own") else { return };
        let devices = [first.clone(), first.rebuild().unwrap(), first];
        let ends = Cuda::communicators(&devices).unwrap();
        assert!(ends.iter().all(|end| !end.is_one_device()));
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
