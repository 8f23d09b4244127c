//! A stream on the CPU: work is done when it is queued.

use crate::{aligned::AlignedBytes, buffer::DEVICE, device::Cpu};
use halite_hal::{Error, Event, Pending, Result, Stream, Tensor};

/// A stream: the device and the scratch memory of its operators.
pub struct CpuStream {
    device: Cpu,
    scratch: Option<AlignedBytes>,
}

impl CpuStream {
    pub(crate) fn new(device: Cpu) -> Self {
        CpuStream { device, scratch: None }
    }

    /// The first `bytes` of scratch memory, which [`Stream::reserve`] has made room for.
    pub(crate) fn scratch(&mut self, operator: &'static str, bytes: u64) -> Result<&mut [u8]> {
        let reserved: &mut [u8] = self.scratch.as_mut().map_or(&mut [], AlignedBytes::as_mut_slice);
        let limit = reserved.len() as u64;
        usize::try_from(bytes).ok().and_then(|bytes| reserved.get_mut(..bytes)).ok_or(Error::Limit {
            operator,
            argument: "workspace (call Stream::reserve first)",
            got: bytes,
            limit,
        })
    }

    /// As [`scratch`](Self::scratch), as floats. Of no bytes too, which lie anywhere.
    pub(crate) fn scratch_floats(&mut self, operator: &'static str, bytes: u64) -> Result<&mut [f32]> {
        if bytes == 0 {
            return Ok(&mut []);
        }
        Ok(bytemuck::cast_slice_mut(self.scratch(operator, bytes)?))
    }
}

impl Stream for CpuStream {
    type Device = Cpu;
    type Event = Done;
    type Pending = Ready;

    fn device(&self) -> &Cpu {
        &self.device
    }

    fn upload(&mut self, to: &Tensor<Cpu>, bytes: &[u8]) -> Result<()> {
        to.check_upload(bytes)?;
        to.buffer().write(to.byte_range())?.copy_from_slice(bytes);
        Ok(())
    }

    fn download(&mut self, from: &Tensor<Cpu>) -> Result<Ready> {
        let source = from.buffer().read(from.byte_range())?;
        if from.is_dense() {
            return Ok(Ready(source.to_vec()));
        }
        let size = from.dtype().size();
        let mut bytes = Vec::with_capacity(from.shape().elements() * size);
        let (dims, strides) = (from.dims(), from.strides());
        // A dense tensor of fewer dimensions was handled above, so there is an innermost dimension.
        let columns = dims[dims.len() - 1];
        for row in 0..from.shape().elements() / columns.max(1) {
            let mut rest = row;
            let mut start = 0;
            for axis in (0..dims.len() - 1).rev() {
                start += rest % dims[axis] * strides[axis];
                rest /= dims[axis];
            }
            bytes.extend_from_slice(&source[start * size..(start + columns) * size]);
        }
        Ok(Ready(bytes))
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        if self.scratch.as_ref().is_none_or(|scratch| (scratch.len() as u64) < bytes) {
            let no_room = Error::OutOfMemory { device: DEVICE.to_owned(), requested: bytes };
            self.scratch = Some(AlignedBytes::zeroed(bytes).ok_or(no_room)?);
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<Done> {
        Ok(Done)
    }
}

impl std::fmt::Debug for CpuStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CpuStream on {:?}", self.device)
    }
}

/// Work that is done already.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Done;

impl Event for Done {
    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

/// Bytes that are here already.
#[derive(Clone, Debug)]
pub struct Ready(pub(crate) Vec<u8>);

impl Pending for Ready {
    fn wait(self) -> Result<Vec<u8>> {
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Options;
    use halite_hal::Device;

    #[test]
    fn strided_views_come_back_dense() {
        let device = Cpu::new(Options::default().threads(1)).unwrap();
        let mut stream = device.stream().unwrap();
        let data: Vec<i32> = (0..24).collect();
        let tensor = Tensor::from_slice(&mut stream, &data, &[2, 12]).unwrap();
        let view = tensor.narrow(1, 3..9).unwrap();
        assert_eq!(view.to_vec::<i32>(&mut stream).unwrap(), [3, 4, 5, 6, 7, 8, 15, 16, 17, 18, 19, 20]);
        let heads = view.split_last(3).unwrap().narrow(1, 1..2).unwrap();
        assert_eq!(heads.dims(), [2, 1, 3]);
        assert_eq!(heads.to_vec::<i32>(&mut stream).unwrap(), [6, 7, 8, 18, 19, 20]);
        assert!(view.write(&mut stream, &[0i32; 12]).is_err(), "an upload needs a dense tensor");
    }

    #[test]
    fn scratch_is_what_was_reserved() {
        let device = Cpu::new(Options::default().threads(1)).unwrap();
        let mut stream = device.stream().unwrap();
        assert!(matches!(
            stream.scratch("linear", 1),
            Err(Error::Limit { operator: "linear", limit: 0, .. })
        ));
        stream.reserve(100).unwrap();
        assert_eq!(stream.scratch("linear", 100).unwrap().len(), 100);
        stream.reserve(10).unwrap();
        assert!(stream.scratch("linear", 100).is_ok(), "reserving less takes nothing back");
    }
}
