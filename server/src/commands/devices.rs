//! `halite devices`: what this program can compute on, here.

use crate::cli::{PLANNED, TierChoice};
use crate::output;
use clap::{Args, ValueEnum};
use halite_cpu::{Cpu, Options, Tier};
use halite_hal::Device;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use indicatif::BinaryBytes;
use serde::Serialize;
use std::fmt::Write;

/// List what this program can compute on, here
///
/// An adapter of wgpu is listed with whether it passes a test of what it computes; a GPU of CUDA's with whether it can be opened,
/// since the CUDA backend has not been run on hardware yet.
#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    backend: &'static str,
    built: bool,
    devices: Vec<Found>,
    /// What is missing on this machine, and what to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

impl Report {
    fn built(backend: &'static str, devices: Vec<Found>) -> Self {
        Self { backend, built: true, devices, missing: Vec::new() }
    }

    fn not_built(backend: &'static str) -> Self {
        Self { backend, built: false, devices: Vec::new(), missing: Vec::new() }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Found {
    Cpu {
        name: String,
        threads: usize,
        tiers: Vec<TierReport>,
    },
    #[cfg(feature = "wgpu")]
    Adapter {
        /// What `--device` takes.
        device: String,
        name: String,
        kind: String,
        interface: String,
        driver: String,
        largest_binding: u64,
        largest_buffer: u64,
        default: bool,
        usable: bool,
        /// Why it is not.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[cfg(feature = "cuda")]
    Gpu {
        /// What `--device` takes.
        device: String,
        /// None where it cannot be opened.
        #[serde(flatten)]
        opened: Option<OpenedGpu>,
        default: bool,
        usable: bool,
        /// Why it is not.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

#[cfg(feature = "cuda")]
#[derive(Serialize)]
struct OpenedGpu {
    name: String,
    architecture: String,
    multiprocessors: usize,
    memory: u64,
}

#[derive(Serialize)]
struct TierReport {
    tier: String,
    available: bool,
    default: bool,
}

pub(crate) fn execute(args: &DevicesArgs) -> anyhow::Result<()> {
    let info = Cpu::new(Options::default())?.info();
    let cpu = Found::Cpu { name: info.name, threads: info.parallelism, tiers: tiers() };
    let mut reports = vec![Report::built(info.backend, vec![cpu]), wgpu(), cuda()];
    reports.extend(PLANNED.map(Report::not_built));
    if args.json { output::write_json(&reports) } else { output::write(&text(&reports)?) }
}

#[cfg(feature = "wgpu")]
fn wgpu() -> Report {
    let adapters = halite_wgpu::adapters().into_iter().map(|adapter| {
        let made = || halite_wgpu::Wgpu::new(halite_wgpu::Options::default().adapter(adapter.index));
        let reason = adapter.lacks.or_else(|| made().err().map(|error| error.to_string()));
        Found::Adapter {
            device: format!("wgpu:{}", adapter.index),
            name: adapter.name,
            kind: adapter.kind,
            interface: adapter.interface,
            driver: adapter.driver,
            largest_binding: adapter.largest_binding,
            largest_buffer: adapter.largest_buffer,
            default: adapter.default,
            usable: reason.is_none(),
            reason,
        }
    });
    let mut report = Report::built("wgpu", adapters.collect());
    if report.devices.is_empty() {
        let missing = "no adapter with Vulkan, Metal or Direct3D 12 was found: install the GPU's driver, or Mesa's Vulkan \
                       drivers for one that computes on the CPU (Debian: mesa-vulkan-drivers)";
        report.missing.push(missing.to_owned());
    }
    report
}

#[cfg(not(feature = "wgpu"))]
fn wgpu() -> Report {
    Report::not_built("wgpu")
}

#[cfg(feature = "cuda")]
fn cuda() -> Report {
    let mut report = Report::built("cuda", Vec::new());
    match halite_cuda::driver::device_count() {
        Ok(0) => report
            .missing
            .push("NVIDIA's driver shows no GPU: see `nvidia-smi`, and CUDA_VISIBLE_DEVICES".to_owned()),
        Ok(count) => report.devices.extend((0..count).map(gpu)),
        Err(error) => report.missing.push(error.to_string()),
    }
    if halite_cuda::compile::nvrtc_version().is_none() {
        let missing = "NVRTC was not found, which compiles kernels: install the CUDA toolkit 12.8 or later, or its wheel \
                       `nvidia-cuda-nvrtc`, and put the folder of libnvrtc.so into the library path; or bring kernels with \
                       --kernels";
        report.missing.push(missing.to_owned());
    }
    report
}

#[cfg(feature = "cuda")]
fn gpu(number: u32) -> Found {
    let device = format!("cuda:{number}");
    let opened = halite_cuda::Cuda::new(halite_cuda::Options::default().device(number));
    let reason = opened.as_ref().err().map(ToString::to_string);
    let opened = opened.ok().map(|device| device.info()).map(|info| OpenedGpu {
        name: info.name,
        architecture: info.tier,
        multiprocessors: info.parallelism,
        memory: info.memory.unwrap_or(0),
    });
    Found::Gpu { device, opened, default: number == 0, usable: reason.is_none(), reason }
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Report {
    Report::not_built("cuda")
}

/// Every tier that can be asked for, fastest first.
fn tiers() -> Vec<TierReport> {
    let named = TierChoice::value_variants().iter().filter(|&&choice| choice != TierChoice::Auto).rev();
    let report = |choice: &TierChoice| {
        let tier = choice.tier();
        let name = choice.to_possible_value().map(|value| value.get_name().to_owned());
        TierReport {
            tier: name.unwrap_or_default(),
            available: tier.is_some(),
            default: tier == Some(Tier::best()),
        }
    };
    named.map(report).collect()
}

fn text(reports: &[Report]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for Report { backend, built, devices, missing } in reports {
        devices.iter().try_for_each(|device| describe(&mut text, backend, device))?;
        missing.iter().try_for_each(|missing| writeln!(text, "{backend:<8}{missing}"))?;
        match built {
            false if PLANNED.contains(backend) => writeln!(text, "{backend:<8}planned, no code yet")?,
            false => {
                writeln!(text, "{backend:<8}not built into this program: build it with --features {backend}")?
            }
            true => {}
        }
    }
    Ok(text)
}

fn describe(text: &mut String, backend: &str, device: &Found) -> std::fmt::Result {
    match device {
        Found::Cpu { name, threads, tiers } => {
            writeln!(text, "{backend:<8}{name}, {threads} threads")?;
            tiers.iter().try_for_each(|tier| {
                let state = match tier {
                    TierReport { default: true, .. } => "available, the default",
                    TierReport { available: true, .. } => "available",
                    _ => "not on this machine",
                };
                writeln!(text, "{:<8}  {:<10}{state}", "", tier.tier)
            })
        }
        #[cfg(feature = "wgpu")]
        Found::Adapter {
            device,
            name,
            kind,
            interface,
            driver,
            largest_binding,
            largest_buffer,
            default,
            reason,
            ..
        } => {
            writeln!(text, "{device:<8}{name}, {kind}, {interface}, {driver}")?;
            let (tensor, buffer) = (BinaryBytes(*largest_binding), BinaryBytes(*largest_buffer));
            writeln!(text, "{:<8}  {tensor} of a tensor at once, allocations of {buffer}", "")?;
            let state = match reason {
                Some(reason) => reason.as_str(),
                None if *default => "usable, passed its self-test; the default of --device wgpu",
                None => "usable, passed its self-test",
            };
            writeln!(text, "{:<8}  {state}", "")
        }
        #[cfg(feature = "cuda")]
        Found::Gpu { device, opened, default, reason, .. } => {
            if let Some(OpenedGpu { name, architecture, multiprocessors, memory }) = opened {
                writeln!(text, "{device:<8}{name}, {architecture}, {multiprocessors} multiprocessors")?;
                writeln!(text, "{:<8}  {} of memory", "", BinaryBytes(*memory))?;
            }
            let state = match reason {
                Some(reason) => return writeln!(text, "{device:<8}{reason}"),
                None if *default => "can be opened; the default of --device cuda",
                None => "can be opened",
            };
            writeln!(text, "{:<8}  {state}; the backend has not been run on hardware yet", "")
        }
    }
}
