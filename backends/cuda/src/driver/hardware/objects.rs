//! The driver's objects, each destroyed with its last handle. Those of a lost device are left: its context takes them along.

use std::{ptr::null_mut, sync::Arc};

use cudarc::driver::sys::{self, CUdevice};

use super::{DriverError, Health, Result, Stream, answer::answer, probe};

/// The primary context of a device, which every user of the device in this process shares.
#[derive(Debug)]
pub(super) struct Primary {
    pub(super) device: CUdevice,
    context: sys::CUcontext,
    /// Whether memory is allocated in the order of streams.
    pub(super) pools: bool,
    pub(super) health: Health,
}

// SAFETY: the driver's functions may be called from every thread; a context is a name to them.
unsafe impl Send for Primary {}
// SAFETY: as above.
unsafe impl Sync for Primary {}

impl Primary {
    pub(super) fn retain(device: CUdevice) -> Result<Arc<Self>> {
        let pools = probe::has_pools(device)?;
        let mut context = null_mut();
        // SAFETY: the device came from the driver, and the context has a place.
        let result = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        answer("cuDevicePrimaryCtxRetain", result)?;
        let primary = Arc::new(Primary { device, context, pools, health: Health::new() });
        if pools {
            primary.keep_freed_memory()?;
        }
        Ok(primary)
    }

    /// Makes the context the calling thread's.
    pub(super) fn enter(&self) -> Result<()> {
        self.health.check()?;
        // SAFETY: the context was retained and is released with `self`.
        answer("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    /// Destroys the context with all that is in it.
    pub(super) fn reset(&self) -> Result<()> {
        self.health.lose();
        // SAFETY: the device came from the driver. Objects of the context are not touched after this: the device is lost.
        answer("cuDevicePrimaryCtxReset", unsafe { sys::cuDevicePrimaryCtxReset_v2(self.device) })
    }

    /// Freed memory stays with the pool, where the next allocation finds it, and is not given back at every wait.
    fn keep_freed_memory(&self) -> Result<()> {
        self.enter()?;
        let mut pool = null_mut();
        // SAFETY: the device came from the driver, and the pool has a place.
        let result = unsafe { sys::cuDeviceGetDefaultMemPool(&raw mut pool, self.device) };
        answer("cuDeviceGetDefaultMemPool", result)?;
        let mut threshold = u64::MAX;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool came from the driver, and this attribute is an unsigned number of 64 bits.
        let result = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()) };
        answer("cuMemPoolSetAttribute", result)
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        // SAFETY: it was retained once by this value, and is released once, which is right after a reset too.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// An object of a context.
pub(super) trait Owned: std::any::Any {
    /// Its context.
    fn primary(&self) -> &Arc<Primary>;
}

macro_rules! object {
    (
        $(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* } drop: |$object:ident| $destroy:expr
    ) => {
        $(#[$doc])*
        pub(super) struct $name {
            pub(super) primary: Arc<Primary>,
            $(pub(super) $field: $type,)*
        }

        // SAFETY: the driver's functions may be called from every thread; its objects are names to them.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl Owned for $name {
            fn primary(&self) -> &Arc<Primary> {
                &self.primary
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // What was created in a context goes with it; and an error has nobody to be told to.
                if self.primary.enter().is_ok() {
                    let $object = &*self;
                    let _: std::result::Result<(), DriverError> = $destroy;
                }
            }
        }
    };
}

object!(
    /// A stream; work that is queued on it is still done.
    RawStream { stream: sys::CUstream }
    // SAFETY: this was its last handle.
    drop: |it| answer("cuStreamDestroy", unsafe { sys::cuStreamDestroy_v2(it.stream) })
);
object!(
    /// An event.
    RawEvent { event: sys::CUevent }
    // SAFETY: this was its last handle; the driver lets an event go that is still to be reached.
    drop: |it| answer("cuEventDestroy", unsafe { sys::cuEventDestroy_v2(it.event) })
);
object!(
    /// Loaded code.
    RawModule { module: sys::CUmodule }
    // SAFETY: this was its last handle, kernels have one each. Work that is queued may still need it, hence the wait.
    drop: |it| answer("cuModuleUnload", unsafe {
        let _ = sys::cuCtxSynchronize();
        sys::cuModuleUnload(it.module)
    })
);
object!(
    /// A kernel, which keeps its module.
    RawFunction { _module: super::Module, function: sys::CUfunction }
    drop: |_it| Ok(())
);
object!(
    /// A graph that can be launched.
    RawGraph { graph: sys::CUgraphExec }
    // SAFETY: this was its last handle; the driver lets a graph go that still runs.
    drop: |it| answer("cuGraphExecDestroy", unsafe { sys::cuGraphExecDestroy(it.graph) })
);
object!(
    /// Device memory, and the stream in whose order it is freed.
    RawMemory { stream: Stream, address: sys::CUdeviceptr }
    drop: |it| match it.stream.get::<RawStream>() {
        Ok(_) if it.address == 0 => Ok(()),
        Ok(stream) if it.primary.pools => {
            // SAFETY: this was its last handle, and it was allocated in this way.
            answer("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(it.address, stream.stream) })
        }
        // SAFETY: as there. The driver waits for what is queued.
        _ => answer("cuMemFree", unsafe { sys::cuMemFree_v2(it.address) }),
    }
);
object!(
    /// Pinned memory. It is freed only when no copy can use it any more: after a wait for the whole device.
    RawPinned { address: *mut u8 }
    drop: |it| if it.address.is_null() {
        Ok(())
    } else {
        // SAFETY: this was its last handle, and after the wait no queued work knows its address.
        answer("cuMemFreeHost", unsafe {
            let _ = sys::cuCtxSynchronize();
            sys::cuMemFreeHost(it.address.cast())
        })
    }
);
