//! NVIDIA's driver, found at run time.

mod answer;
mod objects;
mod probe;

use std::{ffi::CString, ptr::null_mut, sync::Arc, time::Duration};

use cudarc::driver::sys::{self, CUfunction_attribute, CUresult};

use self::{
    answer::{answer, describe},
    objects::{Owned, Primary, RawEvent, RawFunction, RawGraph, RawMemory, RawModule, RawPinned, RawStream},
};
use super::{
    Description, Driver, DriverError, Event, Graph, Health, Kernel, KernelAttributes, LaunchShape, Memory,
    Module, Parameters, Pinned, Stream, check_range,
};
use crate::compile::{Code, Image};

type Result<T> = std::result::Result<T, DriverError>;

/// How many GPUs the driver shows.
///
/// # Errors
/// [`DriverError::Missing`]: there is no driver, or one that is too old.
pub fn device_count() -> Result<u32> {
    probe::device_count()
}

/// The driver of a GPU, by its number from 0.
///
/// # Errors
/// [`DriverError::Missing`]: there is no driver, an old one, or no such GPU, or one that the kernels are not for.
pub fn hardware(device: u32) -> Result<Arc<dyn Driver>> {
    Ok(Arc::new(Hardware::open(device)?))
}

/// A GPU's primary context.
#[derive(Debug)]
struct Hardware {
    primary: Arc<Primary>,
    description: Description,
}

impl Hardware {
    fn open(device: u32) -> Result<Self> {
        let (device, description) = probe::device(device)?;
        Ok(Hardware { primary: Primary::retain(device)?, description })
    }

    /// An object of this context, which the thread then works with.
    fn ours<'a, T: Owned>(&self, object: Result<&'a T>, what: &'static str) -> Result<&'a T> {
        let object = object?;
        if !Arc::ptr_eq(object.primary(), &self.primary) {
            return Err(DriverError::Foreign { what });
        }
        self.primary.enter()?;
        Ok(object)
    }

    fn raw_stream(&self, stream: &Stream) -> Result<sys::CUstream> {
        self.ours(stream.get::<RawStream>(), "stream").map(|stream| stream.stream)
    }

    fn raw_event(&self, event: &Event) -> Result<sys::CUevent> {
        self.ours(event.get::<RawEvent>(), "event").map(|event| event.event)
    }

    /// The address of bytes in device memory.
    fn device(&self, (memory, at): (&Memory, u64), bytes: u64) -> Result<u64> {
        self.ours(memory.get::<RawMemory>(), "device memory")?;
        check_range("device memory", *memory.bytes(), at, bytes)?;
        Ok(memory.address() + at)
    }

    /// The address of bytes in pinned memory.
    fn host(&self, (pinned, at): (&Pinned, u64), bytes: u64) -> Result<*mut u8> {
        let raw = self.ours(pinned.get::<RawPinned>(), "pinned memory")?;
        check_range("pinned memory", *pinned.bytes(), at, bytes)?;
        Ok(raw.address.wrapping_add(size(at)))
    }

    fn attribute(function: sys::CUfunction, attribute: CUfunction_attribute) -> Result<u32> {
        let mut value = 0;
        // SAFETY: the function is of a loaded module, and the value has a place.
        let result = unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, function) };
        answer("cuFuncGetAttribute", result)?;
        Ok(value.try_into().unwrap_or(0))
    }
}

impl Driver for Hardware {
    fn description(&self) -> &Description {
        &self.description
    }

    fn health(&self) -> &Health {
        &self.primary.health
    }

    fn rebuild(&self) -> Result<Arc<dyn Driver>> {
        self.primary.reset()?;
        let made = Hardware {
            primary: Primary::retain(self.primary.device)?,
            description: self.description.clone(),
        };
        // A context can be made where the process is beyond repair: then its first work fails.
        let stream = made.stream()?;
        let memory = made.allocate(&stream, 4)?;
        made.fill(&stream, (&memory, 0), 4, 0)?;
        made.synchronize(&stream)?;
        Ok(Arc::new(made))
    }

    fn stream(&self) -> Result<Stream> {
        self.primary.enter()?;
        let mut stream = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the stream has a place.
        answer("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
        Ok(Stream::new(RawStream { primary: self.primary.clone(), stream }))
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        let stream = self.raw_stream(stream)?;
        // SAFETY: the stream lives: its handle is held.
        answer("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream) })
    }

    fn allocate(&self, stream: &Stream, bytes: u64) -> Result<Memory> {
        let raw = self.raw_stream(stream)?;
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: the address has a place, and the stream lives.
            let result = unsafe {
                if self.primary.pools {
                    sys::cuMemAllocAsync(&raw mut address, size(bytes), raw)
                } else {
                    sys::cuMemAlloc_v2(&raw mut address, size(bytes))
                }
            };
            if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return Err(DriverError::OutOfMemory { requested: bytes });
            }
            answer("cuMemAllocAsync", result)?;
        }
        let memory = RawMemory { primary: self.primary.clone(), stream: stream.clone(), address };
        Ok(Memory::new(memory, address, bytes))
    }

