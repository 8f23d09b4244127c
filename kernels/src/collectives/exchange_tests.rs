//! Exchanges on a device that is a vector of bytes, whose streams do everything at once.

use super::*;
use crate::{
    Support,
    collectives::{Collective, CollectiveSpec},
};
use halite_hal::{DType, DeviceInfo, Error, Event, HostBytes, Storage};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A device, and how often its streams waited for each other.
#[derive(Clone, Debug, Default)]
struct Bytes(Arc<AtomicUsize>);

#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Storage for Memory {
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Device for Bytes {
    type Buffer = Memory;
    type Stream = Queue;

    fn info(&self) -> DeviceInfo {
        DeviceInfo::new("bytes", "a vector".into(), String::new(), 1, None)
    }

    fn alloc(&self, bytes: u64) -> Result<Memory> {
        Ok(Memory(Arc::new(Mutex::new(vec![0xFF; bytes as usize]))))
    }

    fn adopt(&self, host: HostBytes) -> Result<Memory> {
        Ok(Memory(Arc::new(Mutex::new((*host).as_ref().to_vec()))))
    }

    fn stream(&self) -> Result<Queue> {
        Ok(Queue(self.clone()))
    }
}

struct Queue(Bytes);
struct Done;
struct Ready(Vec<u8>);

impl Event for Done {
    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

impl Pending for Ready {
    fn wait(self) -> Result<Vec<u8>> {
        Ok(self.0)
    }
}

fn bytes_of(tensor: &Tensor<Bytes>) -> Vec<u8> {
    let range = tensor.byte_range();
    tensor.buffer().0.lock().unwrap()[range.start as usize..range.end as usize].to_vec()
}

impl Stream for Queue {
    type Device = Bytes;
    type Event = Done;
    type Pending = Ready;

    fn device(&self) -> &Bytes {
        &self.0
    }

    fn upload(&mut self, to: &Tensor<Bytes>, bytes: &[u8]) -> Result<()> {
        let range = to.byte_range();
        to.buffer().0.lock().unwrap()[range.start as usize..range.end as usize].copy_from_slice(bytes);
        Ok(())
    }

    fn download(&mut self, from: &Tensor<Bytes>) -> Result<Ready> {
        Ok(Ready(bytes_of(from)))
    }

    fn reserve(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> Result<Done> {
        Ok(Done)
    }
}

impl ExchangeOps for Bytes {
    type Mark = ();

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn copy_dense(stream: &mut Queue, from: &Tensor<Self>, to: &Tensor<Self>) -> Result<()> {
        stream.upload(to, &bytes_of(from))
    }

    fn mark(_: &mut Queue) -> Result<()> {
        Ok(())
    }

    fn wait_for(stream: &mut Queue, (): &()) -> Result<()> {
        stream.0.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn reduce(stream: &mut Queue, _: Reduction, x: &[Tensor<Self>], out: &Tensor<Self>) -> Result<()> {
        let mut sums = vec![0.0f32; out.shape().elements()];
        for x in x {
            let values = x.to_vec::<f32>(stream)?;
            sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
        }
        out.write(stream, &sums)
    }
}

impl Collectives for Bytes {
    type Communicator = Exchange<Bytes>;

    fn collectives_supports(&self, spec: &CollectiveSpec) -> Support {
        match spec.collective {
            Collective::AllReduce(Reduction::Max) => Support::No("no maximum".into()),
            _ => Support::Native,
        }
    }

    fn communicators(devices: &[Self]) -> Result<Vec<Exchange<Bytes>>> {
        Exchange::between(devices)
    }

    fn all_reduce(
        &self,
        stream: &mut Queue,
        args: Checked<AllReduceArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::all_reduce(stream, &args)
    }

    fn reduce_scatter(
        &self,
        stream: &mut Queue,
        args: Checked<ReduceScatterArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::reduce_scatter(stream, &args)
    }

    fn all_gather(
        &self,
        stream: &mut Queue,
        args: Checked<AllGatherArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::all_gather(stream, &args)
    }

