//! What the tests share: a session that begins, ends and finds leaks, and tensors with values.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard};

use crate::descriptor::{list, tensor};
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::{aclGetRecentErrMsg, lock};
use crate::runtime::{context, device, memory, stream};
use crate::settings;

static ALONE: Mutex<()> = Mutex::new(());

/// The library has one state for a process: tests take turns.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    lock(&ALONE)
}

/// The last failure's text.
pub(crate) fn message() -> String {
    let text = aclGetRecentErrMsg();
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a text of this library, alive until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A phase two.
pub(crate) type PhaseTwo = extern "C" fn(usize, u64, Handle, Handle) -> i32;

/// A tensor's handle, memory, dimensions and element type.
type Entry = (Handle, usize, Vec<i64>, Element);

/// From `aclInit` to `aclFinalize`, which must find nothing left.
pub(crate) struct Session {
    pub(crate) stream: Handle,
    tensors: RefCell<Vec<Entry>>,
    listed: RefCell<Vec<Handle>>,
    _alone: MutexGuard<'static, ()>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self::with(c"9.0")
    }

    /// With the limits of that profile.
    pub(crate) fn with(profile: &CStr) -> Self {
        let alone = alone();
        if device::is_initialized() {
            // A test that failed left it so.
            device::aclFinalize();
        }
        assert_eq!(settings::halite_cann_profile(profile.as_ptr()), 0);
        assert_eq!(device::aclInit(std::ptr::null()), 0);
        assert_eq!(context::aclrtSetDevice(0), 0);
        let mut handle = 0;
        assert_eq!(stream::aclrtCreateStream(Some(&mut handle)), 0);
        Self { stream: handle, tensors: RefCell::default(), listed: RefCell::default(), _alone: alone }
    }

    /// A contiguous tensor, poisoned.
    pub(crate) fn empty(&self, dims: &[i64], element: Element) -> Handle {
        let bytes = dims.iter().product::<i64>() as usize * element.size();
        let mut data = 0;
        assert_eq!(memory::aclrtMalloc(Some(&mut data), bytes.max(1), 0), 0);
        let handle = self.view(data, dims, None, element, dims);
        self.tensors.borrow_mut().push((handle, data, dims.to_vec(), element));
        handle
    }

    /// A descriptor of memory that is there.
    pub(crate) fn view(
        &self,
        data: usize,
        dims: &[i64],
        strides: Option<&[i64]>,
        element: Element,
        storage: &[i64],
    ) -> Handle {
        let strides = strides.map_or(std::ptr::null(), |strides| strides.as_ptr());
        let (rank, storage_rank) = (dims.len() as u64, storage.len() as u64);
        let code = element.code();
        tensor::aclCreateTensor(
            dims.as_ptr(),
            rank,
            code,
            strides,
            0,
            2,
            storage.as_ptr(),
            storage_rank,
            data,
        )
    }

    /// A contiguous tensor with values.
    pub(crate) fn tensor(&self, dims: &[i64], element: Element, values: &[f64]) -> Handle {
        let handle = self.empty(dims, element);
        self.write(handle, values);
        handle
    }

    fn entry(&self, handle: Handle) -> Entry {
        self.tensors.borrow().iter().find(|entry| entry.0 == handle).unwrap().clone()
    }

    /// Where a tensor's memory is.
    pub(crate) fn data(&self, handle: Handle) -> usize {
        self.entry(handle).1
    }

    pub(crate) fn write(&self, handle: Handle, values: &[f64]) {
        let (_, data, dims, element) = self.entry(handle);
        assert_eq!(values.len() as i64, dims.iter().product::<i64>());
        let bytes: Vec<u8> = values.iter().flat_map(|&value| element.bytes(value)).collect();
        let from = bytes.as_ptr() as usize;
        if !bytes.is_empty() {
            assert_eq!(stream::aclrtMemcpy(data, bytes.len(), from, bytes.len(), 1), 0, "{}", message());
        }
    }

    pub(crate) fn read(&self, handle: Handle) -> Vec<f64> {
        let (_, data, dims, element) = self.entry(handle);
        let mut bytes = vec![0_u8; dims.iter().product::<i64>() as usize * element.size()];
        let to = bytes.as_mut_ptr() as usize;
        assert_eq!(stream::aclrtMemcpy(to, bytes.len(), data, bytes.len(), 2), 0, "{}", message());
        bytes.chunks(element.size()).map(|bytes| element.value(bytes)).collect()
    }

    /// A list, which owns the tensors from then on.
    pub(crate) fn list(&self, tensors: &[Handle]) -> Handle {
        let handle = list::aclCreateTensorList(tensors.as_ptr(), tensors.len() as u64);
        assert_ne!(handle, 0, "{}", message());
        self.listed.borrow_mut().push(handle);
        handle
    }

    /// Both phases, and what the stream says after them.
    pub(crate) fn run(
        &self,
        first: impl FnOnce(Option<&mut u64>, Option<&mut Handle>) -> i32,
        second: PhaseTwo,
    ) -> Result<(), (i32, String)> {
        let (mut size, mut executor, mut workspace) = (0, 0, 0);
        let told = |code: i32| if code == 0 { Ok(()) } else { Err((code, message())) };
        told(first(Some(&mut size), Some(&mut executor)))?;
        if size > 0 {
            told(memory::aclrtMalloc(Some(&mut workspace), size as usize, 0))?;
        }
        let result = told(second(workspace, size, executor, self.stream));
        let result = result.and_then(|()| told(stream::aclrtSynchronizeStream(self.stream)));
        if size > 0 {
            told(memory::aclrtFree(workspace))?;
        }
        result
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for list in self.listed.take() {
            list::aclDestroyTensorList(list);
        }
        for (handle, data, _, _) in self.tensors.take() {
            if tensor::lives(handle) {
                tensor::aclDestroyTensor(handle);
            }
            memory::aclrtFree(data);
        }
        stream::aclrtDestroyStream(self.stream);
        let end = device::aclFinalize();
        if !std::thread::panicking() {
            assert_eq!(end, 0, "{}", message());
        }
    }
}

/// The values agree within a relative error.
#[track_caller]
pub(crate) fn assert_close(got: &[f64], expected: &[f64], error: f64) {
    assert_eq!(got.len(), expected.len());
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let limit = error * expected.abs().max(1e-6);
        assert!((got - expected).abs() <= limit, "value {index}: {got}, expected {expected}");
    }
}
