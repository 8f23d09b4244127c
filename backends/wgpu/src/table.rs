//! A step's tables: one tensor that a plan allocates once, filled anew for every step.

use crate::{
    device::{NAME, Wgpu},
    operand::Operand,
    stream::WgpuStream,
};
use halite_hal::{DType, Error, Result, Tensor};

/// Words of host data and the tensor that they are uploaded to. Kernels read them as words.
#[derive(Debug)]
pub(crate) struct Table {
    tensor: Tensor<Wgpu>,
    words: Vec<u32>,
}

impl Table {
    /// Room for so many words.
    pub(crate) fn new(device: &Wgpu, operator: &'static str, words: usize) -> Result<Self> {
        let tensor = device.bindable(operator, "bytes of a step's tables", DType::I32, &[words])?;
        let mut host = Vec::new();
        let requested = 4 * words as u64;
        host.try_reserve_exact(words)
            .map_err(|_| Error::OutOfMemory { device: NAME.to_owned(), requested })?;
        Ok(Table { tensor, words: host })
    }

    /// The words of the next step, none yet.
    pub(crate) fn begin(&mut self) -> &mut Vec<u32> {
        self.words.clear();
        &mut self.words
    }

    /// Uploads the words, in order with the stream's other work.
    pub(crate) fn upload(&mut self, stream: &mut WgpuStream) -> Result<()> {
        stream.stage(self.tensor.buffer(), self.tensor.offset(), bytemuck::cast_slice(&self.words))
    }

    pub(crate) fn operand(&self) -> Operand {
        Operand::tensor(&self.tensor)
    }
}
