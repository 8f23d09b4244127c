//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, collectives::AllGatherArgs, collectives::AllReduceArgs, collectives::AllToAllArgs,
    collectives::CollectiveCall, collectives::CollectiveSpec, collectives::Collectives,
    collectives::ReduceScatterArgs,
};

impl Collectives for Wgpu {
    type Communicator = Unbuilt;
    fn collectives_supports(&self, _: &CollectiveSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn communicators(_: &[Self]) -> Result<Vec<Self::Communicator>> {
        Err(unbuilt("collectives"))
    }
    fn all_reduce(
        &self,
        _: &mut Self::Stream,
        _: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Err(unbuilt("collectives"))
    }
    fn reduce_scatter(
        &self,
        _: &mut Self::Stream,
        _: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Err(unbuilt("collectives"))
    }
    fn all_gather(
        &self,
        _: &mut Self::Stream,
        _: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Err(unbuilt("collectives"))
    }
    fn all_to_all(
        &self,
        _: &mut Self::Stream,
        _: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Err(unbuilt("collectives"))
    }
}