    fn pinned(&self, bytes: u64) -> Result<Pinned> {
        self.primary.enter()?;
        let mut address = null_mut();
        if bytes > 0 {
            // SAFETY: the address has a place.
            let result = unsafe { sys::cuMemHostAlloc(&raw mut address, size(bytes), 0) };
            if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return Err(DriverError::OutOfMemory { requested: bytes });
            }
            answer("cuMemHostAlloc", result)?;
            // SAFETY: it was allocated with as many bytes; from here on all of them are initialised.
            unsafe { address.cast::<u8>().write_bytes(0, size(bytes)) };
        }
        Ok(Pinned::new(RawPinned { primary: self.primary.clone(), address: address.cast() }, bytes))
    }

    fn write_pinned(&self, to: (&Pinned, u64), bytes: &[u8]) -> Result<()> {
        let to = self.host(to, bytes.len() as u64)?;
        // SAFETY: `host` checked that as many bytes lie there, which live as long as the handle; nobody has a reference
        // into pinned memory, so it does not overlap with `bytes`. A copy that reads it meanwhile is the device's, not a
        // thread's.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn read_pinned(&self, from: (&Pinned, u64), bytes: &mut [u8]) -> Result<()> {
        let from = self.host(from, bytes.len() as u64)?;
        // SAFETY: as in `write_pinned`; all bytes were initialised when they were allocated.
        unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn copy_in(&self, stream: &Stream, to: (&Memory, u64), from: (&Pinned, u64), bytes: u64) -> Result<()> {
        let (to, from) = (self.device(to, bytes)?, self.host(from, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.raw_stream(stream)?;
        // SAFETY: both ranges were checked; pinned memory is freed only after a wait for the whole device.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), size(bytes), stream) };
        answer("cuMemcpyHtoDAsync", result)
    }

    fn copy_out(&self, stream: &Stream, to: (&Pinned, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        let (to, from) = (self.host(to, bytes)?, self.device(from, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.raw_stream(stream)?;
        // SAFETY: as in `copy_in`.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, size(bytes), stream) };
        answer("cuMemcpyDtoHAsync", result)
    }

    fn copy(&self, stream: &Stream, to: (&Memory, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        let (to, from) = (self.device(to, bytes)?, self.device(from, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.raw_stream(stream)?;
        // SAFETY: both ranges were checked, and lie on the device.
        answer("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, size(bytes), stream) })
    }

    fn fill(&self, stream: &Stream, to: (&Memory, u64), bytes: u64, value: u8) -> Result<()> {
        let to = self.device(to, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.raw_stream(stream)?;
        // SAFETY: the range was checked, and lies on the device.
        answer("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(to, value, size(bytes), stream) })
    }

    fn load(&self, image: &Image) -> Result<Module> {
        let refuse = |reason: String| DriverError::Image { program: image.program().to_owned(), reason };
        let Code::Cubin(code) = image.code() else {
            return Err(refuse("PTX is for the interpreter: a GPU gets machine code".to_owned()));
        };
        if !image.architecture().runs_on(self.description.architecture.capability()) {
            let (made, here) = (image.architecture(), self.description.architecture);
            return Err(refuse(format!("it was made for {made}, and this device is {here}")));
        }
        self.primary.enter()?;
        let mut module = null_mut();
        // SAFETY: the code is an ELF file as NVRTC made it, which says itself how long it is; the driver copies it.
        answer("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut module, code.as_ptr().cast()) })?;
        Ok(Module::new(RawModule { primary: self.primary.clone(), module }))
    }

    fn kernel(&self, module: &Module, name: &str, dynamic_shared: u32) -> Result<Kernel> {
        let raw = self.ours(module.get::<RawModule>(), "module")?;
        let refuse = |reason| DriverError::Image { program: name.to_owned(), reason };
        let c_name = CString::new(name).map_err(|_| refuse("a kernel's name has no NUL".to_owned()))?;
        let mut function = null_mut();
        // SAFETY: the module lives, the name ends with a NUL, and the function has a place.
        let result = unsafe { sys::cuModuleGetFunction(&raw mut function, raw.module, c_name.as_ptr()) };
        if result == CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(refuse("the module has no kernel of this name".to_owned()));
        }
        answer("cuModuleGetFunction", result)?;
        let of = |attribute| Self::attribute(function, attribute);
        let attributes = KernelAttributes::new(
            of(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            of(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        )
        .with_local(of(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?)
        .with_shared(of(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?);
        let attributes = match describe::parameters(function) {
            Some(parameters) => attributes.with_parameters(parameters),
            None => attributes,
        };
        let (shared, limit) = (
            u64::from(dynamic_shared) + u64::from(attributes.static_shared),
            self.description.shared_per_block.into(),
        );
        if shared > limit {
            return Err(DriverError::Limit { what: "shared memory of a block in bytes", got: shared, limit });
        }
        let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // Only ever raised: another handle to the same kernel may need more.
        if of(most)? < dynamic_shared {
            let value = dynamic_shared.try_into().unwrap_or(i32::MAX);
            // SAFETY: the function is of a loaded module.
            answer("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(function, most, value) })?;
        }
        let attributes = attributes.with_dynamic_shared(dynamic_shared);
        let function = RawFunction { primary: self.primary.clone(), _module: module.clone(), function };
        Ok(Kernel::new(function, name, attributes))
    }

    unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        shape: &LaunchShape,
        parameters: &Parameters,
    ) -> Result<()> {
        if shape.is_empty() {
            return Ok(());
        }
        let function = self.ours(kernel.get::<RawFunction>(), "kernel")?.function;
        let stream = self.raw_stream(stream)?;
        let base = parameters.words().as_ptr().cast::<u8>();
        let mut places: Vec<_> = parameters
            .places()
            .iter()
            .map(|(offset, _)| base.wrapping_add(*offset).cast_mut().cast())
            .collect();
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        // SAFETY: function and stream live. The driver reads each parameter at its place, before it returns, with the size
        // that the kernel declares: the caller promises that these are the parameters, and what else the kernel may touch.
        let result = unsafe {
            sys::cuLaunchKernel(
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shape.shared,
                stream,
                places.as_mut_ptr(),
                null_mut(),
            )
        };
        answer("cuLaunchKernel", result)
    }

    fn event(&self) -> Result<Event> {
        self.primary.enter()?;
        let mut event = null_mut();
        // SAFETY: the event has a place.
        answer("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, 0) })?;
        Ok(Event::new(RawEvent { primary: self.primary.clone(), event }))
    }

    fn record(&self, stream: &Stream, event: &Event) -> Result<()> {
        let (stream, event) = (self.raw_stream(stream)?, self.raw_event(event)?);
        // SAFETY: both live: their handles are held.
        answer("cuEventRecord", unsafe { sys::cuEventRecord(event, stream) })
    }

    fn reached(&self, event: &Event) -> Result<bool> {
        let event = self.raw_event(event)?;
        // SAFETY: the event lives: its handle is held.
        match unsafe { sys::cuEventQuery(event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => answer("cuEventQuery", result).map(|()| true),
        }
    }

    fn wait(&self, event: &Event) -> Result<()> {
        let event = self.raw_event(event)?;
        // SAFETY: the event lives: its handle is held.
        answer("cuEventSynchronize", unsafe { sys::cuEventSynchronize(event) })
    }

    fn wait_on(&self, stream: &Stream, event: &Event) -> Result<()> {
        let (stream, event) = (self.raw_stream(stream)?, self.raw_event(event)?);
        // SAFETY: both live: their handles are held.
        answer("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream, event, 0) })
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        let milliseconds = describe::milliseconds(self.raw_event(from)?, self.raw_event(to)?)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0))
    }

    fn begin_capture(&self, stream: &Stream) -> Result<()> {
        let stream = self.raw_stream(stream)?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives: its handle is held.
        answer("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream, mode) })
    }

    fn end_capture(&self, stream: &Stream) -> Result<Graph> {
        let stream = self.raw_stream(stream)?;
        let (mut captured, mut graph) = (null_mut(), null_mut());
        // SAFETY: the stream lives, and the graph has a place.
        answer("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream, &raw mut captured) })?;
        // SAFETY: the driver gave the graph, and what is made of it has a place.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut graph, captured, 0) };
        // SAFETY: it is ours alone, and what was made of it does not need it.
        let destroyed = unsafe { sys::cuGraphDestroy(captured) };
        answer("cuGraphInstantiate", made)?;
        let graph = Graph::new(RawGraph { primary: self.primary.clone(), graph });
        answer("cuGraphDestroy", destroyed).map(|()| graph)
    }

    unsafe fn launch_graph(&self, stream: &Stream, graph: &Graph) -> Result<()> {
        let graph = self.ours(graph.get::<RawGraph>(), "graph")?.graph;
        let stream = self.raw_stream(stream)?;
        // SAFETY: both live; what the captured kernels touch is the caller's promise.
        answer("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph, stream) })
    }
}

/// Device addresses have 64 bits, and so have hosts of such devices.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_the_error_says_what_is_missing_and_what_to_do() {
        // With a GPU: its description, and the same error for one that is not there.
        match hardware(0) {
            Ok(driver) => assert!(driver.description().multiprocessors > 0),
            Err(error @ DriverError::Missing { .. }) => {
                let text = error.to_string();
                assert!(
                    ["install", "nvidia-smi", "choose"].iter().any(|remedy| text.contains(remedy)),
                    "{text}"
                );
            }
            Err(other) => panic!("{other}"),
        }
        let error = hardware(10_000).unwrap_err();
        assert!(matches!(error, DriverError::Missing { .. }), "{error}");
    }
}
