//! Bind groups, made once for each set of bound memory, and the layouts that they and all pipelines share.

use crate::memory::Backing;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The most storage buffers of a dispatch: what every adapter has.
pub(crate) const MAX_OPERANDS: usize = 8;
/// The most bytes of immediates, likewise.
pub(crate) const MAX_IMMEDIATES: u32 = 128;
/// Bind groups that are kept. A model needs a few hundred; one that changes buffers for ever must not grow.
const KEPT: usize = 4096;

/// Memory as a dispatch binds it.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) backing: &'a Backing,
    /// In bytes.
    pub(crate) offset: u64,
    /// In bytes.
    pub(crate) size: u64,
}

type Key = Vec<(u64, u64, u64)>;

/// A layout a number of operands, and the bind groups.
pub(crate) struct Bindings {
    device: wgpu::Device,
    layouts: Mutex<HashMap<usize, Arc<Layout>>>,
    groups: Mutex<HashMap<Key, wgpu::BindGroup>>,
}

pub(crate) struct Layout {
    group: wgpu::BindGroupLayout,
    pub(crate) pipeline: wgpu::PipelineLayout,
}

impl Bindings {
    pub(crate) fn new(device: wgpu::Device) -> Self {
        Bindings { device, layouts: Mutex::default(), groups: Mutex::default() }
    }

    /// The layout of kernels with so many operands. Every operand is writable: the same slab may then be bound as input
    /// and as output of one dispatch.
    pub(crate) fn layout(&self, operands: usize) -> Arc<Layout> {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        layouts.entry(operands).or_insert_with(|| Arc::new(self.new_layout(operands))).clone()
    }

    fn new_layout(&self, operands: usize) -> Layout {
        let entry = |binding| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: false },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = (0..operands as u32).map(entry).collect();
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        let group = self.device.create_bind_group_layout(&descriptor);
        let pipeline = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group)],
            immediate_size: MAX_IMMEDIATES,
        });
        Layout { group, pipeline }
    }

    /// The bind group of these windows, in the order of bindings.
    pub(crate) fn group(&self, windows: &[Window<'_>]) -> wgpu::BindGroup {
        let key: Key = windows.iter().map(|window| (window.backing.id, window.offset, window.size)).collect();
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.get(&key) {
            return group.clone();
        }
        let mut entries = Vec::with_capacity(windows.len());
        for (binding, window) in windows.iter().enumerate() {
            let (buffer, size) = (&window.backing.buffer, wgpu::BufferSize::new(window.size));
            let resource = wgpu::BufferBinding { buffer, offset: window.offset, size };
            entries.push(wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: wgpu::BindingResource::Buffer(resource),
            });
        }
        let layout = self.layout(windows.len());
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout.group,
            entries: &entries,
        });
        if groups.len() >= KEPT {
            groups.clear();
        }
        groups.insert(key, group.clone());
        group
    }

    /// Lets go of every group that keeps a buffer alive which nobody has any more.
    pub(crate) fn forget(&self, id: u64) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|key, _| key.iter().all(|(other, ..)| *other != id));
    }
}
