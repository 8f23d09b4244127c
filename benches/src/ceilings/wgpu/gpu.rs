//! An adapter, as little of it as a probe needs.

use std::{
    error::Error,
    time::{Duration, Instant},
};
use wgpu::util::DeviceExt;

/// A device of its own.
pub(super) struct Gpu {
    adapter: wgpu::Adapter,
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// A kernel over its buffers.
pub(super) struct Kernel {
    pipeline: wgpu::ComputePipeline,
    buffers: wgpu::BindGroup,
    groups: [u32; 2],
}

impl Gpu {
    /// The adapter of this number, counted as `halite_wgpu::adapters` does.
    pub(super) fn open(index: usize) -> Result<Self, Box<dyn Error>> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        let instance = wgpu::Instance::new(descriptor);
        let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all())).into_iter();
        let adapter = adapters.nth(index).ok_or("there is no such adapter")?;
        let descriptor = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
        Ok(Gpu { adapter, device, queue })
    }

    pub(super) fn name(&self) -> String {
        self.adapter.get_info().name
    }

    /// Memory that holds these words.
    pub(super) fn words(&self, words: &[u32]) -> wgpu::Buffer {
        let contents = bytemuck::cast_slice(words);
        let usage = wgpu::BufferUsages::STORAGE;
        self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
    }

    /// Memory for so many words, which [`read`](Self::read) reads.
    pub(super) fn results(&self, words: usize) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let size = 4 * words as u64;
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }

    /// A kernel of `source`, over buffers in the order of their bindings, in so many workgroups.
    pub(super) fn kernel(&self, source: String, buffers: &[&wgpu::Buffer], groups: [usize; 2]) -> Kernel {
        let source = wgpu::ShaderSource::Wgsl(source.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // As in the backend: nothing is read that was not written.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        let entries: Vec<_> = buffers
            .iter()
            .zip(0..)
            .map(|(buffer, binding)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let buffers = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        Kernel { pipeline, buffers, groups: groups.map(|groups| groups as u32) }
    }

    /// Runs a kernel so many times in one pass and waits; in seconds.
    pub(super) fn run(&self, kernel: &Kernel, runs: u32) -> f64 {
        let start = Instant::now();
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&kernel.pipeline);
        pass.set_bind_group(0, &kernel.buffers, &[]);
        for _ in 0..runs {
            pass.dispatch_workgroups(kernel.groups[0], kernel.groups[1], 1);
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.wait();
        start.elapsed().as_secs_f64()
    }

    /// Runs a second: the median of three measurements of so long.
    pub(super) fn rate(&self, kernel: &Kernel, time: Duration) -> f64 {
        let mut runs = 1;
        let mut rates = [0.0; 3];
        for rate in &mut rates {
            *rate = loop {
                let seconds = self.run(kernel, runs);
                if seconds >= time.as_secs_f64() {
                    break f64::from(runs) / seconds;
                }
                // Eight times as many at most: the first run may say little.
                let enough = 1.2 * time.as_secs_f64() / seconds * f64::from(runs);
                runs = enough.min(8.0 * f64::from(runs)).ceil() as u32;
            };
        }
        rates.sort_by(f64::total_cmp);
        rates[1]
    }

    /// The words of a buffer.
    pub(super) fn read(&self, buffer: &wgpu::Buffer) -> Vec<u32> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = buffer.size();
        let target = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, size);
        self.queue.submit([encoder.finish()]);
        target.slice(..).map_async(wgpu::MapMode::Read, |_| {});
        self.wait();
        // Nothing where the device failed: the answer is wrong then.
        let mapped = target.slice(..).get_mapped_range();
        mapped.map_or(Vec::new(), |mapped| bytemuck::pod_collect_to_vec(&mapped))
    }

    fn wait(&self) {
        // A device that fails says so by its answers.
        let _ = self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout: None });
    }
}
