//! Tensors: a counted buffer with a shape.

use crate::{DType, Device, Element, Error, MAX_RANK, Pending, Result, Shape, Storage, Stream};
use std::ops::Range;

/// A view of device memory: dtype, shape and strides over a counted buffer.
///
/// Cloning shares the memory. The innermost dimension is always contiguous: no view changes its stride.
#[derive(Clone, Debug)]
pub struct Tensor<D: Device> {
    buffer: D::Buffer,
    /// In bytes.
    offset: u64,
    shape: Shape,
    /// In elements.
    strides: [usize; MAX_RANK],
    dtype: DType,
}

impl<D: Device> Tensor<D> {
    /// Allocates a dense tensor; its contents are undefined until they are written.
    ///
    /// # Errors
    /// A shape beyond [`Shape::new`]'s limits, or no memory.
    pub fn new(device: &D, dtype: DType, dims: &[usize]) -> Result<Self> {
        let shape = Shape::new(dims)?;
        let buffer = device.alloc(dense_bytes(&shape, dtype)?)?;
        Ok(Tensor { buffer, offset: 0, shape, strides: shape.dense_strides(), dtype })
    }

    /// A dense tensor over `buffer`, from byte `offset` on.
    ///
    /// # Errors
    /// The buffer is too small, or `offset` is not a multiple of the element's size.
    pub fn from_buffer(buffer: D::Buffer, offset: u64, dtype: DType, dims: &[usize]) -> Result<Self> {
        let shape = Shape::new(dims)?;
        let end = offset.checked_add(dense_bytes(&shape, dtype)?);
        if end.is_none_or(|end| end > buffer.len()) {
            return Err(Error::Limit {
                operator: "tensor",
                argument: "offset + bytes",
                got: end.unwrap_or(u64::MAX),
                limit: buffer.len(),
            });
        }
        if !offset.is_multiple_of(dtype.size() as u64) {
            return Err(Error::Argument {
                operator: "tensor",
                argument: "offset",
                expected: format!("a multiple of {} bytes", dtype.size()),
                got: offset.to_string(),
            });
        }
        Ok(Tensor { buffer, offset, shape, strides: shape.dense_strides(), dtype })
    }

    /// Allocates a tensor and copies `data`, in row-major order, into it.
    ///
    /// # Errors
    /// `data` has another number of elements than the shape, or no memory.
    pub fn from_slice<T: Element>(
        stream: &mut impl Stream<Device = D>,
        data: &[T],
        dims: &[usize],
    ) -> Result<Self> {
        let tensor = Tensor::new(stream.device(), T::DTYPE, dims)?;
        tensor.write(stream, data)?;
        Ok(tensor)
    }

    /// Overwrites a dense tensor with `data`, in row-major order.
    ///
    /// # Errors
    /// Another element type or another number of elements.
    pub fn write<T: Element>(&self, stream: &mut impl Stream<Device = D>, data: &[T]) -> Result<()> {
        self.expect_dtype(T::DTYPE)?;
        stream.upload(self, bytemuck::cast_slice(data))
    }

