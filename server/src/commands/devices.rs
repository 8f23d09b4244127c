//! `halite devices`: what this program can compute on, here.

use crate::cli::{PLANNED, TierChoice};
use crate::output;
use clap::{Args, ValueEnum};
use halite_cpu::{Cpu, Options, Tier};
use halite_hal::Device;
#[cfg(feature = "wgpu")]
use indicatif::BinaryBytes;
use serde::Serialize;
use std::fmt::Write;

/// List what this program can compute on, here
///
/// A GPU is listed with whether it passes a test of what it computes.
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
    let mut reports = vec![Report { backend: info.backend, built: true, devices: vec![cpu] }, wgpu()];
    reports.extend(PLANNED.map(|backend| Report { backend, built: false, devices: Vec::new() }));
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
    Report { backend: "wgpu", built: true, devices: adapters.collect() }
}

#[cfg(not(feature = "wgpu"))]
fn wgpu() -> Report {
    Report { backend: "wgpu", built: false, devices: Vec::new() }
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
    for Report { backend, built, devices } in reports {
        devices.iter().try_for_each(|device| describe(&mut text, backend, device))?;
        match (built, *backend) {
            (false, "wgpu") => {
                writeln!(text, "{backend:<8}not built into this program: build it with --features wgpu")?
            }
            (false, _) => writeln!(text, "{backend:<8}planned, no code yet")?,
            (true, _) if devices.is_empty() => {
                writeln!(
                    text,
                    "{backend:<8}no adapter with Vulkan, Metal or Direct3D 12 was found: install the GPU's driver, or \
                     Mesa's Vulkan drivers for one that computes on the CPU (Debian: mesa-vulkan-drivers)"
                )?;
            }
            _ => {}
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
    }
}
