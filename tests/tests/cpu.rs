//! The CPU backend, judged in each tier.

use halite_cpu::{Cpu, Options, Tier};
use halite_hal::Result;
use halite_parity::{Fault, Verdict, invariance, parity_tests};

fn cpu(tier: Tier, threads: usize) -> Result<Cpu> {
    Cpu::new(Options::default().tier(tier).threads(threads))
}

fn avx512(threads: usize) -> Result<Option<Cpu>> {
    if Tier::available().contains(&Tier::Avx512) { cpu(Tier::Avx512, threads).map(Some) } else { Ok(None) }
}

parity_tests!(invariant portable, cpu(Tier::Portable, 2));
parity_tests!(invariant avx512, if_present super::super::avx512(2));

#[test]
fn every_tier_gives_the_same_bits_for_any_number_of_threads() -> Verdict {
    for &tier in Tier::available() {
        let one = cpu(tier, 1)?;
        for threads in [2, 3, 8] {
            invariance::across(&one, &cpu(tier, threads)?)
                .map_err(|Fault(fault)| Fault(format!("{tier:?}, 1 and {threads} threads: {fault}")))?;
        }
    }
    Ok(())
}
