//! A device whose operators are the oracle's formulas, with one deliberate fault where a test wants it.

use crate::fault::Fault;
use halite_hal::{
    DType, Device, DeviceInfo, Error, Event, HostBytes, Pending, Result, Storage, Stream, Tensor,
};
use halite_parity::{
    poison::{decode, encode, places},
    tolerance::Bound,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The device.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    fault: Option<Fault>,
}

impl Exact {
    pub(crate) fn sound() -> Self {
        Exact { fault: None }
    }

    pub(crate) fn with(fault: Fault) -> Self {
        Exact { fault: Some(fault) }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Memory {
    fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Device for Exact {
    type Buffer = Memory;
    type Stream = Queue;

    fn info(&self) -> DeviceInfo {
        DeviceInfo::new("exact", "the oracle as a device".into(), "f64".into(), 1, None)
    }

    fn alloc(&self, bytes: u64) -> Result<Memory> {
        if bytes > 1 << 40 {
            return Err(Error::OutOfMemory { device: "exact".into(), requested: bytes });
        }
        Ok(Memory(Arc::new(Mutex::new(vec![0xFF; bytes as usize]))))
    }

    fn adopt(&self, host: HostBytes) -> Result<Memory> {
        Ok(Memory(Arc::new(Mutex::new((*host).as_ref().to_vec()))))
    }

    fn stream(&self) -> Result<Queue> {
        Ok(Queue(self.clone()))
    }
}

/// Work is done at once.
#[derive(Debug)]
pub(crate) struct Queue(Exact);

pub(crate) struct Done;
pub(crate) struct Ready(pub(crate) Vec<u8>);

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

impl Stream for Queue {
    type Device = Exact;
    type Event = Done;
    type Pending = Ready;

    fn device(&self) -> &Exact {
        &self.0
    }

    fn upload(&mut self, to: &Tensor<Exact>, bytes: &[u8]) -> Result<()> {
        let range = to.byte_range();
        let (start, len) = (range.start as usize, (range.end - range.start) as usize);
        if !to.is_dense() || bytes.len() != len {
            return Err(Error::Argument {
                operator: "upload",
                argument: "bytes",
                expected: format!("{len} bytes into a dense tensor"),
                got: bytes.len().to_string(),
            });
        }
        if len > 0 {
            to.buffer().bytes()[start..start + len].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn download(&mut self, from: &Tensor<Exact>) -> Result<Ready> {
        let (bytes, size) = (from.buffer().bytes(), from.dtype().size());
        let elements = places(from).into_iter().flat_map(|place| bytes[place * size..][..size].to_vec());
        Ok(Ready(elements.collect()))
    }

    fn reserve(&mut self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> Result<Done> {
        Ok(Done)
    }
}

/// A tensor's values.
pub(crate) fn read(tensor: &Tensor<Exact>) -> Vec<f64> {
    let (bytes, dtype, size) = (tensor.buffer().bytes(), tensor.dtype(), tensor.dtype().size());
    places(tensor).into_iter().map(|place| decode(dtype, &bytes[place * size..][..size])).collect()
}

/// Writes values into a tensor, rounded to its type.
pub(crate) fn write(tensor: &Tensor<Exact>, values: impl IntoIterator<Item = f64>) {
    write_some(tensor, values.into_iter().map(Some));
}

/// Writes the values that are there and leaves the others as they are.
pub(crate) fn write_some(tensor: &Tensor<Exact>, values: impl IntoIterator<Item = Option<f64>>) {
    let (mut bytes, dtype, size) = (tensor.buffer().bytes(), tensor.dtype(), tensor.dtype().size());
    for (place, value) in places(tensor).into_iter().zip(values) {
        if let Some(value) = value {
            let stored = if dtype == DType::I32 {
                (value as i32).to_le_bytes().to_vec()
            } else {
                encode(dtype, value as f32)
            };
            bytes[place * size..][..size].copy_from_slice(&stored);
        }
    }
}

/// Writes a value just after the last element of a tensor, where nothing belongs to it.
pub(crate) fn write_beyond(tensor: &Tensor<Exact>) {
    let end = tensor.byte_range().end as usize;
    let mut bytes = tensor.buffer().bytes();
    if end < bytes.len() {
        bytes[end] ^= 1;
    }
}

/// The exact values.
pub(crate) fn values(bounds: Vec<Bound>) -> Vec<f64> {
    bounds.into_iter().map(|bound| bound.value).collect()
}
