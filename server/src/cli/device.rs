//! Which hardware computes.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use halite_cpu::{Cpu, Options, Tier};

#[derive(Debug, Args)]
#[command(next_help_heading = "Device options")]
pub(crate) struct DeviceArgs {
    /// What computes; `halite devices` lists what this program was built with
    #[arg(long, value_enum, default_value_t = DeviceChoice::Cpu)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// The processor.
    Cpu,
    /// Any GPU with Vulkan, Metal or DirectX 12; not built into this program yet.
    Wgpu,
    /// NVIDIA GPUs; not built into this program yet.
    Cuda,
    /// Huawei Ascend NPUs; not built into this program yet.
    Ascend,
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
        }
    }
}

impl DeviceArgs {
    /// Opens the device.
    pub(crate) fn open(&self) -> anyhow::Result<Cpu> {
        let device = self.device.to_possible_value().map(|value| value.get_name().to_owned());
        if self.device != DeviceChoice::Cpu {
            let device = device.unwrap_or_default();
            bail!("the backend `{device}` is not built into this program yet; use --device cpu");
        }
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
