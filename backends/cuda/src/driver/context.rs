//! A driver's calls as the backend makes them: errors name device, kernel and launch, and a lost device says so once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use halite_hal::Result;

use super::{
    Description, Driver, DriverError, Event, Graph, Kernel, LaunchShape, Memory, Module, Parameters, Pinned,
    Stream,
};
use crate::compile::Image;

/// How many of the latest launches are told where it is not known which of them failed.
const REMEMBERED: usize = 4;

/// A kernel's name and how it was launched.
type Launched = (Arc<str>, LaunchShape);

/// A device's driver. Cloning gives another handle to the same.
///
/// Drivers tell of a failed kernel late and elsewhere. The first call that hears of it answers with the driver's words and
/// the latest launches; every call after it answers that the device is lost, until [`rebuild`](Self::rebuild).
#[derive(Clone, Debug)]
pub struct Context {
    driver: Arc<dyn Driver>,
    latest: Arc<Mutex<VecDeque<Launched>>>,
}

impl Context {
    /// A context of a driver.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Context { driver, latest: Arc::default() }
    }

    /// The raw calls.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// What the device is.
    pub fn description(&self) -> &Description {
        self.driver.description()
    }

    /// The same device, made anew after it was lost. Objects of this one cannot be used with it.
    ///
    /// # Errors
    /// The driver cannot do that.
    pub fn rebuild(&self) -> Result<Self> {
        self.driver.rebuild().map(Context::new).map_err(|error| error.on(&self.description().name))
    }

    /// As [`Driver::stream`].
    ///
    /// # Errors
    /// As there.
    pub fn stream(&self) -> Result<Stream> {
        self.call(|driver| driver.stream())
    }

    /// As [`Driver::synchronize`].
    ///
    /// # Errors
    /// As there.
    pub fn synchronize(&self, stream: &Stream) -> Result<()> {
        self.call(|driver| driver.synchronize(stream))
    }

    /// As [`Driver::allocate`].
    ///
    /// # Errors
    /// As there.
    pub fn allocate(&self, stream: &Stream, bytes: u64) -> Result<Memory> {
        self.call(|driver| driver.allocate(stream, bytes))
    }

    /// As [`Driver::pinned`].
    ///
    /// # Errors
    /// As there.
    pub fn pinned(&self, bytes: u64) -> Result<Pinned> {
        self.call(|driver| driver.pinned(bytes))
    }

    /// As [`Driver::write_pinned`].
    ///
    /// # Errors
    /// As there.
    pub fn write_pinned(&self, to: (&Pinned, u64), bytes: &[u8]) -> Result<()> {
        self.call(|driver| driver.write_pinned(to, bytes))
    }

    /// As [`Driver::read_pinned`].
    ///
    /// # Errors
    /// As there.
    pub fn read_pinned(&self, from: (&Pinned, u64), bytes: &mut [u8]) -> Result<()> {
        self.call(|driver| driver.read_pinned(from, bytes))
    }

    /// As [`Driver::copy_in`].
    ///
    /// # Errors
    /// As there.
    pub fn copy_in(
        &self,
        stream: &Stream,
        to: (&Memory, u64),
        from: (&Pinned, u64),
        bytes: u64,
    ) -> Result<()> {
        self.call(|driver| driver.copy_in(stream, to, from, bytes))
    }

    /// As [`Driver::copy_out`].
    ///
    /// # Errors
    /// As there.
    pub fn copy_out(
        &self,
        stream: &Stream,
        to: (&Pinned, u64),
        from: (&Memory, u64),
        bytes: u64,
    ) -> Result<()> {
        self.call(|driver| driver.copy_out(stream, to, from, bytes))
    }

    /// As [`Driver::copy`].
    ///
    /// # Errors
    /// As there.
    pub fn copy(&self, stream: &Stream, to: (&Memory, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        self.call(|driver| driver.copy(stream, to, from, bytes))
    }

    /// As [`Driver::fill`].
    ///
    /// # Errors
    /// As there.
    pub fn fill(&self, stream: &Stream, to: (&Memory, u64), bytes: u64, value: u8) -> Result<()> {
        self.call(|driver| driver.fill(stream, to, bytes, value))
    }

    /// As [`Driver::load`].
    ///
    /// # Errors
    /// As there.
    pub fn load(&self, image: &Image) -> Result<Module> {
        self.call(|driver| driver.load(image))
    }

    /// As [`Driver::kernel`].
    ///
    /// # Errors
    /// As there.
    pub fn kernel(&self, module: &Module, name: &str, dynamic_shared: u32) -> Result<Kernel> {
        self.call(|driver| driver.kernel(module, name, dynamic_shared))
    }

    /// As [`Driver::launch`], after checks of the shape and of the parameters against the kernel.
    ///
    /// # Errors
    /// As there, with the kernel's name and the shape.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        shape: &LaunchShape,
        parameters: &Parameters,
    ) -> Result<()> {
        if shape.is_empty() {
            return Ok(());
        }
        self.call(|driver| {
            let attributes = kernel.attributes();
            shape
                .check(driver.description(), attributes)
                .and_then(|()| parameters.check(attributes))
                // SAFETY: what this function asks of its caller is what that one asks.
                .and_then(|()| unsafe { driver.launch(stream, kernel, shape, parameters) })
                .map_err(|cause| DriverError::Launch {
                    kernel: kernel.name().to_string(),
                    shape: *shape,
                    cause: Box::new(cause),
                })
        })?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == REMEMBERED {
            latest.pop_front();
        }
        latest.push_back((kernel.name().clone(), *shape));
        Ok(())
    }

    /// As [`Driver::event`].
    ///
    /// # Errors
    /// As there.
    pub fn event(&self) -> Result<Event> {
        self.call(|driver| driver.event())
    }

    /// As [`Driver::record`].
    ///
    /// # Errors
    /// As there.
    pub fn record(&self, stream: &Stream, event: &Event) -> Result<()> {
        self.call(|driver| driver.record(stream, event))
    }

    /// As [`Driver::reached`].
    ///
    /// # Errors
    /// As there.
    pub fn reached(&self, event: &Event) -> Result<bool> {
        self.call(|driver| driver.reached(event))
    }

    /// As [`Driver::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.call(|driver| driver.wait(event))
    }

    /// As [`Driver::wait_on`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_on(&self, stream: &Stream, event: &Event) -> Result<()> {
        self.call(|driver| driver.wait_on(stream, event))
    }

    /// As [`Driver::elapsed`].
    ///
    /// # Errors
    /// As there.
    pub fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.call(|driver| driver.elapsed(from, to))
    }

    /// As [`Driver::begin_capture`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_capture(&self, stream: &Stream) -> Result<()> {
        self.call(|driver| driver.begin_capture(stream))
    }

    /// As [`Driver::end_capture`].
    ///
    /// # Errors
    /// As there.
    pub fn end_capture(&self, stream: &Stream) -> Result<Graph> {
        self.call(|driver| driver.end_capture(stream))
    }

    /// As [`Driver::launch_graph`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn launch_graph(&self, stream: &Stream, graph: &Graph) -> Result<()> {
        // SAFETY: what this function asks of its caller is what that one asks.
        self.call(|driver| unsafe { driver.launch_graph(stream, graph) })
    }

    /// One call: none where the device is lost, and the loss is told to one caller only.
    fn call<T>(&self, call: impl FnOnce(&dyn Driver) -> std::result::Result<T, DriverError>) -> Result<T> {
        let health = self.driver.health();
        let made = health.check().and_then(|()| call(&*self.driver));
        made.map_err(|error| {
            let name = &self.description().name;
            if !error.is_sticky() {
                return error.on(name);
            }
            if !health.lose() {
                return DriverError::Lost.on(name);
            }
            let cause =
                format!("{error}{}; the device is lost: make another with `rebuild`", self.suspects(&error));
            halite_hal::Error::Device { device: name.clone(), cause }
        })
    }

    /// The latest launches, where the error does not say itself which one failed.
    fn suspects(&self, error: &DriverError) -> String {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.is_empty() || !matches!(error, DriverError::Call { .. }) {
            return String::new();
        }
        let launches: Vec<String> =
            latest.iter().rev().map(|(kernel, shape)| format!("`{kernel}` ({shape})")).collect();
        format!("; the latest launches were, newest first: {}", launches.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use halite_hal::Error;

    use super::*;
    use crate::driver::testing::Fake;

    fn sticky() -> DriverError {
        let (code, meaning) = ("CUDA_ERROR_ILLEGAL_ADDRESS".into(), "an illegal memory access".into());
        DriverError::Call { call: "cuStreamSynchronize", code, meaning, sticky: true }
    }

    fn launched(context: &Context, stream: &Stream, kernel: &str, blocks: u32) -> Result<()> {
        let module = context.load(&Fake::image())?;
        let kernel = context.kernel(&module, kernel, 64)?;
        let shape = LaunchShape::new([blocks, 1, 1], [32, 1, 1]).shared(64);
        // SAFETY: the fake driver's kernels touch nothing.
        unsafe { context.launch(stream, &kernel, &shape, &Parameters::new().u64(0)) }
    }

    #[test]
    fn a_loss_is_told_once_with_the_latest_launches_and_then_rebuilt() {
        let fake = Fake::new();
        let context = Context::new(fake.clone());
        let stream = context.stream().unwrap();
        for blocks in 1..=6 {
            launched(&context, &stream, "attention", blocks).unwrap();
        }
        fake.fail_next(sticky());
        let error = context.synchronize(&stream).unwrap_err().to_string();
        for part in [
            "Fake: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS",
            "`attention` (grid 6x1x1",
            "grid 3x1x1",
            "`rebuild`",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("grid 2x1x1"), "{error}");
        let lost = "Fake: the device is lost since an earlier error: make another with `rebuild`";
        assert_eq!(context.synchronize(&stream).unwrap_err().to_string(), lost);
        assert_eq!(context.clone().event().unwrap_err().to_string(), lost);
        let context = context.rebuild().unwrap();
        let stream = context.stream().unwrap();
        launched(&context, &stream, "attention", 1).unwrap();
        context.synchronize(&stream).unwrap();
    }

    #[test]
    fn a_launch_that_fails_names_kernel_and_shape() {
        let fake = Fake::new();
        let context = Context::new(fake.clone());
        let stream = context.stream().unwrap();
        fake.fail_launch(DriverError::Limit { what: "luck", got: 2, limit: 1 });
        let error = launched(&context, &stream, "norm", 7).unwrap_err().to_string();
        let expected = "Fake: kernel `norm`, grid 7x1x1, block 32x1x1, 64 bytes of dynamic shared memory: luck is 2, \
                        beyond the limit of 1";
        assert_eq!(error, expected);
        // It is no loss.
        launched(&context, &stream, "norm", 7).unwrap();
        // A kernel's own report is one, and needs no suspects.
        fake.fail_launch(DriverError::Kernel { report: "norm.cu:12: block 3, lane 4: out of bounds".into() });
        let error = launched(&context, &stream, "norm", 7).unwrap_err().to_string();
        assert!(error.contains("`norm`, grid 7x1x1") && error.contains("norm.cu:12"), "{error}");
        assert!(!error.contains("newest first"), "{error}");
        assert!(launched(&context, &stream, "norm", 7).unwrap_err().to_string().contains("is lost"));
    }

    #[test]
    fn a_launch_is_checked_before_it_is_made() {
        let fake = Fake::new();
        let context = Context::new(fake.clone());
        let stream = context.stream().unwrap();
        let module = context.load(&Fake::image()).unwrap();
        let kernel = context.kernel(&module, "norm", 0).unwrap();
        let launch = |shape: LaunchShape, parameters| {
            // SAFETY: the fake driver's kernels touch nothing.
            unsafe { context.launch(&stream, &kernel, &shape, &parameters) }
        };
        let shape = LaunchShape::new([1, 1, 1], [32, 1, 1]);
        let error = launch(shape, Parameters::new().i32(1)).unwrap_err().to_string();
        assert!(error.contains("`norm`") && error.contains("[(0, 8)], got [(0, 4)]"), "{error}");
        let error = launch(LaunchShape::new([1, 1, 1], [2048, 1, 1]), Parameters::new().u64(1)).unwrap_err();
        assert!(error.to_string().contains("block.x is 2048"), "{error}");
        assert_eq!(fake.launches(), 0);
        // Without blocks there is nothing to check either.
        launch(LaunchShape::new([0, 1, 1], [2048, 1, 1]), Parameters::new()).unwrap();
        assert_eq!(fake.launches(), 0);
        launch(shape, Parameters::new().u64(1)).unwrap();
        assert_eq!(fake.launches(), 1);
    }

    #[test]
    fn other_errors_pass_and_leave_the_device_as_it_is() {
        let fake = Fake::new();
        let context = Context::new(fake.clone());
        let stream = context.stream().unwrap();
        let error = context.allocate(&stream, 1 << 40).unwrap_err();
        assert_eq!(error, Error::OutOfMemory { device: "Fake".into(), requested: 1 << 40 });
        let memory = context.allocate(&stream, 16).unwrap();
        let error = context.fill(&stream, (&memory, 8), 9, 0).unwrap_err().to_string();
        assert_eq!(error, "Fake: device memory: bytes 8..8+9 of 16");
        context.fill(&stream, (&memory, 8), 8, 0).unwrap();
        let of_another = Event::new(4_u8);
        let error = context.wait(&of_another).unwrap_err().to_string();
        assert!(error.contains("this event belongs to another device"), "{error}");
    }
}
