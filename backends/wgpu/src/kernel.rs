//! From a description of a dispatch to a compiled pipeline, once for each combination of types and constants.

use crate::{
    bindings::{Bindings, MAX_IMMEDIATES, MAX_OPERANDS},
    declarations,
    device::NAME,
    failure::caught,
    launch::{Launch, Shader},
    pipeline_cache::DiskCache,
};
use halite_hal::{Error, Result};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Everything that a pipeline is compiled from.
type Key = Vec<u64>;

/// The pipelines of a device.
pub(crate) struct Kernels {
    device: wgpu::Device,
    cache: DiskCache,
    made: Mutex<HashMap<Key, wgpu::ComputePipeline>>,
}

impl Kernels {
    pub(crate) fn new(device: wgpu::Device, cache: DiskCache) -> Self {
        Kernels { device, cache, made: Mutex::default() }
    }

    /// The pipeline of a dispatch.
    pub(crate) fn pipeline(&self, bindings: &Bindings, launch: &Launch) -> Result<wgpu::ComputePipeline> {
        let key = key(launch);
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = made().get(&key) {
            return Ok(pipeline.clone());
        }
        // Without the lock: other streams go on meanwhile, and at worst compile the same.
        let pipeline = self.compile(bindings, launch).map_err(|cause| Error::Device {
            device: NAME.to_owned(),
            cause: format!("kernel {}: {cause}", launch.shader.name),
        })?;
        made().insert(key, pipeline.clone());
        Ok(pipeline)
    }

    fn compile(
        &self,
        bindings: &Bindings,
        launch: &Launch,
    ) -> std::result::Result<wgpu::ComputePipeline, String> {
        let bound = launch.operands.iter().filter(|bound| bound.operand.is_some()).count();
        if bound > MAX_OPERANDS || 4 * (bound + launch.numbers.len()) > MAX_IMMEDIATES as usize {
            return Err(format!("{bound} operands and {} numbers are too many", launch.numbers.len()));
        }
        let text = declarations::text(launch);
        let layout = bindings.layout(bound);
        let (label, device) = (Some(launch.shader.name), &self.device);
        caught(device, || {
            let source = wgpu::ShaderSource::Wgsl(text.as_str().into());
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label,
                layout: Some(&layout.pipeline),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // What a kernel uses of workgroup memory it has written.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: self.cache.get(),
            })
        })
    }

    /// Keeps what was compiled for the next process.
    pub(crate) fn save(&self) {
        self.cache.save();
    }
}

fn key(launch: &Launch) -> Key {
    // Names are part of the text. They are never freed, so where one lies and how long it is says which it is.
    let name = |name: &'static str| (name.as_ptr().addr() as u64) << 8 | name.len() as u64 & 0xff;
    let shader: *const Shader = launch.shader;
    let mut key = vec![shader.addr() as u64];
    for bound in &launch.operands {
        let there = u64::from(bound.operand.is_some());
        key.extend([name(bound.name), there | (bound.access as u64) << 8 | (bound.dtype as u64) << 16]);
    }
    for (constant, value) in &launch.constants {
        key.extend([name(constant), value.bits().into()]);
    }
    key.extend(launch.numbers.iter().map(|(number, _)| name(number)));
    key
}
