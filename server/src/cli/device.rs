//! Which hardware computes.

use super::{CacheArgs, gpu};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use halite_cpu::{Cpu, Options, Tier};
#[cfg(feature = "cuda")]
use halite_cuda::Cuda;
#[cfg(feature = "wgpu")]
use halite_wgpu::Wgpu;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(next_help_heading = "Device options")]
pub(crate) struct DeviceArgs {
    /// What computes: cpu; wgpu for the GPU that is likely the fastest, or wgpu:N for adapter N; cuda for the first GPU of NVIDIA's, or cuda:N; `halite devices` lists them. cuda-sim interprets the CUDA kernels on the CPU, to test them
    ///
    /// The CUDA backend has not been run on hardware yet.
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

    /// Kernels for --device cuda that `halite kernels precompile` made elsewhere: what is among them needs no compiler here
    #[arg(long, value_name = "DIR")]
    kernels: Option<PathBuf>,
}

/// A slip of the finger should not start a million threads.
const MAX_THREADS: i64 = halite_cpu::MAX_THREADS as i64;

/// A device as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceChoice {
    Cpu,
    /// An adapter by its number, or the one that is likely the fastest.
    Wgpu(Option<usize>),
    /// A GPU of NVIDIA's by its number.
    Cuda(u32),
    /// The CUDA backend without a GPU: its kernels are interpreted.
    CudaSim,
    /// A backend that has no code yet.
    Planned(&'static str),
}

/// Backends that have no code yet.
pub(crate) const PLANNED: [&str; 1] = ["ascend"];

impl DeviceChoice {
    fn parse(text: &str) -> Result<Self, String> {
        let choice = match text.split_once(':') {
            None if text == "cpu" => Some(Self::Cpu),
            None if text == "wgpu" => Some(Self::Wgpu(None)),
            None if text == "cuda" => Some(Self::Cuda(0)),
            None if text == "cuda-sim" => Some(Self::CudaSim),
            None => PLANNED.into_iter().find(|planned| *planned == text).map(Self::Planned),
            Some(("wgpu", adapter)) => adapter.parse().ok().map(Some).map(Self::Wgpu),
            Some(("cuda", number)) => number.parse().ok().map(Self::Cuda),
            Some(_) => None,
        };
        choice.ok_or_else(|| {
            "expected cpu, wgpu, wgpu:N, cuda, cuda:N or cuda-sim, N being a number that `halite devices` lists"
                .to_owned()
        })
    }
}

/// A device that computes.
pub(crate) enum Device {
    Cpu(Cpu),
    #[cfg(feature = "wgpu")]
    Wgpu(Wgpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
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
            DeviceChoice::Planned(name) => {
                bail!("the backend `{name}` is planned and has no code yet; use --device cpu or wgpu")
            }
            DeviceChoice::Cpu | DeviceChoice::Wgpu(_) | DeviceChoice::CudaSim if self.kernels.is_some() => {
                bail!("--kernels is machine code for --device cuda: leave it out, or use that device")
            }
            DeviceChoice::Cpu => self.cpu().map(Device::Cpu),
            _ if self.threads.is_some() || self.tier != TierChoice::Auto => {
                bail!("--threads and --tier are about the CPU: leave them out, or use --device cpu")
            }
            DeviceChoice::Wgpu(adapter) => gpu::wgpu(adapter, cache),
            DeviceChoice::Cuda(number) => gpu::cuda(number, self.kernels.as_deref(), cache),
            DeviceChoice::CudaSim => gpu::cuda_sim(cache),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_and_unknown_ones_are_told_what_there_is() {
        let parse = DeviceChoice::parse;
        assert_eq!(parse("cpu"), Ok(DeviceChoice::Cpu));
        assert_eq!(parse("wgpu"), Ok(DeviceChoice::Wgpu(None)));
        assert_eq!(parse("wgpu:12"), Ok(DeviceChoice::Wgpu(Some(12))));
        assert_eq!(parse("cuda"), Ok(DeviceChoice::Cuda(0)));
        assert_eq!(parse("cuda:3"), Ok(DeviceChoice::Cuda(3)));
        assert_eq!(parse("cuda-sim"), Ok(DeviceChoice::CudaSim));
        assert_eq!(parse("ascend"), Ok(DeviceChoice::Planned("ascend")));
        for wrong in
            ["gpu", "wgpu:", "wgpu:-1", "wgpu:all", "cuda:", "cuda:-1", "cuda-sim:0", "cpu:0", "CPU", ""]
        {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains("cpu, wgpu, wgpu:N, cuda, cuda:N or cuda-sim"), "{wrong}: {error}");
        }
    }
}
