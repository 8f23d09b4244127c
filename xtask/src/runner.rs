//! Chooses steps and runs them in the table's order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::command::Invocation;
use crate::workspace::Workspace;

/// One row of the table of steps.
pub(crate) struct Step {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// What is known once it passed.
    pub(crate) proves: &'static str,
    /// Earlier steps without which it cannot run.
    pub(crate) needs: &'static [&'static str],
    /// Prepares the machine and judges nothing.
    pub(crate) set_up: bool,
    /// What it does.
    pub(crate) work: Work,
}

/// What a step does.
pub(crate) enum Work {
    /// Command lines; all of them run, so that one report shows every fault.
    Commands(Vec<Invocation>),
    /// A check made by this program.
    Function(fn(&Workspace) -> Result<()>),
}

impl Work {
    fn run(&self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Function(function) => function(workspace),
            Self::Commands(commands) => every(commands.iter().map(|command| command.run(workspace.root()))),
        }
    }
}

/// Goes through all results, so that one report shows every fault.
pub(crate) fn every(results: impl Iterator<Item = Result<()>>) -> Result<()> {
    let failures: Vec<String> =
        results.filter_map(|result| result.err().map(|error| format!("{error:#}"))).collect();
    if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("; ")) }
}

/// Names of the steps to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection(BTreeSet<&'static str>);

impl Selection {
    /// Every step.
    pub(crate) fn all(table: &[Step]) -> Self {
        Self(table.iter().map(|step| step.name).collect())
    }

    /// The steps that prepare the machine.
    pub(crate) fn set_up(table: &[Step]) -> Self {
        Self(table.iter().filter(|step| step.set_up).map(|step| step.name).collect())
    }

    /// The named steps and whatever they need. An unknown name is an error that lists the known ones.
    pub(crate) fn of(table: &[Step], names: &[impl AsRef<str>]) -> Result<Self> {
        let mut chosen = BTreeSet::new();
        let mut open: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        while let Some(name) = open.pop() {
            let Some(step) = table.iter().find(|step| step.name == name) else {
                let known: Vec<&str> = table.iter().map(|step| step.name).collect();
                bail!("there is no step `{name}`; the steps are {}", known.join(", "));
            };
            if chosen.insert(step.name) {
                open.extend(step.needs);
            }
        }
        Ok(Self(chosen))
    }
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It proved what it was meant to.
    Passed,
    /// It ran and failed, for this reason.
    Failed(String),
    /// It could not run, since this step failed. Counts as a failure.
    Blocked(&'static str),
}

/// A step that was selected, and how it ended.
pub(crate) struct Outcome<'a> {
    pub(crate) step: &'a Step,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
}

/// Runs the selected steps in order. A failed step blocks the steps that need it and no others.
pub(crate) fn run<'a>(workspace: &Workspace, table: &'a [Step], selection: &Selection) -> Vec<Outcome<'a>> {
    let chosen: Vec<&Step> = table.iter().filter(|step| selection.0.contains(step.name)).collect();
    let mut outcomes: Vec<Outcome<'a>> = Vec::with_capacity(chosen.len());
    for (index, step) in chosen.iter().enumerate() {
        eprintln!("\n==> [{}/{}] {}: {}", index + 1, chosen.len(), step.name, step.proves);
        let started = Instant::now();
        let verdict = match blocker(step, &outcomes) {
            Some(name) => Verdict::Blocked(name),
            None => match step.work.run(workspace) {
                Ok(()) => Verdict::Passed,
                Err(error) => Verdict::Failed(format!("{error:#}")),
            },
        };
        let took = started.elapsed();
        match &verdict {
            Verdict::Passed => eprintln!("    passed in {:.1} s", took.as_secs_f64()),
            Verdict::Failed(why) => eprintln!("    FAILED after {:.1} s: {why}", took.as_secs_f64()),
            Verdict::Blocked(name) => eprintln!("    FAILED: it cannot run without `{name}`, which failed"),
        }
        outcomes.push(Outcome { step, verdict, took });
    }
    outcomes
}

fn blocker(step: &Step, outcomes: &[Outcome<'_>]) -> Option<&'static str> {
    let failed = |outcome: &&Outcome<'_>| {
        outcome.verdict != Verdict::Passed && step.needs.contains(&outcome.step.name)
    };
    outcomes.iter().find(failed).map(|outcome| outcome.step.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, needs: &'static [&'static str], work: fn(&Workspace) -> Result<()>) -> Step {
        Step { name, proves: "", needs, set_up: needs.is_empty(), work: Work::Function(work) }
    }

    fn names(selection: &Selection) -> Vec<&str> {
        selection.0.iter().copied().collect()
    }

    #[test]
    fn a_chosen_step_brings_what_it_needs() {
        let table = [
            step("a", &[], |_| Ok(())),
            step("b", &["a"], |_| Ok(())),
            step("c", &["b"], |_| Ok(())),
            step("d", &[], |_| Ok(())),
        ];
        assert_eq!(names(&Selection::of(&table, &["c"]).unwrap()), ["a", "b", "c"]);
        assert_eq!(names(&Selection::set_up(&table)), ["a", "d"]);
        assert_eq!(names(&Selection::all(&table)), ["a", "b", "c", "d"]);
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_names() {
        let table = [step("format", &[], |_| Ok(())), step("clippy", &[], |_| Ok(()))];
        let error = Selection::of(&table, &["clipy"]).unwrap_err();
        assert_eq!(error.to_string(), "there is no step `clipy`; the steps are format, clippy");
    }

    #[test]
    fn a_failure_blocks_what_needs_it_and_nothing_else() {
        let table = [
            step("broken", &[], |_| bail!("no disk")),
            step("needs it", &["broken"], |_| Ok(())),
            step("needs that", &["needs it"], |_| Ok(())),
            step("apart", &[], |_| Ok(())),
        ];
        let outcomes = run(&Workspace::locate().unwrap(), &table, &Selection::all(&table));
        let verdicts: Vec<&Verdict> = outcomes.iter().map(|outcome| &outcome.verdict).collect();
        let broken = Verdict::Failed("no disk".into());
        let expected =
            [&broken, &Verdict::Blocked("broken"), &Verdict::Blocked("needs it"), &Verdict::Passed];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn every_command_of_a_step_runs_even_after_a_failure() {
        let work = Work::Commands(vec![
            Invocation::new("halite-missing-1", &[], "-"),
            Invocation::cargo(&["--version"]),
            Invocation::new("halite-missing-2", &[], "-"),
        ]);
        let text = work.run(&Workspace::locate().unwrap()).unwrap_err().to_string();
        assert!(text.contains("halite-missing-1") && text.contains("halite-missing-2"), "{text}");
        assert!(!text.contains("--version"), "{text}");
    }
}