    fn all_to_all(
        &self,
        stream: &mut Queue,
        args: Checked<AllToAllArgs<'_, Self>, CollectiveCall>,
    ) -> Result<()> {
        Exchange::all_to_all(stream, &args)
    }
}

/// What each of three ranks tells, on a thread of its own.
fn on_ranks<T: Send>(
    devices: &[Bytes; 3],
    rank: impl Fn(&Exchange<Bytes>, &mut Queue) -> T + Sync,
) -> Vec<T> {
    let ends = Exchange::between(devices).unwrap();
    thread::scope(|scope| {
        let ranks = ends.into_iter().zip(devices).map(|(end, device)| {
            let rank = &rank;
            scope.spawn(move || rank(&end, &mut device.stream().unwrap()))
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// All four operators on `[6, 1]`, element `place` of rank `rank` being `place + 10 · rank`.
fn exchanged(devices: &[Bytes; 3]) {
    let results = on_ranks(devices, |communicator, stream| {
        let (rank, device) = (communicator.rank(), stream.device().clone());
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
    });
    let all: Vec<f32> = (0..18).map(|place| (place % 6 + place / 6 * 10) as f32).collect();
    let sums: Vec<f32> = (0..6).map(|place| (3 * place + 30) as f32).collect();
    let own: [&[f32]; 3] =
        [&[0., 10., 11., 20., 21., 22.], &[1., 2., 12., 13., 23., 24.], &[3., 4., 5., 14., 15., 25.]];
    for (rank, got) in results.into_iter().enumerate() {
        let expected = [&sums[2 * rank..][..2], &all, own[rank], &sums];
        assert_eq!(got, expected, "rank {rank}");
    }
}

#[test]
fn ranks_of_one_device_read_copies_behind_their_marks() {
    let device = Bytes::default();
    exchanged(&[device.clone(), device.clone(), device.clone()]);
    // Four calls, in each of which three ranks read two copies of others.
    assert_eq!(device.0.load(Ordering::Relaxed), 4 * 3 * 2);
}

#[test]
fn ranks_of_several_devices_exchange_bytes_by_the_host() {
    let device = Bytes::default();
    let devices = [device.clone(), Bytes::default(), device];
    assert!(Exchange::between(&devices).unwrap().iter().all(|end| !end.is_one_device()));
    exchanged(&devices);
    assert_eq!(devices[0].0.load(Ordering::Relaxed), 0, "nobody waits for a stream");
}

#[test]
fn what_does_not_fit_is_everybodys_error_and_what_one_rank_cannot_do() {
    let device = Bytes::default();
    let devices = [device.clone(), device.clone(), device.clone()];
    let results = on_ranks(&devices, |communicator, stream| {
        let device = stream.device().clone();
        let reduce = |stream: &mut Queue, reduction, elements: usize| {
            let x = Tensor::from_slice(stream, &vec![1.0; elements], &[elements]).unwrap();
            let args = AllReduceArgs { communicator, reduction, x: &x, out: &x };
            device.all_reduce(stream, args.check().unwrap()).map(|()| x.to_vec::<f32>(stream).unwrap())
        };
        let rank = communicator.rank();
        let apart = reduce(stream, Reduction::Sum, 1 + usize::from(rank == 1));
        let denied = reduce(stream, if rank == 2 { Reduction::Max } else { Reduction::Sum }, 1);
        (apart, denied, reduce(stream, Reduction::Sum, 1))
    });
    for (apart, denied, after) in results {
        assert!(matches!(apart, Err(Error::Argument { argument: "call", .. })), "{apart:?}");
        assert!(matches!(denied, Err(Error::Unsupported { .. })), "{denied:?}");
        assert_eq!(after, Ok(vec![3.0]), "the communicator stays usable");
    }
}

#[test]
fn memory_of_two_ranks_is_refused() {
    let device = Bytes::default();
    let shared = Tensor::new(&device, DType::F32, &[2]).unwrap();
    let results = on_ranks(&[device.clone(), device.clone(), device], |communicator, stream| {
        let args = AllReduceArgs { communicator, reduction: Reduction::Sum, x: &shared, out: &shared };
        Exchange::all_reduce(stream, &args.check().unwrap())
    });
    for result in results {
        assert!(matches!(result, Err(Error::Argument { argument: "out", .. })), "{result:?}");
    }
}
