//! Collectives: not begun, so there are no communicators.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, CollectiveCall, CollectiveSpec, Collectives,
        CommunicatorInfo, ReduceScatterArgs,
    },
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

/// A rank's end of a group of devices; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendCommunicator {}

impl CommunicatorInfo for AscendCommunicator {
    fn rank(&self) -> usize {
        match *self {}
    }

    fn ranks(&self) -> usize {
        match *self {}
    }
}

impl Collectives for Ascend {
    type Communicator = AscendCommunicator;

    fn collectives_supports(&self, _: &CollectiveSpec) -> Support {
        not_yet()
    }

    fn communicators(devices: &[Self]) -> Result<Vec<AscendCommunicator>> {
        refused("collectives", &devices)
    }

    fn all_reduce(
        &self,
        _: &mut AscendStream,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }

    fn reduce_scatter(
        &self,
        _: &mut AscendStream,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }

    fn all_gather(
        &self,
        _: &mut AscendStream,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }

    fn all_to_all(
        &self,
        _: &mut AscendStream,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        match *args.communicator {}
    }
}
