//! Collectives: what the ranks of a communicator compute together.
//!
//! A communicator is made for a list of devices, one rank each, rank `r` for the `r`-th. Every rank works on its own
//! thread: it queues the same calls in the same order on its own stream, and a call is done when all have made it. The CPU
//! waits inside of the call; a device may wait on its stream. One thread that calls for several ranks in turn waits for
//! ever.
//!
//! With `x[r]` the input of rank `r`, of `R` ranks; tensors are dense:
//! - `all_reduce`: every `out = x[0] + x[1] + … + x[R - 1]`, or their maximum; `out` may be `x` itself.
//! - `reduce_scatter`: of `[R · rows, ..]`, rank `r` gets the part `r` of the reduction, `[rows, ..]`.
//! - `all_gather`: of `[rows, ..]`, every rank gets all, in rank order: `[R · rows, ..]`.
//! - `all_to_all`: the rows of `x` are for rank 0, then for rank 1, and so on, `send_counts` of them; `out` holds the rows
//!   from rank 0, then those from rank 1, `receive_counts` of them. Counts are host arrays.
//!
//! A sum of floats is computed in F32 and rounded once to its type; I32 wraps. A backend that claims batch invariance adds
//! in ascending rank, `((x[0] + x[1]) + x[2]) + …`, so that neither timing nor the number of elements changes a bit. A
//! maximum is the first of the greatest in ascending rank, and NaN where any rank has NaN.
//!
//! Calls that do not fit each other (other operators, types, shapes, reductions, counts; an output in memory that another
//! rank passes too) give every rank the same [`Error::Argument`](crate::Error::Argument), and the communicator stays usable. A rank whose communicator is dropped
//! gives all others [`Error::RankLost`](crate::Error::RankLost), in calls that wait and in those to come. What one rank
//! passes wrong by itself is its own error and takes part in nothing.

mod args;
mod exchange;
mod meeting;

pub use args::{
    AllGatherArgs, AllReduceArgs, AllToAllArgs, ReduceScatterArgs, check_apart, check_together, in_place,
};
pub use exchange::{Exchange, ExchangeOps};
pub use meeting::Meeting;

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result};
use std::ops::Range;

const CHECK: Check = Check("collectives");

/// What is done with the elements of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// Added.
    Sum,
    /// The greatest.
    Max,
}

/// Which operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collective {
    /// Everybody gets the reduction.
    AllReduce(Reduction),
    /// Each gets a part of the reduction.
    ReduceScatter(Reduction),
    /// Everybody gets everything.
    AllGather,
    /// Each sends some rows to each.
    AllToAll,
}

/// Which operator, on which type, between how many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CollectiveSpec {
    /// The operator.
    pub collective: Collective,
    /// Type of the elements.
    pub dtype: DType,
    /// Ranks of the communicator.
    pub ranks: usize,
}

impl CollectiveSpec {
    /// An operator on F32 between `ranks`.
    pub fn new(collective: Collective, ranks: usize) -> Self {
        CollectiveSpec { collective, dtype: DType::F32, ranks }
    }

    /// On elements of another type.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// What a backend's communicator tells of itself.
pub trait CommunicatorInfo {
    /// This rank.
    fn rank(&self) -> usize;
    /// All ranks.
    fn ranks(&self) -> usize;
}

/// A rank's call, as far as those of the others must fit it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectiveCall {
    /// The operator.
    pub collective: Collective,
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions of the input.
    pub dims: Vec<usize>,
    /// Rows for each rank, where they are told.
    pub send_counts: Vec<usize>,
    /// Rows from each rank, where they are told.
    pub receive_counts: Vec<usize>,
}

impl CollectiveCall {
    /// The specification of the call between `ranks`.
    pub fn spec(&self, ranks: usize) -> CollectiveSpec {
        CollectiveSpec::new(self.collective, ranks).with_dtype(self.dtype)
    }

    /// The rows of the input that are for a rank, where counts tell of them; none where they do not.
    pub fn rows_for(&self, rank: usize) -> Range<usize> {
        let start: usize = self.send_counts.iter().take(rank).sum();
        start..start + self.send_counts.get(rank).copied().unwrap_or(0)
    }

