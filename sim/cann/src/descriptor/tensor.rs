//! `aclTensor`: a view of device memory, with strides, and its elements as numbers in the view's order.

use std::sync::{Arc, Mutex};

use crate::element::Element;
use crate::foreign;
use crate::handle::{Handle, Table};
use crate::runtime::error::{Failure, PARAMETER_INVALID, PARAMETER_NULL, answer, lock};
use crate::runtime::{device, memory};

/// `ACL_FORMAT_ND`.
const ND: i32 = 2;
/// More dimensions no operator takes (aclCreateTensor, 2026-08: "limit 8").
const DIMENSIONS: u64 = 8;

/// A view: element type, dimensions, strides and offset in elements, and where the storage begins.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) dims: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) element: Element,
    offset: i64,
    data: usize,
}

static TENSORS: Mutex<Table<Arc<Tensor>>> = Mutex::new(Table::new("aclTensor", 8));

impl Tensor {
    /// Elements of the view: a product that [`elements`] has checked.
    pub(crate) fn count(&self) -> usize {
        self.dims.iter().product::<i64>() as usize
    }

    /// The last dimension, 1 if there is none.
    pub(crate) fn last(&self) -> usize {
        self.dims.last().map_or(1, |&last| last as usize)
    }

    /// True if elements follow each other without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            if dim != 1 && stride != expected {
                return false;
            }
            expected *= dim;
        }
        true
    }

    /// Bytes from `data` to the first element and to the end of the last one; none where no number says it.
    fn checked_extent(&self) -> Option<(usize, usize)> {
        if self.count() == 0 {
            return Some((0, 0));
        }
        let mut last = self.offset;
        for (dim, stride) in self.dims.iter().zip(&self.strides) {
            last = last.checked_add((dim - 1).checked_mul(*stride)?)?;
        }
        let bytes = |elements: i64| usize::try_from(elements).ok()?.checked_mul(self.element.size());
        Some((bytes(self.offset)?, bytes(last.checked_add(1)?)?))
    }

    /// The same of a tensor that was made: it was checked then.
    fn extent(&self) -> (usize, usize) {
        self.checked_extent().unwrap_or_default()
    }

    /// Lends the bytes that the view spans.
    fn with<R>(&self, work: impl FnOnce(&mut [u8]) -> R) -> Result<R, Failure> {
        let (first, end) = self.extent();
        if first == end {
            return Ok(work(&mut []));
        }
        memory::with(self.data + first, end - first, work)
    }

    /// The whole view lies in a live allocation.
    pub(crate) fn check_memory(&self) -> Result<(), Failure> {
        self.with(|_| ())
    }

    /// Where an element of the view is, in bytes from the first.
    fn place(&self, mut index: usize) -> usize {
        let mut place = 0;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            place += (index % dim as usize) * stride as usize;
            index /= dim as usize;
        }
        place * self.element.size()
    }

    fn read<T>(&self, of: impl Fn(&[u8]) -> T) -> Result<Vec<T>, Failure> {
        self.read_part(0, self.count(), of)
    }

    fn read_part<T>(&self, first: usize, count: usize, of: impl Fn(&[u8]) -> T) -> Result<Vec<T>, Failure> {
        let size = self.element.size();
        let plain = self.is_contiguous();
        self.with(|bytes| {
            let places = (first..first + count).map(|i| if plain { i * size } else { self.place(i) });
            places.filter_map(|place| bytes.get(place..place + size).map(&of)).collect()
        })
    }

    /// All values.
    pub(crate) fn values(&self) -> Result<Vec<f64>, Failure> {
        self.read(|bytes| self.element.value(bytes))
    }

    /// `count` values from `first` on, in the view's order.
    pub(crate) fn values_at(&self, first: usize, count: usize) -> Result<Vec<f64>, Failure> {
        self.read_part(first, count, |bytes| self.element.value(bytes))
    }

    /// All values, as integers.
    pub(crate) fn integers(&self) -> Result<Vec<i64>, Failure> {
        self.read(|bytes| self.element.integer(bytes))
    }

    /// Writes values from `first` on, in the view's order, rounded to the nearest; what lies between stays.
    pub(crate) fn write_at(&self, first: usize, values: &[f64]) -> Result<(), Failure> {
        let size = self.element.size();
        let plain = self.is_contiguous();
        self.with(|bytes| {
            for (index, &value) in values.iter().enumerate() {
                let place = if plain { (first + index) * size } else { self.place(first + index) };
                if let Some(to) = bytes.get_mut(place..place + size) {
                    to.copy_from_slice(&self.element.bytes(value));
                }
            }
        })
    }

    /// Writes all values.
    pub(crate) fn write(&self, values: &[f64]) -> Result<(), Failure> {
        self.write_at(0, values)
    }

    /// The raw bytes of `count` elements from `first` on.
    pub(crate) fn raw_at(&self, first: usize, count: usize) -> Result<Vec<u8>, Failure> {
        if self.is_contiguous() {
            let size = self.element.size();
            let part = first * size..(first + count) * size;
            return self.with(|bytes| bytes.get(part).unwrap_or_default().to_vec());
        }
        Ok(self.read_part(first, count, |bytes| bytes.to_vec())?.concat())
    }

    /// Writes raw bytes of whole elements from `first` on.
    pub(crate) fn write_raw_at(&self, first: usize, raw: &[u8]) -> Result<(), Failure> {
        let size = self.element.size();
        let plain = self.is_contiguous();
        self.with(|bytes| {
            if plain && let Some(to) = bytes.get_mut(first * size..first * size + raw.len()) {
                to.copy_from_slice(raw);
                return;
            }
            for (index, from) in raw.chunks(size).enumerate() {
                let place = self.place(first + index);
                if let Some(to) = bytes.get_mut(place..place + size) {
                    to.copy_from_slice(from);
                }
            }
        })
    }
}

