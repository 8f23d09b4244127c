//! The arguments of the calls, and what one rank can check of them by itself.

use super::{CHECK, Collective, CollectiveCall, Collectives, CommunicatorInfo, Reduction};
use crate::Checked;
use halite_hal::{Device, Result, Tensor};

/// A dense tensor of at least one dimension: what devices exchange is one range of bytes.
fn dense<D: Device>(argument: &'static str, tensor: &Tensor<D>) -> Result<usize> {
    CHECK.that(tensor.is_dense(), argument, "a dense tensor", tensor.strides())?;
    match tensor.dims().first() {
        Some(&rows) => Ok(rows),
        None => Err(CHECK.wrong(argument, "at least 1 dimension", "none")),
    }
}

/// Dense, and `x`'s type and dimensions with `rows` of them.
fn output<D: Device>(x: &Tensor<D>, out: &Tensor<D>, rows: Option<usize>) -> Result<()> {
    let mut dims = x.dims().to_vec();
    if let (Some(first), Some(rows)) = (dims.first_mut(), rows) {
        *first = rows;
    }
    CHECK.tensor("out", out, x.dtype(), &dims)?;
    dense("out", out).map(drop)
}

/// One call of `all_reduce`.
#[derive(Clone, Debug)]
pub struct AllReduceArgs<'a, B: Collectives> {
    /// This rank's.
    pub communicator: &'a B::Communicator,
    /// Sum or maximum.
    pub reduction: Reduction,
    /// Any shape, the same on all ranks.
    pub x: &'a Tensor<B>,
    /// As `x`; either the very same elements, or memory apart.
    pub out: &'a Tensor<B>,
}

impl<B: Collectives> AllReduceArgs<'_, B> {
    /// Checks what this rank can see.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self, CollectiveCall>> {
        dense("x", self.x)?;
        output(self.x, self.out, None)?;
        if !in_place(self.x, self.out) {
            CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        }
        let call = call(Collective::AllReduce(self.reduction), self.x);
        Ok(Checked::with_context(self, call))
    }
}

/// Whether both are the same elements.
pub fn in_place<D: Device>(x: &Tensor<D>, out: &Tensor<D>) -> bool {
    x.overlaps(out) && x.byte_range() == out.byte_range()
}

/// Checks that no rank writes where another reads or writes: backends on which ranks reach each other's memory ask this of
/// the inputs and outputs of all, in rank order.
///
/// # Errors
/// The first output that shares memory with a tensor of another rank.
pub fn check_apart<D: Device>(tensors: &[(&Tensor<D>, &Tensor<D>)]) -> Result<()> {
    for (rank, (_, out)) in tensors.iter().enumerate() {
        for (other, (x, other_out)) in tensors.iter().enumerate().filter(|&(other, _)| other != rank) {
            if out.overlaps(x) || out.overlaps(other_out) {
                let expected = format!("memory of rank {rank} apart from that of rank {other}");
                let got = format!("bytes {:?} of a buffer of both", out.byte_range());
                return Err(CHECK.wrong("out", expected, got));
            }
        }
    }
    Ok(())
}

/// Checks what the ranks brought to one call, in rank order: that their calls fit, and that no rank writes where another reads
/// or writes.
///
/// # Errors
/// Those of [`CollectiveCall::fit`] and [`check_apart`].
pub fn check_together<'a, D: Device>(
    ranks: impl Iterator<Item = (&'a CollectiveCall, &'a Tensor<D>, &'a Tensor<D>)> + Clone,
) -> Result<()> {
    let calls: Vec<CollectiveCall> = ranks.clone().map(|(call, ..)| call.clone()).collect();
    CollectiveCall::fit(&calls)?;
    let tensors: Vec<_> = ranks.map(|(_, x, out)| (x, out)).collect();
    check_apart(&tensors)
}

fn call<D: Device>(collective: Collective, x: &Tensor<D>) -> CollectiveCall {
    let (send_counts, receive_counts) = (Vec::new(), Vec::new());
    CollectiveCall { collective, dtype: x.dtype(), dims: x.dims().to_vec(), send_counts, receive_counts }
}

/// One call of `reduce_scatter`.
#[derive(Clone, Debug)]
pub struct ReduceScatterArgs<'a, B: Collectives> {
    /// This rank's.
    pub communicator: &'a B::Communicator,
    /// Sum or maximum.
    pub reduction: Reduction,
    /// `[ranks · rows, ..]`.
    pub x: &'a Tensor<B>,
    /// `[rows, ..]`.
    pub out: &'a Tensor<B>,
}

impl<B: Collectives> ReduceScatterArgs<'_, B> {
    /// Checks what this rank can see.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self, CollectiveCall>> {
        let (rows, ranks) = (dense("x", self.x)?, self.communicator.ranks());
        let parts = rows.is_multiple_of(ranks);
        CHECK.that(parts, "x", format!("a multiple of {ranks} rows"), rows)?;
        output(self.x, self.out, rows.checked_div(ranks))?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        let call = call(Collective::ReduceScatter(self.reduction), self.x);
        Ok(Checked::with_context(self, call))
    }
}

/// One call of `all_gather`.
#[derive(Clone, Debug)]
pub struct AllGatherArgs<'a, B: Collectives> {
    /// This rank's.
    pub communicator: &'a B::Communicator,
    /// `[rows, ..]`, the same on all ranks.
    pub x: &'a Tensor<B>,
    /// `[ranks · rows, ..]`.
    pub out: &'a Tensor<B>,
}

impl<B: Collectives> AllGatherArgs<'_, B> {
    /// Checks what this rank can see.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self, CollectiveCall>> {
        let rows = dense("x", self.x)?;
        output(self.x, self.out, Some(rows.saturating_mul(self.communicator.ranks())))?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        let call = call(Collective::AllGather, self.x);
        Ok(Checked::with_context(self, call))
    }
}

/// One call of `all_to_all`.
#[derive(Clone, Debug)]
pub struct AllToAllArgs<'a, B: Collectives> {
    /// This rank's.
    pub communicator: &'a B::Communicator,
    /// `[rows, ..]`, as many rows as `send_counts` tells.
    pub x: &'a Tensor<B>,
    /// `[ranks]`: rows for each rank.
    pub send_counts: &'a [usize],
    /// `[ranks]`: rows from each rank.
    pub receive_counts: &'a [usize],
    /// `[rows, ..]`, as many rows as `receive_counts` tells.
    pub out: &'a Tensor<B>,
}

impl<B: Collectives> AllToAllArgs<'_, B> {
    /// Checks what this rank can see.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self, CollectiveCall>> {
        let (rows, ranks) = (dense("x", self.x)?, self.communicator.ranks());
        let total = |argument, counts: &[usize]| -> Result<usize> {
            let got = counts.len();
            CHECK.that(got == ranks, argument, format!("{ranks} counts"), got)?;
            let sum = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
            sum.ok_or_else(|| CHECK.wrong(argument, "counts whose sum fits", "more"))
        };
        let sent = total("send_counts", self.send_counts)?;
        CHECK.that(sent == rows, "send_counts", format!("{rows} rows in all, as `x` has"), sent)?;
        let received = total("receive_counts", self.receive_counts)?;
        output(self.x, self.out, Some(received))?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        let mut call = call(Collective::AllToAll, self.x);
        call.send_counts = self.send_counts.to_vec();
        call.receive_counts = self.receive_counts.to_vec();
        Ok(Checked::with_context(self, call))
    }
}
