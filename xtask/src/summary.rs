//! The texts printed before and after a run.

use std::fmt::Write;
use std::time::Duration;

use crate::runner::{Outcome, Step, Verdict, Work};

/// The table of steps for `--list`.
pub(crate) fn listing(table: &[Step]) -> String {
    let mut text = String::new();
    for step in table {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<19} {}", step.name, step.proves);
        if let Work::Commands(commands) = &step.work {
            for command in commands {
                let _ = writeln!(text, "{:<19}   $ {command}", "");
            }
        }
    }
    text
}

/// True if every selected step passed.
pub(crate) fn all_passed(outcomes: &[Outcome<'_>]) -> bool {
    outcomes.iter().all(|outcome| outcome.verdict == Verdict::Passed)
}

/// Steps with their times, the reasons of the failures, and the line of totals.
pub(crate) fn text(outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::from("\n==> summary\n");
    for outcome in outcomes {
        let word = match outcome.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "FAILED",
            Verdict::Blocked(_) => "NOT RUN",
        };
        let _ = writeln!(
            text,
            "    {:<19} {word:<8} {:>12}   {}",
            outcome.step.name,
            duration(outcome.took),
            outcome.step.proves
        );
    }
    for outcome in outcomes {
        let name = outcome.step.name;
        let _ = match &outcome.verdict {
            Verdict::Passed => Ok(()),
            Verdict::Failed(why) => writeln!(text, "    {name}: {why}"),
            Verdict::Blocked(by) => writeln!(text, "    {name}: it cannot run without `{by}`, which failed"),
        };
    }
    let passed = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Passed).count();
    let failed = outcomes.len() - passed;
    let total = duration(outcomes.iter().map(|outcome| outcome.took).sum());
    let _ = writeln!(text, "{passed} passed, {failed} failed ({total})");
    text
}

fn duration(took: Duration) -> String {
    let tenths = (took.as_millis() + 50) / 100;
    let (minutes, tenths) = (tenths / 600, tenths % 600);
    let seconds = format!("{}.{} s", tenths / 10, tenths % 10);
    if minutes > 0 { format!("{minutes} min {seconds}") } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str) -> Step {
        Step { name, proves: "it holds", needs: &[], set_up: false, work: Work::Function(|_| Ok(())) }
    }

    #[test]
    fn the_summary_counts_what_could_not_run_as_failed() {
        let (good, bad, blocked) = (step("format"), step("model"), step("test"));
        let outcomes = [
            Outcome { step: &good, verdict: Verdict::Passed, took: Duration::from_millis(1_200) },
            Outcome {
                step: &bad,
                verdict: Verdict::Failed("no network".into()),
                took: Duration::from_secs(61),
            },
            Outcome { step: &blocked, verdict: Verdict::Blocked("model"), took: Duration::ZERO },
        ];
        let text = text(&outcomes);
        assert!(text.contains("    model: no network\n"), "{text}");
        assert!(text.contains("    test: it cannot run without `model`, which failed\n"), "{text}");
        assert!(text.ends_with("\n1 passed, 2 failed (1 min 2.2 s)\n"), "{text}");
        assert!(!all_passed(&outcomes));
        assert!(all_passed(&outcomes[..1]));
    }

    #[test]
    fn durations_carry_into_minutes() {
        let shown = |millis| duration(Duration::from_millis(millis));
        assert_eq!([shown(0), shown(949), shown(59_940)], ["0.0 s", "0.9 s", "59.9 s"]);
        assert_eq!([shown(59_960), shown(3_723_000)], ["1 min 0.0 s", "62 min 3.0 s"]);
    }
}
