//! The report on the CPU backend: `cargo run -p halite-parity --example report -- [json|markdown] [TIER..|all]`, where no tier
//! means the fastest of this machine.

use halite_cpu::{Cpu, Options, Tier};
use halite_parity::{Report, groups, invariance};
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let json = match arguments.next_if(|word| word == "json" || word == "markdown") {
        Some(form) => form == "json",
        None => false,
    };
    let tiers: Vec<Tier> = match arguments.peek().map(String::as_str) {
        None => vec![Tier::best()],
        Some("all") => Tier::available().collect(),
        Some(_) => arguments
            .map(|name| Tier::named(&name).ok_or(format!("this machine has no tier `{name}`")))
            .collect::<Result<_, _>>()?,
    };
    let mut reports = Vec::new();
    for tier in tiers {
        let cpu = Cpu::new(Options::default().tier(tier))?;
        let groups: Vec<_> = groups().into_iter().chain(invariance::groups()).collect();
        let report = Report::of(&cpu, &groups, |group| {
            eprintln!("{tier}: {}/{}: {} cases", group.family, group.group, group.cases);
        });
        if !json {
            println!("{}", report.markdown());
        }
        reports.push(report);
    }
    if json {
        println!("{}", serde_json::Value::from_iter(reports.iter().map(Report::json)));
    }
    let absent = Tier::NAMES.into_iter().filter(|name| Tier::named(name).is_none());
    absent.for_each(|name| {
        eprintln!("NOT JUDGED here, by no test: {name}: this processor lacks the instructions")
    });
    let cases: usize = reports.iter().map(Report::cases).sum();
    eprintln!("{cases} cases in {} tiers", reports.len());
    Ok(if reports.iter().all(Report::passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
