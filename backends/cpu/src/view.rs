//! Tensors as typed slices, for the time of one operator.

use crate::{
    buffer::{Reading, Writing},
    device::Cpu,
};
use halite_hal::{Element, Error, Result, Tensor};
use std::marker::PhantomData;

/// Where the rows of a tensor of up to 3 dimensions lie: `[outer, inner, columns]`, columns contiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) outer: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    /// Elements from one outer index to the next; at least 1.
    pub(crate) outer_stride: usize,
    /// Elements from one inner index to the next.
    pub(crate) inner_stride: usize,
}

impl Rows {
    pub(crate) fn of(tensor: &Tensor<Cpu>) -> Self {
        let (dims, strides) = (tensor.dims(), tensor.strides());
        let (outer, inner, columns, outer_stride, inner_stride) = match (dims, strides) {
            ([n], _) => (1, 1, *n, *n, *n),
            ([m, n], [s, _]) => (*m, 1, *n, *s, *n),
            ([m, h, n], [s, t, _]) => (*m, *h, *n, *s, *t),
            _ => (1, 1, tensor.shape().elements(), tensor.shape().elements(), 0),
        };
        Rows { outer, inner, columns, outer_stride: outer_stride.max(1), inner_stride }
    }

    /// Rows in all.
    pub(crate) fn count(&self) -> usize {
        self.outer * self.inner
    }

    /// The first element of a row of an outer and an inner index.
    pub(crate) fn start(&self, outer: usize, inner: usize) -> usize {
        outer * self.outer_stride + inner * self.inner_stride
    }

    /// Row `index` of `data`, counted through the inner dimension first.
    pub(crate) fn row<'d, T>(&self, data: &'d [T], index: usize) -> &'d [T] {
        // Rows of nothing may begin beyond the data, of which there is none.
        if self.columns == 0 {
            return &[];
        }
        &data[self.start(index / self.inner, index % self.inner)..][..self.columns]
    }
}

/// A tensor that is read.
pub(crate) struct Reader<'a, T> {
    guard: Reading<'a>,
    pub(crate) rows: Rows,
    element: PhantomData<T>,
}

/// A tensor that is written.
pub(crate) struct Writer<'a, T> {
    guard: Writing<'a>,
    pub(crate) rows: Rows,
    element: PhantomData<T>,
}

/// Guards a tensor for reading.
pub(crate) fn read<T: Element>(tensor: &Tensor<Cpu>) -> Result<Reader<'_, T>> {
    expect::<T>(tensor)?;
    let guard = tensor.buffer().read(tensor.byte_range())?;
    Ok(Reader { guard, rows: Rows::of(tensor), element: PhantomData })
}

/// Guards a tensor for writing, the gaps between its rows included.
pub(crate) fn write<T: Element>(tensor: &Tensor<Cpu>) -> Result<Writer<'_, T>> {
    expect::<T>(tensor)?;
    let guard = tensor.buffer().write(tensor.byte_range())?;
    Ok(Writer { guard, rows: Rows::of(tensor), element: PhantomData })
}

fn expect<T: Element>(tensor: &Tensor<Cpu>) -> Result<()> {
    if tensor.dtype() == T::DTYPE {
        Ok(())
    } else {
        Err(Error::DTypeMismatch { expected: T::DTYPE, got: tensor.dtype() })
    }
}

impl<T: Element> Reader<'_, T> {
    /// From the first element to the last.
    pub(crate) fn data(&self) -> &[T] {
        // Allocations are aligned to 64 bytes and offsets to the element, so the cast never fails.
        bytemuck::cast_slice(&self.guard)
    }
}

impl<T: Element> Writer<'_, T> {
    /// From the first element to the last.
    pub(crate) fn data(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.guard)
    }
}

impl Cpu {
    /// Shares the outer rows of an output, each some `nanoseconds` of work: a task is told its first row and how many it
    /// has, and gets their memory.
    pub(crate) fn each_rows<T: Element + Send>(
        &self,
        out: &mut Writer<'_, T>,
        nanoseconds: usize,
        task: impl Fn(usize, usize, &mut [T]) + Sync,
    ) {
        let layout = out.rows;
        let per_task = self.team().units_per_task(layout.outer, nanoseconds);
        let tasks = out.data().chunks_mut(layout.outer_stride * per_task).enumerate();
        self.team().each(tasks, |(index, out)| {
            let first = index * per_task;
            task(first, per_task.min(layout.outer - first), out);
        });
    }
}

/// Runs an expression with a type alias for a floating-point dtype; checked arguments have no other.
macro_rules! with_float {
    ($dtype:expr, $float:ident => $body:expr) => {
        match $dtype {
            halite_hal::DType::F16 => {
                type $float = half::f16;
                $body
            }
            halite_hal::DType::Bf16 => {
                type $float = half::bf16;
                $body
            }
            _ => {
                type $float = f32;
                $body
            }
        }
    };
}
pub(crate) use with_float;
