//! Tensors to and from `ndarray` arrays.

use crate::{Device, Element, Error, Result, Stream, Tensor};
use ::ndarray::{ArrayD, ArrayRef, Dimension};

impl<D: Device> Tensor<D> {
    /// Allocates a tensor and copies an array, of any strides, into it.
    ///
    /// # Errors
    /// More dimensions than [`MAX_RANK`](crate::MAX_RANK), or no memory.
    pub fn from_ndarray<T: Element, I: Dimension>(
        stream: &mut impl Stream<Device = D>,
        array: &ArrayRef<T, I>,
    ) -> Result<Self> {
        match array.as_slice() {
            Some(data) => Tensor::from_slice(stream, data, array.shape()),
            None => {
                let data: Vec<T> = array.iter().copied().collect();
                Tensor::from_slice(stream, &data, array.shape())
            }
        }
    }

    /// Copies the tensor to a row-major array.
    ///
    /// # Errors
    /// Another element type, or the device failed.
    pub fn to_ndarray<T: Element>(&self, stream: &mut impl Stream<Device = D>) -> Result<ArrayD<T>> {
        let data = self.to_vec(stream)?;
        ArrayD::from_shape_vec(self.dims(), data)
            .map_err(|error| Error::Device { device: stream.device().info().name, cause: error.to_string() })
    }
}
