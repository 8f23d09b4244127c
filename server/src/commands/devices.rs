//! `halite devices`: what this program can compute on, here.

use crate::cli::TierChoice;
use crate::output;
use clap::{Args, ValueEnum};
use halite_cpu::{Cpu, Options, Tier};
use halite_hal::Device;
use serde::Serialize;
use std::fmt::Write;

/// List what this program can compute on, here
#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Backends of Halite that this program does not contain.
const NOT_BUILT: [&str; 3] = ["wgpu", "cuda", "ascend"];

#[derive(Serialize)]
struct Report {
    backend: &'static str,
    built: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    name: String,
    threads: usize,
    tiers: Vec<TierReport>,
}

#[derive(Serialize)]
struct TierReport {
    tier: String,
    available: bool,
    default: bool,
}

pub(crate) fn execute(args: &DevicesArgs) -> anyhow::Result<()> {
    let info = Cpu::new(Options::default())?.info();
    let cpu = Found { name: info.name, threads: info.parallelism, tiers: tiers() };
    let mut reports = vec![Report { backend: info.backend, built: true, devices: vec![cpu] }];
    reports.extend(NOT_BUILT.map(|backend| Report { backend, built: false, devices: Vec::new() }));
    if args.json { output::write_json(&reports) } else { output::write(&text(&reports)?) }
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
    for report in reports {
        for device in &report.devices {
            writeln!(text, "{:<8}{}, {} threads", report.backend, device.name, device.threads)?;
            for tier in &device.tiers {
                let state = match tier {
                    TierReport { default: true, .. } => "available, the default",
                    TierReport { available: true, .. } => "available",
                    _ => "not on this machine",
                };
                writeln!(text, "{:<8}  {:<10}{state}", "", tier.tier)?;
            }
        }
        if !report.built {
            writeln!(text, "{:<8}not built into this program", report.backend)?;
        }
    }
    Ok(text)
}
