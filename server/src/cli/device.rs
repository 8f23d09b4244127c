//! Which hardware computes.

use super::CacheArgs;
#[cfg(feature = "wgpu")]
use crate::progress;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use halite_cpu::{Cpu, Options, Tier};
#[cfg(feature = "wgpu")]
use halite_wgpu::Wgpu;

#[derive(Debug, Args)]
#[command(next_help_heading = "Device options")]
pub(crate) struct DeviceArgs {
    /// What computes: cpu, wgpu for the GPU that is likely the fastest, or wgpu:N for adapter N; `halite devices` lists them
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = DeviceChoice::parse)]
    device: DeviceChoice,

    /// CPU threads [default: one for each core]
    ///
    /// Answers do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    threads: Option<u16>,

    /// CPU instructions: the best that this machine has, or one set in particular
    #[arg(long, value_enum, default_value_t = TierChoice::Auto)]
    tier: TierChoice,
}

/// A slip of the finger should not start a million threads.
const MAX_THREADS: i64 = halite_cpu::MAX_THREADS as i64;

/// A device as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceChoice {
    Cpu,
    /// An adapter by its number, or the one that is likely the fastest.
    Wgpu(Option<usize>),
    /// A backend that has no code yet.
    Planned(&'static str),
}

/// Backends that have no code yet.
pub(crate) const PLANNED: [&str; 2] = ["cuda", "ascend"];

impl DeviceChoice {
    fn parse(text: &str) -> Result<Self, String> {
        let adapter = text.strip_prefix("wgpu:").map(str::parse);
        match (text, adapter) {
            ("cpu", _) => Ok(Self::Cpu),
            ("wgpu", _) => Ok(Self::Wgpu(None)),
            (_, Some(Ok(adapter))) => Ok(Self::Wgpu(Some(adapter))),
            _ => {
                let planned = PLANNED.into_iter().find(|planned| *planned == text).map(Self::Planned);
                let known =
                    "expected cpu, wgpu or wgpu:N with an adapter's number, which `halite devices` lists";
                planned.ok_or_else(|| known.to_owned())
            }
        }
    }
}

/// A device that computes.
pub(crate) enum Device {
    Cpu(Cpu),
    #[cfg(feature = "wgpu")]
    Wgpu(Wgpu),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierChoice {
    /// The fastest of this machine.
    Auto,
    /// Plain Rust, on every machine.
    Portable,
    /// AVX2 with FMA.
    Avx2,
    /// AVX2 with AVX-VNNI.
    AvxVnni,
    /// AVX-512 with VNNI.
    Avx512,
    /// The same, with AMX for INT8 products of many rows.
    Amx,
}

impl TierChoice {
    /// The tier, if this machine has it.
    pub(crate) fn tier(self) -> Option<Tier> {
        match self {
            Self::Auto => Some(Tier::best()),
            Self::Portable => Some(Tier::PORTABLE),
            Self::Avx2 => Tier::avx2(),
            Self::AvxVnni => Tier::avx_vnni(),
            Self::Avx512 => Tier::avx512(),
            Self::Amx => Tier::amx(),
        }
    }
}

impl DeviceArgs {
    /// Opens the device; what it compiles is kept in the cache.
    pub(crate) fn open(&self, cache: &CacheArgs) -> anyhow::Result<Device> {
        match self.device {
            DeviceChoice::Cpu => self.cpu().map(Device::Cpu),
            DeviceChoice::Planned(name) => {
                bail!("the backend `{name}` is planned and has no code yet; use --device cpu or wgpu")
            }
            DeviceChoice::Wgpu(_) if self.threads.is_some() || self.tier != TierChoice::Auto => {
                bail!("--threads and --tier are about the CPU: leave them out, or use --device cpu")
            }
            DeviceChoice::Wgpu(adapter) => wgpu(adapter, cache),
        }
    }

    fn cpu(&self) -> anyhow::Result<Cpu> {
        let Some(tier) = self.tier.tier() else {
            let available: Vec<_> = Tier::available().map(Tier::name).collect();
            let named = self.tier.to_possible_value().map(|value| value.get_name().to_owned());
            bail!(
                "--tier {}: this processor (or its operating system) does not have it; use --tier auto, or one of: {}",
                named.unwrap_or_default(),
                available.join(", ")
            );
        };
        let mut options = Options::default().tier(tier);
        if let Some(threads) = self.threads {
            options = options.threads(threads.into());
        }
        Cpu::new(options).context("cannot use the CPU")
    }
}

#[cfg(feature = "wgpu")]
fn wgpu(adapter: Option<usize>, cache: &CacheArgs) -> anyhow::Result<Device> {
    let mut options = halite_wgpu::Options::default();
    if let Some(adapter) = adapter {
        options = options.adapter(adapter);
    }
    // Without a cache folder, later starts compile again.
    if let Ok(cache) = crate::model_file::open(cache) {
        options = options.pipeline_cache(cache.folder().join("pipelines"));
    }
    let device = Wgpu::new(options).context("cannot use the GPU; `halite devices` lists what there is")?;
    if device.is_software() {
        let name = halite_hal::Device::info(&device).name;
        progress::line(&format!("note: {name} computes on the CPU, where --device cpu is faster"));
    }
    Ok(Device::Wgpu(device))
}

#[cfg(not(feature = "wgpu"))]
fn wgpu(_: Option<usize>, _: &CacheArgs) -> anyhow::Result<Device> {
    bail!(
        "the backend `wgpu` is not built into this program: build it with --features wgpu, as in \
         `cargo install --locked --path server --features wgpu`, or use --device cpu"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_and_unknown_ones_are_told_what_there_is() {
        let parse = DeviceChoice::parse;
        assert_eq!(parse("cpu"), Ok(DeviceChoice::Cpu));
        assert_eq!(parse("wgpu"), Ok(DeviceChoice::Wgpu(None)));
        assert_eq!(parse("wgpu:12"), Ok(DeviceChoice::Wgpu(Some(12))));
        assert_eq!(parse("cuda"), Ok(DeviceChoice::Planned("cuda")));
        for wrong in ["gpu", "wgpu:", "wgpu:-1", "wgpu:all", "cpu:0", "CPU", ""] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains("cpu, wgpu or wgpu:N"), "{wrong}: {error}");
        }
    }
}
