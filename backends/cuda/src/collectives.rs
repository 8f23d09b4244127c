//! Collectives: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, CollectiveCall, CollectiveSpec, Collectives,
        CommunicatorInfo, ReduceScatterArgs,
    },
};

/// A rank of a group; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaCommunicator {}

impl CommunicatorInfo for CudaCommunicator {
    fn rank(&self) -> usize {
        match *self {}
    }

    fn ranks(&self) -> usize {
        match *self {}
    }
}

impl Collectives for Cuda {
    type Communicator = CudaCommunicator;

    fn collectives_supports(&self, _: &CollectiveSpec) -> Support {
        not_yet("collectives")
    }

    fn communicators(devices: &[Self]) -> Result<Vec<CudaCommunicator>> {
        Err(unsupported("collectives", "communicators", &devices.len()))
    }

    fn all_reduce(
        &self,
        _: &mut CudaStream,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }

    fn reduce_scatter(
        &self,
        _: &mut CudaStream,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }

    fn all_gather(
        &self,
        _: &mut CudaStream,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }

    fn all_to_all(
        &self,
        _: &mut CudaStream,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }
}
