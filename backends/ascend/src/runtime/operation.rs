//! One call of an operator between its two phases: planned, and queued once.

use std::ptr;

use super::{
    Answer, Descriptor, Memory, Queue, Runtime, bindings,
    descriptor::Scalar,
    list::{IntArray, TensorList},
};
use crate::{abi::function, memory::AscendBuffer};

/// The second phase of every operator.
pub(super) type Launch = unsafe extern "C" fn(
    *mut core::ffi::c_void,
    u64,
    *mut bindings::aclOpExecutor,
    bindings::aclrtStream,
) -> bindings::aclnnStatus;

/// A planned call. Its executor is consumed by the second phase, which comes at most once.
pub(crate) struct Operation {
    runtime: Runtime,
    name: &'static str,
    launch: Launch,
    /// Null once it is consumed.
    executor: *mut bindings::aclOpExecutor,
    workspace: u64,
    /// Descriptors live until the call is queued, and the memory that they describe until it is done.
    tensors: Vec<Descriptor>,
    _scalars: Vec<Scalar>,
    lists: Vec<TensorList>,
    _arrays: Vec<IntArray>,
}

impl Operation {
    /// The first phase, as `plan` does it with the places of its two results. The executor knows nothing but `tensors`, and
    /// what [`Operation::with`] adds.
    pub(super) fn plan(
        runtime: &Runtime,
        name: &'static str,
        launch: Launch,
        tensors: Vec<Descriptor>,
        plan: impl FnOnce(&[Descriptor], &mut u64, &mut *mut bindings::aclOpExecutor) -> bindings::aclnnStatus,
    ) -> Answer<Self> {
        let cann = runtime.enter()?;
        let (mut workspace, mut executor) = (0, ptr::null_mut());
        match plan(&tensors, &mut workspace, &mut executor) {
            0 => Ok(Operation {
                runtime: runtime.clone(),
                name,
                launch,
                executor,
                workspace,
                tensors,
                _scalars: Vec::new(),
                lists: Vec::new(),
                _arrays: Vec::new(),
            }),
            code => Err(cann.error(name, code)),
        }
    }

    /// The lists and arrays that it was planned with: they live as long as descriptors do.
    pub(super) fn with(mut self, lists: Vec<TensorList>, arrays: Vec<IntArray>) -> Self {
        (self.lists, self._arrays) = (lists, arrays);
        self
    }

    /// The numbers that it was planned with: no document says that the first phase copies them, so they live as long.
    pub(super) fn with_scalars(mut self, scalars: Vec<Scalar>) -> Self {
        self._scalars = scalars;
        self
    }

    /// Bytes of device memory that the call needs to itself while it runs.
    pub(crate) fn workspace(&self) -> u64 {
        self.workspace
    }

    /// The memory that the call touches.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &AscendBuffer> {
        self.tensors.iter().map(Descriptor::buffer).chain(self.lists.iter().flat_map(TensorList::buffers))
    }

    /// The second phase. What the call touches has to be held until it is done, its workspace too.
    pub(crate) fn queue(mut self, queue: &Queue, workspace: Option<&Memory>) -> Answer<()> {
        let cann = self.runtime.enter()?;
        let place = workspace.filter(|_| self.workspace > 0).map_or(ptr::null_mut(), Memory::raw);
        let executor = std::mem::replace(&mut self.executor, ptr::null_mut());
        // SAFETY: the executor comes from the operator's first phase and is used once; the caller gives as much workspace as
        // it asked for; descriptors and scalars live, and the memory is held.
        match unsafe { (self.launch)(place, self.workspace, executor, queue.raw()) } {
            0 => Ok(()),
            code => Err(cann.error(self.name, code)),
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.executor.is_null() {
            return;
        }
        // Only an executor that was made repeatable may be destroyed; where that fails it is left, which costs memory.
        let cann = &self.runtime.0.cann;
        let repeatable = function!(cann, aclSetAclOpExecutorRepeatable);
        if let (Ok(repeatable), Ok(destroy)) = (repeatable, function!(cann, aclDestroyAclOpExecutor)) {
            // SAFETY: the executor comes from the operator's first phase, and no second phase has consumed it.
            if unsafe { repeatable(self.executor) } == 0 {
                // SAFETY: as above, and from here on it is this operation's to destroy, once.
                unsafe { destroy(self.executor) };
            }
        }
    }
}
