//! Opens what is not the CPU. What a device compiles is kept in the cache; without such a folder, later starts compile again.

use super::{CacheArgs, device::Device};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use crate::{model_file, progress};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use anyhow::Context;
#[cfg(feature = "cuda")]
use halite_cuda::Cuda;
use std::path::Path;

#[cfg(feature = "wgpu")]
pub(super) fn wgpu(adapter: Option<usize>, cache: &CacheArgs) -> anyhow::Result<Device> {
    let mut options = halite_wgpu::Options::default();
    if let Some(adapter) = adapter {
        options = options.adapter(adapter);
    }
    if let Ok(cache) = model_file::open(cache) {
        options = options.pipeline_cache(cache.folder().join("pipelines"));
    }
    let device = halite_wgpu::Wgpu::new(options).context(CANNOT)?;
    if device.is_software() {
        let name = halite_hal::Device::info(&device).name;
        progress::line(&format!("note: {name} computes on the CPU, where --device cpu is faster"));
    }
    Ok(Device::Wgpu(device))
}

#[cfg(feature = "cuda")]
pub(super) fn cuda(number: u32, kernels: Option<&Path>, cache: &CacheArgs) -> anyhow::Result<Device> {
    let mut options = cuda_options(cache).device(number);
    if let Some(folder) = kernels {
        if !folder.is_dir() {
            anyhow::bail!(
                "--kernels {}: there is no such folder; `halite kernels precompile` makes it",
                folder.display()
            );
        }
        options = options.precompiled(folder);
    }
    let device = Cuda::new(options).context(CANNOT)?;
    progress::line("note: the CUDA backend has not been run on hardware before: compare with --device cpu");
    Ok(Device::Cuda(device))
}

#[cfg(feature = "cuda-sim")]
pub(super) fn cuda_sim(cache: &CacheArgs) -> anyhow::Result<Device> {
    let options = cuda_options(cache).interpreter(halite_cuda::driver::Interpreter::default());
    let device = Cuda::new(options).context("cannot interpret CUDA kernels")?;
    progress::line(
        "note: cuda-sim interprets CUDA kernels on the CPU, to test them; --device cpu is far faster",
    );
    Ok(Device::Cuda(device))
}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
const CANNOT: &str = "cannot use the GPU; `halite devices` lists what there is";

#[cfg(feature = "cuda")]
fn cuda_options(cache: &CacheArgs) -> halite_cuda::Options {
    let options = halite_cuda::Options::default();
    match model_file::open(cache) {
        Ok(cache) => options.cache(cache.folder().join("kernels")),
        Err(_) => options,
    }
}

#[cfg(not(feature = "wgpu"))]
pub(super) fn wgpu(_: Option<usize>, _: &CacheArgs) -> anyhow::Result<Device> {
    not_built("wgpu", "wgpu")
}

#[cfg(not(feature = "cuda"))]
pub(super) fn cuda(_: u32, _: Option<&Path>, _: &CacheArgs) -> anyhow::Result<Device> {
    not_built("cuda", "cuda")
}

#[cfg(not(feature = "cuda-sim"))]
pub(super) fn cuda_sim(_: &CacheArgs) -> anyhow::Result<Device> {
    not_built("cuda", "cuda-sim")
}

#[cfg(not(all(feature = "wgpu", feature = "cuda-sim")))]
fn not_built(backend: &str, feature: &str) -> anyhow::Result<Device> {
    anyhow::bail!(
        "the backend `{backend}` is not built into this program: build it with --features {feature}, as in \
         `cargo install --locked --path server --features {feature}`, or use --device cpu"
    )
}
