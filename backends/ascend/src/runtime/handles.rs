//! Objects of CANN's, freed with their handles.

use std::ptr;

use super::{
    Answer, Runtime, RuntimeError, bindings, call,
    error::{CAPTURED, NOT_YET, size_of},
};

/// Events that streams wait for, and that are asked whether they were reached.
const EVENT_FLAGS: u32 = bindings::ACL_EVENT_SYNC | bindings::ACL_EVENT_CAPTURE_STREAM_PROGRESS;
/// Milliseconds after which somebody who waits asks whether there is still something to wait for.
const PATIENCE: i32 = 100;
/// Sizes are multiples of this, so that an operator which moves whole blocks of its own stays inside.
const ALIGNMENT: u64 = 32;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $free:ident $(, $(#[$field_doc:meta])* $field:ident: $type:ty)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name {
            runtime: Runtime,
            /// CANN's own handle or address.
            raw: usize,
            $($field: $type,)?
        }

        impl $name {
            /// CANN's own handle or address; null where there is nothing.
            pub(super) fn raw(&self) -> *mut core::ffi::c_void {
                self.raw as *mut _
            }

            $($(#[$field_doc])*
            pub(crate) fn $field(&self) -> $type {
                self.$field
            })?
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if self.raw != 0 {
                    // What is wrong with the device is told by the next call on it.
                    let _ = call!(self.runtime, $free(self.raw()));
                }
            }
        }
    };
}

handle!(
    /// What work is queued on.
    Queue, aclrtDestroyStream
);
handle!(
    /// A point in the order of a queue.
    Event, aclrtDestroyEvent
);
handle!(
    /// Work that was collected. Whoever drops it has seen to it that it is not running.
    Recording, aclmdlRIDestroy
);
handle!(
    /// Device memory. Whoever drops it has seen to it that no queued work uses it: it is freed at once.
    Memory, aclrtFree,
    /// Its size in bytes.
    bytes: u64
);
handle!(
    /// Host memory that the device copies from and to by itself.
    Pinned, aclrtFreeHost,
    /// Its size in bytes.
    bytes: u64
);

impl Runtime {
    /// Opens a queue.
    pub(crate) fn queue(&self) -> Answer<Queue> {
        let mut raw = ptr::null_mut();
        call!(self, aclrtCreateStream(&mut raw))?;
        Ok(Queue { runtime: self.clone(), raw: raw as usize })
    }

    /// Makes an event, which no work has reached yet.
    pub(crate) fn event(&self) -> Answer<Event> {
        let mut raw = ptr::null_mut();
        call!(self, aclrtCreateEventExWithFlag(&mut raw, EVENT_FLAGS))?;
        Ok(Event { runtime: self.clone(), raw: raw as usize })
    }

    /// Allocates device memory, which may be used at once.
    pub(crate) fn allocate(&self, bytes: u64) -> Answer<Memory> {
        let mut raw = ptr::null_mut();
        if bytes > 0 {
            let size = size_of(bytes.checked_next_multiple_of(ALIGNMENT), bytes)?;
            call!(self, aclrtMalloc(&mut raw, size, bindings::ACL_MEM_MALLOC_HUGE_FIRST))
                .map_err(|error| error.no_memory(bytes))?;
        }
        Ok(Memory { runtime: self.clone(), raw: raw as usize, bytes })
    }

    /// Allocates host memory that the device copies from and to by itself.
    pub(crate) fn pinned(&self, bytes: u64) -> Answer<Pinned> {
        let mut raw = ptr::null_mut();
        let size = size_of(Some(bytes), bytes)?;
        call!(self, aclrtMallocHost(&mut raw, size)).map_err(|error| error.no_memory(bytes))?;
        Ok(Pinned { runtime: self.clone(), raw: raw as usize, bytes })
    }

    /// Waits until all work of a queue is done.
    pub(crate) fn synchronize(&self, queue: &Queue) -> Answer<()> {
        call!(self, aclrtSynchronizeStream(queue.raw()))
    }

    /// Queues the reaching of an event.
    pub(crate) fn record(&self, queue: &Queue, event: &Event) -> Answer<()> {
        call!(self, aclrtRecordEvent(event.raw(), queue.raw()))
    }

    /// Whether an event was reached.
    pub(crate) fn reached(&self, event: &Event) -> Answer<bool> {
        let mut status = bindings::ACL_EVENT_RECORDED_STATUS_NOT_READY;
        call!(self, aclrtQueryEventStatus(event.raw(), &mut status))?;
        Ok(status == bindings::ACL_EVENT_RECORDED_STATUS_COMPLETE)
    }

    /// From now on what is queued is not done but collected.
    pub(crate) fn begin_capture(&self, queue: &Queue) -> Answer<()> {
        // All threads go on as before, and any of them may end it: in the other modes only the one that began.
        call!(self, aclmdlRICaptureBegin(queue.raw(), bindings::ACL_MODEL_RI_CAPTURE_MODE_RELAXED))
    }

    /// What was collected.
    pub(crate) fn end_capture(&self, queue: &Queue) -> Answer<Recording> {
        let mut raw = ptr::null_mut();
        call!(self, aclmdlRICaptureEnd(queue.raw(), &mut raw))?;
        Ok(Recording { runtime: self.clone(), raw: raw as usize })
    }

    /// Queues all that was collected.
    pub(crate) fn replay(&self, queue: &Queue, recording: &Recording) -> Answer<()> {
        call!(self, aclmdlRIExecuteAsync(recording.raw(), queue.raw()))
    }

    /// Waits until an event of a queue is reached. A queue that broke may never come to it, so it is asked now and then.
    pub(crate) fn wait(&self, queue: &Queue, event: &Event) -> Answer<()> {
        loop {
            match call!(self, aclrtSynchronizeEventWithTimeout(event.raw(), PATIENCE)) {
                Err(RuntimeError::Call { code: NOT_YET, .. }) => self.check(queue)?,
                Err(error) => return Err(error),
                Ok(()) => return self.check(queue),
            }
        }
    }

    /// What went wrong in a queue's work so far. While it is collected nobody may ask, and what came before it is done: that
    /// was waited for.
    fn check(&self, queue: &Queue) -> Answer<()> {
        let mut status = bindings::ACL_STREAM_STATUS_NOT_READY;
        match call!(self, aclrtStreamQuery(queue.raw(), &mut status)) {
            Err(RuntimeError::Call { code: CAPTURED, .. }) => Ok(()),
            answer => answer,
        }
    }
}