    /// Copies the tensor to the host, in row-major order, waiting for the work queued before.
    ///
    /// # Errors
    /// Another element type, or the device failed.
    pub fn to_vec<T: Element>(&self, stream: &mut impl Stream<Device = D>) -> Result<Vec<T>> {
        self.expect_dtype(T::DTYPE)?;
        let bytes = stream.download(self)?.wait()?;
        // The bytes may lie at an address that does not suit T, so copy rather than cast.
        Ok(bytemuck::allocation::pod_collect_to_vec(&bytes))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The sizes of the dimensions, outermost first.
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Strides in elements, one a dimension.
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.shape.rank()]
    }

    /// The memory beneath.
    pub fn buffer(&self) -> &D::Buffer {
        &self.buffer
    }

    /// The first element's place in the buffer, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let dense = self.shape.dense_strides();
        self.shape.elements() == 0
            || (0..self.shape.rank()).all(|axis| self.dims()[axis] == 1 || self.strides[axis] == dense[axis])
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// The tensor is not dense, or the number of elements differs.
    pub fn reshape(&self, dims: &[usize]) -> Result<Self> {
        let shape = Shape::new(dims)?;
        if !self.is_dense() || shape.elements() != self.shape.elements() {
            return Err(Error::Argument {
                operator: "reshape",
                argument: "dims",
                expected: format!("{} elements of a dense tensor", self.shape.elements()),
                got: format!("{shape:?} over {:?} with strides {:?}", self.shape, self.strides()),
            });
        }
        Ok(Tensor { shape, strides: shape.dense_strides(), ..self.clone() })
    }

    /// Part `range` of dimension `axis`; shares the memory.
    ///
    /// # Errors
    /// No such dimension, or a range beyond it.
    pub fn narrow(&self, axis: usize, range: Range<usize>) -> Result<Self> {
        let size = self.dims().get(axis).copied();
        if size.is_none_or(|size| range.start > range.end || range.end > size) {
            return Err(Error::Argument {
                operator: "narrow",
                argument: "range",
                expected: format!("a part of dimension {axis} of {:?}", self.shape),
                got: format!("{range:?}"),
            });
        }
        let mut dims = [0; MAX_RANK];
        dims[..self.shape.rank()].copy_from_slice(self.dims());
        dims[axis] = range.len();
        // An empty tensor keeps its offset: moved, it could point beyond its buffer.
        let start = if range.is_empty() || self.shape.elements() == 0 { 0 } else { range.start };
        let offset = self.offset + (start * self.strides[axis] * self.dtype.size()) as u64;
        Ok(Tensor { offset, shape: Shape::new(&dims[..self.shape.rank()])?, ..self.clone() })
    }

    /// Splits the innermost dimension in two: `[.., a * b]` becomes `[.., a, b]`, for strided views too.
    ///
    /// # Errors
    /// The innermost dimension is not a multiple of `inner`, or there are too many dimensions.
    pub fn split_last(&self, inner: usize) -> Result<Self> {
        let rank = self.shape.rank();
        let last = self.dims().last().copied().unwrap_or(0);
        if inner == 0 || last % inner != 0 || rank == 0 || rank == MAX_RANK {
            return Err(Error::Argument {
                operator: "split_last",
                argument: "inner",
                expected: format!(
                    "a divisor of the last dimension of {:?}, of rank below {MAX_RANK}",
                    self.shape
                ),
                got: inner.to_string(),
            });
        }
        let mut dims = [1; MAX_RANK];
        dims[..rank].copy_from_slice(self.dims());
        dims[rank - 1] = last / inner;
        dims[rank] = inner;
        let mut strides = self.strides;
        strides[rank] = self.strides[rank - 1];
        strides[rank - 1] *= inner;
        Ok(Tensor { shape: Shape::new(&dims[..=rank])?, strides, ..self.clone() })
    }

    /// The bytes of the buffer from the first element to the end of the last, gaps included.
    pub fn byte_range(&self) -> Range<u64> {
        if self.shape.elements() == 0 {
            return self.offset..self.offset;
        }
        let last: usize =
            self.dims().iter().zip(self.strides()).map(|(dim, stride)| (dim - 1) * stride).sum();
        self.offset..self.offset + ((last + 1) * self.dtype.size()) as u64
    }

    /// Whether a byte belongs to the ranges of both. Interleaved views count as overlapping.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.byte_range(), other.byte_range());
        self.buffer.same(&other.buffer) && a.start < b.end && b.start < a.end
    }

    /// Checks that host bytes can be uploaded into this tensor: what every [`Stream::upload`] asks.
    ///
    /// # Errors
    /// [`Error::Argument`] where `bytes` is not exactly the tensor's size, or the tensor is not dense.
    pub fn check_upload(&self, bytes: &[u8]) -> Result<()> {
        let expected = self.shape.elements() as u64 * self.dtype.size() as u64;
        if self.is_dense() && bytes.len() as u64 == expected {
            return Ok(());
        }
        Err(Error::Argument {
            operator: "upload",
            argument: "bytes",
            expected: format!("{expected} bytes for a dense tensor {:?}", self.shape),
            got: format!("{} bytes, strides {:?}", bytes.len(), self.strides()),
        })
    }

    fn expect_dtype(&self, got: DType) -> Result<()> {
        if self.dtype == got { Ok(()) } else { Err(Error::DTypeMismatch { expected: self.dtype, got }) }
    }
}

/// Bytes of a dense tensor.
fn dense_bytes(shape: &Shape, dtype: DType) -> Result<u64> {
    (shape.elements() as u64)
        .checked_mul(dtype.size() as u64)
        .filter(|&bytes| bytes <= i64::MAX as u64)
        .ok_or(Error::Limit { operator: "tensor", argument: "bytes", got: u64::MAX, limit: i64::MAX as u64 })
}
