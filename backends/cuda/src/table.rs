//! A step's tables: one tensor that a plan allocates once, filled anew for every step.

use halite_hal::{DType, Error, Result, Tensor};

use crate::{
    device::{Cuda, NAME},
    stream::CudaStream,
};

/// Words of host data and the tensor that they are uploaded to.
#[derive(Debug)]
pub(crate) struct Table {
    tensor: Tensor<Cuda>,
    words: Vec<u32>,
}

impl Table {
    /// Room for so many words.
    pub(crate) fn new(device: &Cuda, words: usize) -> Result<Self> {
        let tensor = Tensor::new(device, DType::I32, &[words])?;
        let mut host = Vec::new();
        let requested = (words as u64).saturating_mul(4);
        let full = |_| Error::OutOfMemory { device: NAME.to_owned(), requested };
        host.try_reserve_exact(words).map_err(full)?;
        Ok(Table { tensor, words: host })
    }

    /// The words of the next step, none yet.
    pub(crate) fn begin(&mut self) -> &mut Vec<u32> {
        self.words.clear();
        &mut self.words
    }

    /// Uploads the words, in order with the stream's other work.
    ///
    /// # Errors
    /// More words than there is room for; the device's.
    pub(crate) fn upload(&mut self, stream: &mut CudaStream) -> Result<()> {
        stream.stage(self.tensor.buffer(), self.tensor.offset(), bytemuck::cast_slice(&self.words))
    }

    /// Where kernels read them.
    pub(crate) fn tensor(&self) -> &Tensor<Cuda> {
        &self.tensor
    }
}