/// A live tensor of that handle; null is `code` 161001.
pub(crate) fn find(handle: Handle) -> Result<Arc<Tensor>, Failure> {
    let code = if handle == 0 { PARAMETER_NULL } else { PARAMETER_INVALID };
    lock(&TENSORS).get(handle, code)
}

/// True until `aclDestroyTensor`.
pub(crate) fn lives(handle: Handle) -> bool {
    lock(&TENSORS).holds(handle)
}

/// Forgets all tensors; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    lock(&TENSORS).clear()
}

/// Dimensions, strides, offset and storage in elements; `data` is an address of the device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclCreateTensor(
    view_dims: *const i64,
    view_dims_num: u64,
    data_type: i32,
    stride: *const i64,
    offset: i64,
    format: i32,
    storage_dims: *const i64,
    storage_dims_num: u64,
    data: usize,
) -> Handle {
    let wrong = |text: String| Err(Failure::new(PARAMETER_INVALID, text));
    let create = || {
        device::require_initialized()?;
        for (name, count) in [("viewDimsNum", view_dims_num), ("storageDimsNum", storage_dims_num)] {
            if count > DIMENSIONS {
                return wrong(format!("{name} {count}, limit {DIMENSIONS}"));
            }
        }
        let Some(element) = Element::of(data_type) else {
            return wrong(format!("dataType {data_type} is not modelled"));
        };
        if format != ND {
            return wrong(format!("format {format} is not modelled, only ACL_FORMAT_ND ({ND})"));
        }
        let dims = foreign::array("viewDims", view_dims, view_dims_num)?;
        let storage = foreign::array("storageDims", storage_dims, storage_dims_num)?;
        if let Some(dim) = dims.iter().chain(&storage).find(|&&dim| dim < 0) {
            return wrong(format!("a dimension of {dim}, limit 0 or more"));
        }
        for (name, dims) in [("viewDims", &dims), ("storageDims", &storage)] {
            if elements(dims).is_none() {
                return wrong(format!("{name} {dims:?}: more elements than there are numbers for"));
            }
        }
        let strides = match stride.is_null() {
            true => contiguous(&dims),
            false => foreign::array("stride", stride, view_dims_num)?,
        };
        if let Some(negative) = strides.iter().find(|&&stride| stride < 0) {
            return wrong(format!("a stride of {negative}, limit 0 or more"));
        }
        if offset < 0 {
            return wrong(format!("offset {offset}, limit 0 or more"));
        }
        let tensor = Tensor { dims, strides, element, offset, data };
        let stored = elements(&storage).and_then(|count| count.checked_mul(element.size()));
        let (Some((_, end)), Some(stored)) = (tensor.checked_extent(), stored) else {
            let Tensor { dims, strides, .. } = tensor;
            let text = "more elements or bytes than there are numbers for";
            return wrong(format!("viewDims {dims:?}, stride {strides:?}, storageDims {storage:?}: {text}"));
        };
        if end > stored {
            return wrong(format!("the view ends at byte {end}, storageDims {storage:?} at byte {stored}"));
        }
        if data != 0 && !memory::is_device(data) {
            return wrong(format!("tensorData {data:#x} is no address of the device"));
        }
        Ok(lock(&TENSORS).add(Arc::new(tensor)))
    };
    match create() {
        Ok(handle) => handle,
        Err(failure) => {
            answer("aclCreateTensor", Err(failure));
            0
        }
    }
}

/// How many elements there are; none where no number says it, dimensions of 0 left out: strides are products of the others.
fn elements(dims: &[i64]) -> Option<usize> {
    let count = dims.iter().try_fold(1_i64, |count, &dim| count.checked_mul(dim.max(1)))?;
    if dims.contains(&0) { Some(0) } else { usize::try_from(count).ok() }
}

/// Strides of a view without gaps.
fn contiguous(dims: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    let mut step = 1;
    for (stride, dim) in strides.iter_mut().zip(dims).rev() {
        *stride = step;
        step *= dim;
    }
    strides
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyTensor(tensor: Handle) -> i32 {
    answer("aclDestroyTensor", lock(&TENSORS).take(tensor, PARAMETER_NULL).map(drop))
}