    /// Checks that the calls of all ranks, in rank order, fit each other: backends ask this, so that the same mistake is
    /// the same error everywhere.
    ///
    /// # Errors
    /// The first call that does not fit that of rank 0, or the first pair of ranks of which one sends what the other does
    /// not await.
    pub fn fit(calls: &[CollectiveCall]) -> Result<()> {
        let Some(first) = calls.first() else { return Ok(()) };
        let same = |call: &CollectiveCall| {
            // Rows are each rank's own where counts tell of them.
            let rows = usize::from(first.collective == Collective::AllToAll);
            (call.collective, call.dtype) == (first.collective, first.dtype)
                && call.dims.get(rows..) == first.dims.get(rows..)
        };
        if let Some(rank) = calls.iter().position(|call| !same(call)) {
            let told = |rank: usize, call: &CollectiveCall| {
                format!("{:?} of {} {:?} on rank {rank}", call.collective, call.dtype, call.dims)
            };
            return Err(CHECK.wrong("call", told(0, first), told(rank, &calls[rank])));
        }
        for (from, sender) in calls.iter().enumerate() {
            for (to, receiver) in calls.iter().enumerate() {
                let (sent, awaited) = (sender.send_counts.get(to), receiver.receive_counts.get(from));
                if sent != awaited {
                    let rows = |count: Option<&usize>| count.copied().unwrap_or(0);
                    let expected = format!("{} rows from rank {from} on rank {to}", rows(sent));
                    return Err(CHECK.wrong("receive_counts", expected, rows(awaited).to_string()));
                }
            }
        }
        Ok(())
    }
}

/// The answer of a backend that reduces floats and I32, and moves elements of every type.
pub fn numbers_only(spec: &CollectiveSpec) -> Support {
    let reduces = match spec.collective {
        Collective::AllReduce(Reduction::Sum | Reduction::Max)
        | Collective::ReduceScatter(Reduction::Sum | Reduction::Max) => true,
        Collective::AllGather | Collective::AllToAll => false,
    };
    if reduces && !spec.dtype.is_float() && spec.dtype != DType::I32 {
        return Support::No(format!("reductions of {}: only of floats and I32", spec.dtype));
    }
    Support::Native
}

/// Checks a list of devices to make communicators for.
///
/// # Errors
/// An empty list.
pub fn check_devices<D: Device>(devices: &[D]) -> Result<()> {
    CHECK.positive("devices", devices.len())
}

/// The family's trait.
pub trait Collectives: Device {
    /// One rank's end of a communicator: used by one thread at a time, and handed to its thread.
    type Communicator: CommunicatorInfo + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn collectives_supports(&self, spec: &CollectiveSpec) -> Support;

    /// A communicator for these devices: one end a rank, in rank order.
    ///
    /// # Errors
    /// No devices, devices that cannot work together, or the driver's.
    fn communicators(devices: &[Self]) -> Result<Vec<Self::Communicator>>;

    /// Every rank gets the reduction of all.
    ///
    /// # Errors
    /// An unsupported type, calls of other ranks that do not fit, a rank that is lost, or the device's.
    fn all_reduce(
        &self,
        stream: &mut Self::Stream,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()>;

    /// Every rank gets its part of the reduction of all.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    fn reduce_scatter(
        &self,
        stream: &mut Self::Stream,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()>;

    /// Every rank gets the rows of all.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    fn all_gather(
        &self,
        stream: &mut Self::Stream,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()>;

    /// Every rank sends rows to every other.
    ///
    /// # Errors
    /// As [`Collectives::all_reduce`].
    fn all_to_all(
        &self,
        stream: &mut Self::Stream,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_moved_and_not_reduced() {
        let supports =
            |collective, dtype| numbers_only(&CollectiveSpec::new(collective, 2).with_dtype(dtype));
        let reductions = [Collective::AllReduce(Reduction::Max), Collective::ReduceScatter(Reduction::Sum)];
        for collective in reductions.into_iter().chain([Collective::AllGather, Collective::AllToAll]) {
            for dtype in [DType::F32, DType::F16, DType::Bf16, DType::I32] {
                assert_eq!(supports(collective, dtype), Support::Native, "{collective:?} of {dtype}");
            }
            let reduces = reductions.contains(&collective);
            let denied = matches!(supports(collective, DType::U8), Support::No(_));
            assert_eq!(denied, reduces, "{collective:?}");
        }
    }
}
