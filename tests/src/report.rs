//! The report on a backend: what runs natively, what is composed or refused, and how near to its bounds each operator
//! comes, with the line that repeats the worst case.

use crate::{
    case::{Failure, Group},
    ledger::{self, Ledger},
};
use halite_kernels::{Backend, Support};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write};

/// How a backend did in every group of cases it was given.
///
/// ```
/// use halite_cpu::{Cpu, Options};
/// use halite_parity::{Report, groups};
///
/// # fn main() -> halite_hal::Result<()> {
/// # let quick = |group: &halite_parity::Group<Cpu>| group.family == "quantize";
/// # let groups = || groups().into_iter().filter(quick).collect::<Vec<_>>();
/// let report = Report::of(&Cpu::new(Options::default())?, &groups(), |_| {});
/// assert!(report.passed(), "{}", report.markdown());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The device, as it names itself.
    pub device: String,
    /// What each group found, in their order.
    pub groups: Vec<GroupReport>,
}

/// What one group of cases found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupReport {
    /// The operator's family.
    pub family: &'static str,
    /// The group.
    pub group: &'static str,
    /// Cases that ran.
    pub cases: usize,
    /// Cases whose every specification runs by a kernel of the backend's own, or that ask for none.
    pub native: usize,
    /// Cases with a specification that is composed of other operators.
    pub composed: usize,
    /// Cases with a specification that the backend refuses, and refused.
    pub refused: usize,
    /// Of what is composed, and why something is refused; each text once.
    pub reasons: BTreeSet<String>,
    /// The case whose answer came nearest to its bound, where bounds were compared.
    pub worst: Option<Worst>,
    /// The cases that went wrong.
    pub failures: Vec<Failure>,
}

/// The largest error of a group.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Worst {
    /// The error, as a share of what is allowed: right answers have at most 1.
    pub share: f64,
    /// The case's name, `family/group/number`, as [`repeat`](crate::repeat) takes it.
    pub case: String,
}

impl Report {
    /// Runs every case of `groups`; `progress` is told of each group when it is done.
    pub fn of<B: Backend + 'static>(
        device: &B,
        groups: &[Group<B>],
        mut progress: impl FnMut(&GroupReport),
    ) -> Self {
        let info = device.info();
        let run = |group| {
            let report = GroupReport::of(device, group);
            progress(&report);
            report
        };
        let groups = groups.iter().map(run).collect();
        Report { device: format!("{} {}, {}", info.backend, info.name, info.tier), groups }
    }

    /// Whether no case went wrong.
    pub fn passed(&self) -> bool {
        self.groups.iter().all(|group| group.failures.is_empty())
    }

    /// Cases that ran.
    pub fn cases(&self) -> usize {
        self.groups.iter().map(|group| group.cases).sum()
    }

    /// A table for people.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{} cases, ", self.device, self.cases());
        let failed: usize = self.groups.iter().map(|group| group.failures.len()).sum();
        // Writing to a string cannot fail.
        _ = writeln!(text, "{}.\n", if failed == 0 { "all right".into() } else { format!("{failed} WRONG") });
        text += "| group | cases | native | composed | refused | wrong | worst error, of what is allowed |\n";
        text += "|---|---|---|---|---|---|---|\n";
        for group in &self.groups {
            let GroupReport { family, group: name, cases, native, composed, refused, .. } = group;
            let worst = group
                .worst
                .as_ref()
                .map_or_else(String::new, |worst| format!("{:.3} in `{}`", worst.share, worst.case));
            let wrong = group.failures.len();
            _ = writeln!(
                text,
                "| {family}/{name} | {cases} | {native} | {composed} | {refused} | {wrong} | {worst} |"
            );
        }
        let reasons: BTreeSet<_> = self.groups.iter().flat_map(|group| &group.reasons).collect();
        if !reasons.is_empty() {
            text += "\nComposed or refused:\n\n";
            reasons.iter().for_each(|reason| _ = writeln!(text, "- {reason}"));
        }
        for failure in self.groups.iter().flat_map(|group| &group.failures) {
            _ = writeln!(text, "\n```text\n{failure}\n```");
        }
        text += "\n`halite_parity::repeat(&device, \"family/group/number\")` runs one case again.\n";
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let groups: Vec<Value> = self.groups.iter().map(GroupReport::json).collect();
        json!({ "device": self.device, "passed": self.passed(), "cases": self.cases(), "groups": groups })
    }
}

impl GroupReport {
    fn of<B: Backend + 'static>(device: &B, group: &Group<B>) -> Self {
        let mut report = GroupReport {
            family: group.family,
            group: group.name,
            cases: group.numbers.len(),
            native: 0,
            composed: 0,
            refused: 0,
            reasons: BTreeSet::new(),
            worst: None,
            failures: Vec::new(),
        };
        for &number in &group.numbers {
            ledger::begin();
            let outcome = group.run(device, number);
            report.count(ledger::begin(), number);
            report.failures.extend(outcome.err());
        }
        report
    }

    fn count(&mut self, Ledger { worst, supports }: Ledger, number: u64) {
        let mut rank = 0;
        for support in supports {
            let (worse, reason) = match support {
                Support::Native => continue,
                Support::Composed(of) => (1, format!("{}: composed: {of}", self.family)),
                Support::No(why) => (2, format!("{}: refused: {why}", self.family)),
                other => (2, format!("{}: {other:?}", self.family)),
            };
            rank = rank.max(worse);
            self.reasons.insert(reason);
        }
        *match rank {
            0 => &mut self.native,
            1 => &mut self.composed,
            _ => &mut self.refused,
        } += 1;
        if let Some(share) = worst
            && self.worst.as_ref().is_none_or(|before| share > before.share)
        {
            let case = format!("{}/{}/{number}", self.family, self.group);
            self.worst = Some(Worst { share, case });
        }
    }

    fn json(&self) -> Value {
        let worst = self.worst.as_ref().map(|Worst { share, case }| json!({ "share": share, "case": case }));
        let failures: Vec<Value> = self
            .failures
            .iter()
            .map(|Failure { name, case, fault }| json!({ "name": name, "case": case, "fault": fault }))
            .collect();
        json!({
            "family": self.family,
            "group": self.group,
            "cases": self.cases,
            "native": self.native,
            "composed": self.composed,
            "refused": self.refused,
            "reasons": self.reasons,
            "worst": worst,
            "failures": failures,
        })
    }
}
