//! Which adapters there are, what they lack, and which one is taken.
//!
//! OpenGL is left out, not for want of features: drivers pass every check and compute wrong results.

use crate::{
    bindings::{MAX_IMMEDIATES, MAX_OPERANDS},
    device::NAME,
    memory::SLAB,
};
use halite_hal::{Error, Result};

/// Invocations of a workgroup: what every kernel may use.
pub(crate) const INVOCATIONS: u32 = 256;
/// Bytes of workgroup memory, likewise.
pub(crate) const WORKGROUP_MEMORY: u32 = 16_384;

/// An adapter of this machine, as it tells of itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdapterReport {
    /// Its number: what [`Options::adapter`](crate::Options::adapter) takes.
    pub index: usize,
    /// The device's name.
    pub name: String,
    /// The interface: `vulkan`, `metal` or `dx12`.
    pub interface: String,
    /// Discrete, integrated, virtual or a CPU.
    pub kind: String,
    /// The driver and its version.
    pub driver: String,
    /// The largest tensor that one kernel reads at once, in bytes.
    pub largest_binding: u64,
    /// The largest single allocation, in bytes.
    pub largest_buffer: u64,
    /// Why it cannot be used, where it cannot. Whether it computes what it should shows when a device is made of it.
    pub lacks: Option<String>,
    /// Whether it is the one that is taken where none is named.
    pub default: bool,
}

fn instance() -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    wgpu::Instance::new(descriptor)
}

fn all() -> Vec<wgpu::Adapter> {
    pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()))
}

/// All adapters of this machine.
pub fn adapters() -> Vec<AdapterReport> {
    let found = all();
    let best = best(&found);
    let report = |(index, adapter)| report(index, adapter, best == Some(index));
    found.iter().enumerate().map(report).collect()
}

fn report(index: usize, adapter: &wgpu::Adapter, default: bool) -> AdapterReport {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    AdapterReport {
        index,
        name: info.name.clone(),
        interface: info.backend.to_string(),
        kind: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete GPU",
            wgpu::DeviceType::IntegratedGpu => "integrated GPU",
            wgpu::DeviceType::VirtualGpu => "virtual GPU",
            wgpu::DeviceType::Cpu => "CPU",
            wgpu::DeviceType::Other => "unknown",
        }
        .to_owned(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        largest_binding: largest_binding(&limits),
        largest_buffer: limits.max_buffer_size,
        lacks: lacks(adapter.features(), &limits),
        default,
    }
}

/// The usable adapter that is likely the fastest.
fn best(found: &[wgpu::Adapter]) -> Option<usize> {
    let rank = |adapter: &wgpu::Adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    };
    let usable = |adapter: &wgpu::Adapter| lacks(adapter.features(), &adapter.limits()).is_none();
    let usable = found.iter().enumerate().filter(|(_, adapter)| usable(adapter));
    usable.min_by_key(|(_, adapter)| rank(adapter)).map(|(place, _)| place)
}

/// A binding's places are counted in 32 bits of bytes.
pub(crate) fn largest_binding(limits: &wgpu::Limits) -> u64 {
    limits.max_storage_buffer_binding_size.min(u32::MAX.into()) / 256 * 256
}

fn lacks(features: wgpu::Features, limits: &wgpu::Limits) -> Option<String> {
    if !features.contains(wgpu::Features::IMMEDIATES) {
        return Some("it has no immediates (push constants)".to_owned());
    }
    let needs = [
        ("storage buffers a stage", limits.max_storage_buffers_per_shader_stage, MAX_OPERANDS as u32),
        ("bytes of immediates", limits.max_immediate_size, MAX_IMMEDIATES),
        ("invocations a workgroup", limits.max_compute_invocations_per_workgroup, INVOCATIONS),
        ("bytes of workgroup memory", limits.max_compute_workgroup_storage_size, WORKGROUP_MEMORY),
        ("workgroups a dimension", limits.max_compute_workgroups_per_dimension, 65_535),
    ];
    if largest_binding(limits) < SLAB {
        return Some(format!("it binds {} bytes at once, {SLAB} are needed", largest_binding(limits)));
    }
    let short = needs.into_iter().find(|(_, has, needs)| has < needs);
    short.map(|(what, has, needs)| format!("it has {has} {what}, {needs} are needed"))
}

/// Adapter `index`, or the one that is likely the fastest.
pub(crate) fn choose(index: Option<usize>) -> Result<wgpu::Adapter> {
    let refused = |cause: String| Error::Device { device: NAME.to_owned(), cause };
    let mut found = all();
    let place = match index {
        Some(index) => index,
        None => {
            let none = if found.is_empty() {
                "no adapter with Vulkan, Metal or Direct3D 12 was found; install the GPU's driver, or for a software \
                 adapter Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)"
            } else {
                "no adapter of this machine can be used; `halite devices` says why"
            };
            best(&found).ok_or_else(|| refused(none.to_owned()))?
        }
    };
    if place >= found.len() {
        let named = found
            .iter()
            .enumerate()
            .map(|(index, adapter)| format!("wgpu:{index} ({})", adapter.get_info().name));
        let named = if found.is_empty() { "none".to_owned() } else { named.collect::<Vec<_>>().join(", ") };
        return Err(refused(format!("there is no adapter {place}; this machine has {named}")));
    }
    let adapter = found.swap_remove(place);
    match lacks(adapter.features(), &adapter.limits()) {
        None => Ok(adapter),
        Some(reason) => Err(refused(format!("{} cannot be used: {reason}", adapter.get_info().name))),
    }
}
