//! Collectives by the oracle: who comes last computes for all.

use crate::{
    device::{Exact, Queue, read, write},
    fault::Fault,
};
use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    collectives::{
        AllGatherArgs, AllReduceArgs, AllToAllArgs, Collective, CollectiveCall, CollectiveSpec, Collectives,
        CommunicatorInfo, ReduceScatterArgs, Reduction, check_apart, check_devices,
    },
};
use halite_parity::oracle::collectives::{exchanged, reduced};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

type Brought = (CollectiveCall, Tensor<Exact>, Tensor<Exact>);

#[derive(Debug)]
struct Table {
    waiting: Vec<Option<Result<Brought>>>,
    rounds: Vec<Result<()>>,
    lost: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct End {
    rank: usize,
    ranks: usize,
    table: Arc<(Mutex<Table>, Condvar)>,
}

impl CommunicatorInfo for End {
    fn rank(&self) -> usize {
        self.rank
    }
    fn ranks(&self) -> usize {
        self.ranks
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.table.0.lock().unwrap_or_else(PoisonError::into_inner).lost.get_or_insert(self.rank);
        self.table.1.notify_all();
    }
}

impl Exact {
    fn meet(&self, end: &End, call: &CollectiveCall, x: &Tensor<Exact>, out: &Tensor<Exact>) -> Result<()> {
        let spec = call.spec(end.ranks);
        let supported = self.collectives_supports(&spec).require("collectives", self, &spec);
        let mut table = end.table.0.lock().unwrap_or_else(PoisonError::into_inner);
        let round = table.rounds.len();
        table.waiting[end.rank] = Some(supported.map(|()| (call.clone(), x.clone(), out.clone())));
        if table.lost.is_none() && table.waiting.iter().all(Option::is_some) {
            // All of it first: collecting results stops at an error, and what it left would be there in the next round.
            let brought: Vec<Result<Brought>> = table.waiting.iter_mut().filter_map(Option::take).collect();
            let brought: Result<Vec<Brought>> = brought.into_iter().collect();
            let done = brought.and_then(|brought| self.compute(&brought));
            table.rounds.push(done);
            end.table.1.notify_all();
        }
        while table.rounds.len() == round {
            if let Some(rank) = table.lost {
                if self.has(Fault::CollectivesLostIsDone) {
                    return Ok(());
                }
                return Err(Error::RankLost { operator: "collectives", rank, ranks: end.ranks });
            }
            table = end.table.1.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        let done = table.rounds[round].clone();
        if self.has(Fault::CollectivesErrorForOne) && end.rank > 0 { Ok(()) } else { done }
    }

    fn compute(&self, brought: &[Brought]) -> Result<()> {
        let calls: Vec<CollectiveCall> = brought.iter().map(|brought| brought.0.clone()).collect();
        if !self.has(Fault::CollectivesAnythingFits) {
            CollectiveCall::fit(&calls)?;
        }
        let tensors: Vec<_> = brought.iter().map(|brought| (&brought.1, &brought.2)).collect();
        if !self.has(Fault::CollectivesMemoryShared) {
            check_apart(&tensors)?;
        }
        let mut inputs: Vec<Vec<f64>> = brought.iter().map(|brought| read(&brought.1)).collect();
        let counts: Vec<Vec<usize>> = calls.iter().map(|call| call.send_counts.clone()).collect();
        let ranks = inputs.len();
        for (rank, (call, _, out)) in brought.iter().enumerate() {
            let elements = out.shape().elements();
            let values = match call.collective {
                Collective::AllReduce(reduction) => self.reduce(reduction, call.dtype, &inputs, rank),
                Collective::ReduceScatter(reduction) => {
                    let part = if self.has(Fault::CollectivesNextPart) { (rank + 1) % ranks } else { rank };
                    self.reduce(reduction, call.dtype, &inputs, rank)[part * elements..][..elements].to_vec()
                }
                Collective::AllGather => {
                    if self.has(Fault::CollectivesOwnFirst) {
                        inputs.rotate_left(1);
                    }
                    inputs.concat()
                }
                _ => {
                    let width = call.dims[1..].iter().product();
                    let to = if self.has(Fault::CollectivesNextPart) { (rank + 1) % ranks } else { rank };
                    exchanged(&inputs, &counts, width, to)
                }
            };
            write(out, values);
        }
        Ok(())
    }

    fn reduce(&self, reduction: Reduction, dtype: DType, inputs: &[Vec<f64>], rank: usize) -> Vec<f64> {
        let mut inputs = inputs.to_vec();
        if self.has(Fault::CollectivesLastRankMissing) && inputs.len() > 1 {
            inputs.pop();
        }
        if self.has(Fault::CollectivesOwnOrder) {
            inputs.rotate_left(rank);
        }
        if self.has(Fault::CollectivesMaxIgnoresNan) && reduction == Reduction::Max {
            inputs.iter_mut().flatten().filter(|x| x.is_nan()).for_each(|x| *x = f64::NEG_INFINITY);
        }
        // Floats in F32 and in order, as the contract says of those who claim invariance.
        let narrow = |x: f64| -> f64 {
            match dtype {
                DType::F16 if self.has(Fault::CollectivesHalfSums) => half::f16::from_f64(x).to_f64(),
                DType::Bf16 if self.has(Fault::CollectivesHalfSums) => half::bf16::from_f64(x).to_f64(),
                _ => f64::from(x as f32),
            }
        };
        let mut out: Vec<f64> = if reduction == Reduction::Sum && dtype.is_float() {
            let mut sums = inputs[0].clone();
            for input in &inputs[1..] {
                sums.iter_mut().zip(input).for_each(|(sum, x)| *sum = narrow(*sum + x));
            }
            sums
        } else {
            reduced(reduction, dtype, &inputs).into_iter().map(|bound| bound.value).collect()
        };
        if self.has(Fault::CollectivesTail) && !out.len().is_multiple_of(16) {
            let whole = out.len() / 16 * 16;
            out[whole..].copy_from_slice(&inputs[0][whole..]);
        }
        out
    }
}

impl Collectives for Exact {
    type Communicator = End;

    fn collectives_supports(&self, spec: &CollectiveSpec) -> Support {
        let sums = spec.dtype.is_float() || spec.dtype == DType::I32;
        match spec.collective {
            Collective::AllGather | Collective::AllToAll => Support::Native,
            _ if sums => Support::Native,
            _ => Support::No("bytes are not added".into()),
        }
    }

    fn communicators(devices: &[Exact]) -> Result<Vec<End>> {
        check_devices(devices)?;
        let ranks = devices.len();
        let waiting = (0..ranks).map(|_| None).collect();
        let table = Arc::new((Mutex::new(Table { waiting, rounds: Vec::new(), lost: None }), Condvar::new()));
        Ok((0..ranks).map(|rank| End { rank, ranks, table: Arc::clone(&table) }).collect())
    }

    fn all_reduce(
        &self,
        _: &mut Queue,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        self.meet(args.communicator, args.context(), args.x, args.out)
    }

    fn reduce_scatter(
        &self,
        _: &mut Queue,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        self.meet(args.communicator, args.context(), args.x, args.out)
    }

    fn all_gather(
        &self,
        _: &mut Queue,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        self.meet(args.communicator, args.context(), args.x, args.out)
    }

    fn all_to_all(&self, _: &mut Queue, args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>) -> Result<()> {
        self.meet(args.communicator, args.context(), args.x, args.out)
    }
}
