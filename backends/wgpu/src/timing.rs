//! How long the device itself works: timestamps at both ends of each compute pass.

use crate::{device::Wgpu, read_back::ReadBack, stream::WgpuStream};
use halite_hal::{Pending, Result};
use std::time::Duration;

/// Passes that are timed together: as many as the largest set of queries has room for.
const MAX_PASSES: u32 = wgpu::QUERY_SET_MAX_QUERIES / 2;

/// The timestamps of a stream's passes.
pub(crate) struct PassClock {
    queries: wgpu::QuerySet,
    passes: u32,
}

impl PassClock {
    fn new(device: &Wgpu) -> Option<Self> {
        let descriptor =
            wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count: 2 * MAX_PASSES };
        let there = device.raw().features().contains(wgpu::Features::TIMESTAMP_QUERY);
        there.then(|| PassClock { queries: device.raw().create_query_set(&descriptor), passes: 0 })
    }

    /// Where the next pass leaves its timestamps, as long as there is room.
    pub(crate) fn next_pass(&mut self) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let start = 2 * self.passes;
        self.passes += 1;
        (self.passes <= MAX_PASSES).then_some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: Some(start),
            end_of_pass_write_index: Some(start + 1),
        })
    }
}

impl WgpuStream {
    /// Runs `work`, waits for what it queued and gives the time that the device spent in it. `None` where the adapter has
    /// no timestamps, or where `work` made more passes than are counted: every upload and read-back ends one.
    ///
    /// # Errors
    /// Those of `work`, and the device's.
    pub fn time_passes(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Option<Duration>> {
        // What was queued before is not counted.
        self.hand_over()?;
        self.clock = PassClock::new(&self.device);
        let done = work(self).and_then(|()| self.hand_over());
        let clock = self.clock.take();
        let index = done?;
        self.device.wait(&index)?;
        match clock {
            Some(PassClock { passes: 0, .. }) => Ok(Some(Duration::ZERO)),
            Some(clock) if clock.passes <= MAX_PASSES => self.between_timestamps(&clock).map(Some),
            _ => Ok(None),
        }
    }

    /// The sum of the passes' times.
    fn between_timestamps(&mut self, clock: &PassClock) -> Result<Duration> {
        let queries = 2 * clock.passes;
        let size = u64::from(queries * wgpu::QUERY_SIZE);
        let device = self.device.clone();
        let resolved = device.raw().create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let target = device.read_backs().take(size, device.raw())?;
        self.encoder.resolve_query_set(&clock.queries, 0..queries, &resolved, 0);
        self.encoder.copy_buffer_to_buffer(&resolved, 0, &target, 0, size);
        let index = self.hand_over()?;
        let bytes = ReadBack::start(device.clone(), target, size, index).wait()?;
        let (stamps, _) = bytes.as_chunks::<8>();
        let stamps: Vec<u64> = stamps.iter().map(|stamp| u64::from_le_bytes(*stamp)).collect();
        let (passes, _) = stamps.as_chunks::<2>();
        let ticks: u64 = passes.iter().map(|[start, end]| end.saturating_sub(*start)).sum();
        Ok(Duration::from_secs_f64(ticks as f64 * f64::from(device.queue().get_timestamp_period()) * 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::gpu;
    use halite_hal::{DType, Device, Event, Result, Stream, Tensor};
    use halite_kernels::activation::*;
    use std::time::Instant;

    #[test]
    fn device_time_is_part_of_the_time_waited_for() -> Result<()> {
        let Some(gpu) = gpu("device time") else { return Ok(()) };
        let stream = &mut gpu.stream()?;
        let x = Tensor::from_slice(stream, &vec![0.5f32; 1 << 18], &[256, 1 << 10])?;
        let out = Tensor::new(&gpu, DType::F32, &[256, 1 << 10])?;
        let spec = ActivationSpec::new(Activation::Silu);
        let step = |stream: &mut _| {
            let args = ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out) };
            gpu.activation(stream, args.check()?)
        };
        step(stream)?;
        stream.submit()?.wait()?;

        let before = stream.launches();
        let start = Instant::now();
        let time = stream.time_passes(|stream| (0..8).try_for_each(|_| step(stream)))?;
        let waited = start.elapsed();
        assert_eq!(before.map(|before| before + 8), stream.launches());
        if gpu.raw().features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            assert!(time.is_some_and(|time| !time.is_zero() && time <= waited), "{time:?} of {waited:?}");
        } else {
            assert_eq!(time, None);
        }
        // Nothing is counted of what comes after.
        step(stream)?;
        assert!(stream.time_passes(|_| Ok(()))?.is_none_or(|time| time.is_zero()));
        Ok(())
    }
}
