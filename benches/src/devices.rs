//! The devices to measure: those of the backends that were compiled in.

#[cfg(feature = "cpu")]
use crate::ceilings::Ceilings;
#[cfg(feature = "wgpu")]
use crate::ceilings::wgpu::AdapterCeilings;
use crate::{
    measured::Group,
    work::{Bound, Work},
};
use criterion::Criterion;
use halite_hal::{Error, Result, Stream};
use halite_kernels::Backend;
use std::time::Duration;

#[cfg(not(any(feature = "cpu", feature = "wgpu")))]
compile_error!("there is nothing to measure: choose a backend by the feature `cpu` or `wgpu`");

/// One operator's benchmarks: closures cannot be generic.
pub trait Bench {
    /// The operator's name.
    const OPERATOR: &'static str;

    /// Measures on `device`.
    ///
    /// # Errors
    /// What the device does not support, or a fault.
    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()>;
}

/// A backend that is measured.
pub trait Measured: Backend<Stream: Clocked> {}

impl<B: Backend<Stream: Clocked>> Measured for B {}

/// A stream whose device may tell how long it worked.
pub trait Clocked: Stream {
    /// Runs `work` and waits for what it queued; gives the time that the device spent in it, where the device has a clock
    /// of its own.
    ///
    /// # Errors
    /// Those of `work`, and the device's.
    fn time_on_device(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Option<Duration>>;
}

#[cfg(feature = "cpu")]
impl Clocked for halite_cpu::CpuStream {
    fn time_on_device(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Option<Duration>> {
        work(self).map(|()| None)
    }
}

#[cfg(feature = "wgpu")]
impl Clocked for halite_wgpu::WgpuStream {
    fn time_on_device(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Option<Duration>> {
        self.time_passes(work)
    }
}

/// Whose ceilings bind.
pub(crate) enum Machine {
    #[cfg(feature = "cpu")]
    Cpu,
    #[cfg(feature = "wgpu")]
    Adapter { index: usize, ceilings: Option<AdapterCeilings> },
}

impl Machine {
    /// The ceiling that binds `work`; probes them all where nobody asked before.
    pub(crate) fn bound(&mut self, work: Work) -> Bound {
        match self {
            #[cfg(feature = "cpu")]
            Machine::Cpu => work.bound_on_cpu(Ceilings::of_this_machine()),
            #[cfg(feature = "wgpu")]
            Machine::Adapter { index, ceilings } => {
                ceilings.get_or_insert_with(|| AdapterCeilings::of(*index)).bound(work)
            }
        }
    }
}

/// Runs `bench` on every device that was compiled in, that the machine has, and that the command line does not leave out
/// by naming other backends.
///
/// # Panics
/// Where an operator fails for another reason than that the backend does not have it.
pub fn for_each_device(criterion: &mut Criterion, bench: &impl Bench) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(feature = "cpu")]
    if is_wanted("cpu", &arguments) {
        on_cpu(criterion, bench, &arguments);
    }
    #[cfg(feature = "wgpu")]
    if is_wanted("wgpu", &arguments) {
        on_adapters(criterion, bench);
    }
}

/// Whether the command line names `backend`, or no backend at all. Criterion's filter leaves out what is not asked for, but
/// only once it was set up.
fn is_wanted(backend: &str, arguments: &[String]) -> bool {
    let named = |name: &str| arguments.iter().any(|argument| argument.contains(name));
    named(backend) || !["cpu", "wgpu"].into_iter().any(named)
}

/// Whether the command line names this tier, as `cpu/avx512`, or none: to set one up takes minutes.
#[cfg(feature = "cpu")]
fn is_wanted_tier(tier: &str, arguments: &[String]) -> bool {
    let named = |name: &str| arguments.iter().any(|argument| argument.contains(name));
    named(&format!("cpu/{tier}")) || !named("cpu/")
}

/// Every tier that the machine has, or those that the command line names.
#[cfg(feature = "cpu")]
#[allow(clippy::panic, reason = "a benchmark that measures nothing must not pass for one")]
fn on_cpu(criterion: &mut Criterion, bench: &impl Bench, arguments: &[String]) {
    for tier in halite_cpu::Tier::available().filter(|tier| is_wanted_tier(tier.name(), arguments)) {
        match halite_cpu::Cpu::new(halite_cpu::Options::default().tier(tier)) {
            Ok(device) => {
                let name = format!("cpu/{tier}/{}-threads", device.threads());
                run(criterion, bench, &name, &device, Machine::Cpu);
            }
            Err(error) => panic!("cpu/{tier}: {error}"),
        }
    }
}

/// Every adapter that can be used, or the one that `HALITE_WGPU_ADAPTER` gives the number of; for a try only the first,
/// since every adapter compiles every kernel.
#[cfg(feature = "wgpu")]
#[allow(clippy::panic, reason = "as above")]
fn on_adapters(criterion: &mut Criterion, bench: &impl Bench) {
    for adapter in adapters() {
        let name = format!("wgpu/{}", adapter.name);
        match halite_wgpu::Wgpu::new(halite_wgpu::Options::default().adapter(adapter.index)) {
            Ok(device) => {
                let machine = Machine::Adapter { index: adapter.index, ceilings: None };
                run(criterion, bench, &name, &device, machine);
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

/// The adapters to measure.
///
/// # Panics
/// Where `HALITE_WGPU_ADAPTER` is not the number of an adapter, and where there is none at all although `CI=true`.
#[cfg(feature = "wgpu")]
pub fn adapters() -> Vec<halite_wgpu::AdapterReport> {
    let mut adapters = halite_wgpu::adapters();
    if let Ok(number) = std::env::var("HALITE_WGPU_ADAPTER") {
        adapters.retain(|adapter| adapter.index.to_string() == number);
        assert!(!adapters.is_empty(), "HALITE_WGPU_ADAPTER={number}: there is no such adapter");
        return adapters;
    }
    adapters.retain(|adapter| adapter.lacks.is_none());
    if adapters.is_empty() {
        eprintln!("NOT RUN on wgpu: this machine has no adapter that can be used");
        assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "not run although CI=true");
    }
    if !crate::measured::measuring() {
        adapters.truncate(1);
    }
    adapters
}

#[allow(clippy::panic, reason = "as above")]
fn run<T: Bench>(criterion: &mut Criterion, bench: &T, name: &str, device: &impl Measured, machine: Machine) {
    match bench.run(&mut Group::new(criterion, T::OPERATOR, name, machine), device) {
        Ok(()) => {}
        Err(error @ Error::Unsupported { .. }) => eprintln!("{}/{name}: not measured: {error}", T::OPERATOR),
        Err(error) => panic!("{}/{name}: {error}", T::OPERATOR),
    }
}

#[cfg(test)]
mod tests {
    use super::is_wanted;

    #[cfg(feature = "cpu")]
    #[test]
    fn a_tier_that_the_command_line_names_leaves_out_the_others() {
        for (line, avx2, avx512) in [
            ("", true, true),
            ("cpu --bench", true, true),
            ("--bench cpu/avx2", true, false),
            ("cpu/avx512.*(1x512|8x1of)", false, true),
        ] {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let wanted = ["avx2", "avx512"].map(|tier| super::is_wanted_tier(tier, &arguments));
            assert_eq!(wanted, [avx2, avx512], "{line}");
        }
    }

    #[test]
    fn a_backend_that_the_command_line_names_leaves_out_the_others() {
        for (line, cpu, wgpu) in [
            ("", true, true),
            ("--bench 512x576", true, true),
            ("wgpu --bench", false, true),
            ("cpu/avx2", true, false),
            ("--save-baseline cpu-before wgpu", true, true),
        ] {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(["cpu", "wgpu"].map(|name| is_wanted(name, &arguments)), [cpu, wgpu], "{line}");
        }
    }
}
