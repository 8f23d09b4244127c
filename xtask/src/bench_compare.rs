//! `cargo xtask bench-compare`: the benchmarks' medians beside those that the repository keeps.
//!
//! Criterion compares with the last run on the same disk; this compares with a file under version control, so that a
//! change shows in review. Times of different machines are not compared.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::command::Invocation;
use crate::workspace::{Workspace, text};

/// Medians that differ by less say nothing: machines wander that much.
const NOISE: f64 = 0.05;

/// A benchmark's median, and between what it lies with 95 %: nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Time {
    median: f64,
    low: f64,
    high: f64,
}

/// Medians by criterion's ids, and where they were taken.
#[derive(Debug, Default, PartialEq)]
struct Times {
    machine: String,
    commit: String,
    times: BTreeMap<String, Time>,
}

/// What `cargo xtask bench-compare` was asked for.
pub(crate) struct Asked<'a> {
    /// Only benchmarks with this in their id.
    pub(crate) filter: &'a str,
    /// Features of the benchmarks, one a backend.
    pub(crate) features: &'a str,
    /// Keeps the times instead of comparing them.
    pub(crate) save: bool,
}

/// Runs the benchmarks, and compares or keeps their times.
pub(crate) fn run(workspace: &Workspace, asked: &Asked<'_>) -> Result<()> {
    let root = workspace.root();
    let kept = root.join("benches").join("baseline.json");
    let machine = machine()?;
    let before = if kept.exists() { Times::read(&fs::read_to_string(&kept)?)? } else { Times::default() };
    if !asked.save {
        // Before the benchmarks, which take minutes.
        comparable(&before, &machine)?;
    }
    let results = workspace.target("bench-compare");
    // Only what this run measures.
    if results.exists() {
        fs::remove_dir_all(&results).with_context(|| results.display().to_string())?;
    }
    let cargo = ["bench", "--package", "halite-bench", "--no-default-features", "--features", asked.features];
    let filter: &[&str] = if asked.filter.is_empty() { &[] } else { &["--", asked.filter] };
    Invocation::cargo(&[&cargo, filter].concat()).env("CRITERION_HOME", text(&results)?).run(root)?;
    let commit =
        Invocation::new("git", &["log", "-1", "--format=%h of %cs"], "install git").capture_line(root)?;
    let mut now = Times { machine, commit, times: BTreeMap::new() };
    collect(&results, &mut now.times)?;
    if now.times.is_empty() {
        bail!("no benchmark has `{}` in its id", asked.filter);
    }
    if asked.save {
        fs::write(&kept, now.over(before).written()?).with_context(|| kept.display().to_string())?;
        eprintln!("    kept in {}", kept.display());
        return Ok(());
    }
    print!("{}", compared(&before, &now));
    Ok(())
}

impl Times {
    fn read(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("benches/baseline.json")?;
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let times = value["median_low_high_ns"].as_object().into_iter().flatten().filter_map(|(id, time)| {
            let at = |place: usize| time[place].as_f64();
            Some((id.clone(), Time { median: at(0)?, low: at(1)?, high: at(2)? }))
        });
        Ok(Self { machine: word("machine"), commit: word("commit"), times: times.collect() })
    }

    fn written(&self) -> Result<String> {
        let times: BTreeMap<&String, [f64; 3]> = self
            .times
            .iter()
            .map(|(id, time)| (id, [time.median, time.low, time.high].map(f64::round)))
            .collect();
        let value = json!({ "machine": self.machine, "commit": self.commit, "median_low_high_ns": times });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }

    /// These, and beside them what `before` has of the same machine and these lack.
    fn over(mut self, before: Self) -> Self {
        if before.machine == self.machine {
            for (id, time) in before.times {
                self.times.entry(id).or_insert(time);
            }
        }
        self
    }
}

fn comparable(before: &Times, machine: &str) -> Result<()> {
    let way = "check out the commit to compare with, and keep its times: cargo xtask bench-compare --save";
    if before.times.is_empty() {
        bail!("benches/baseline.json has no times yet: {way}");
    }
    if before.machine != machine {
        bail!(
            "benches/baseline.json is of `{}`, this is `{machine}`: times of different machines say nothing of the \
             code; {way}",
            before.machine
        );
    }
    Ok(())
}

/// What moved, the slower ones first; then what `before` lacks.
fn compared(before: &Times, now: &Times) -> String {
    let pairs = || now.times.iter().filter_map(|(id, now)| Some((id, before.times.get(id)?, now)));
    let moved = |before: &Time, now: &Time| {
        let apart = now.low > before.high || now.high < before.low;
        apart && (now.median / before.median - 1.0).abs() > NOISE
    };
    let mut rows: Vec<_> = pairs().filter(|(_, before, now)| moved(before, now)).collect();
    rows.sort_by(|a, b| (b.2.median / b.1.median).total_cmp(&(a.2.median / a.1.median)));
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (id, before, now) in &rows {
        let (change, word) =
            (now.median / before.median, if now.median > before.median { "slower" } else { "faster" });
        let _ = writeln!(
            text,
            "    {word} {change:5.2} x  {:>10} -> {:>10}  {id}",
            duration(before.median),
            duration(now.median)
        );
    }
    let both = pairs().count();
    let _ = writeln!(text, "{} of {both} moved against {}", rows.len(), before.commit);
    let new = now.times.keys().filter(|id| !before.times.contains_key(*id)).count();
    if new > 0 {
        let _ = writeln!(text, "{new} are new: `--save` keeps them");
    }
    text
}

/// Every `new/estimates.json` below a folder, with the id that lies beside it.
fn collect(folder: &Path, times: &mut BTreeMap<String, Time>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let estimates = path.join("estimates.json");
        if !path.ends_with("new") || !estimates.exists() {
            collect(&path, times)?;
            continue;
        }
        let read = |file: &Path| -> Result<Value> {
            serde_json::from_str(&fs::read_to_string(file)?).with_context(|| file.display().to_string())
        };
        let (id, value) = (read(&path.join("benchmark.json"))?, read(&estimates)?);
        let median = &value["median"];
        let interval = &median["confidence_interval"];
        let time = || {
            Some(Time {
                median: median["point_estimate"].as_f64()?,
                low: interval["lower_bound"].as_f64()?,
                high: interval["upper_bound"].as_f64()?,
            })
        };
        let (id, time) =
            id["full_id"].as_str().zip(time()).with_context(|| estimates.display().to_string())?;
        times.insert(id.to_owned(), time);
    }
    Ok(())
}

/// The processor and how many of its cores there are.
fn machine() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |name: &str| {
        let line = told.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value.trim())
    };
    Ok(format!("{}, family {}, model {}, {cores} cores", of("model name"), of("cpu family"), of("model")))
}

fn duration(nanoseconds: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let unit = units.into_iter().find(|(_, size)| nanoseconds >= *size);
    let (name, size) = unit.unwrap_or(("ns", 1.0));
    format!("{:.2} {name}", nanoseconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(machine: &str, times: &[(&str, f64)]) -> Times {
        let time = |&(id, median): &(&str, f64)| {
            (id.to_owned(), Time { median, low: median - 1.0, high: median + 1.0 })
        };
        let times = times.iter().map(time).collect();
        Times { machine: machine.into(), commit: "abc of today".into(), times }
    }

    #[test]
    fn what_moved_is_told_the_slower_first_and_noise_is_not() {
        let before = times("m", &[("a", 1000.0), ("b", 1000.0), ("c", 1000.0), ("d", 10.0), ("gone", 1.0)]);
        let now = times("m", &[("a", 1040.0), ("b", 500.0), ("c", 2_000.0), ("d", 11.0), ("new", 1.0)]);
        let text = compared(&before, &now);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].trim(), "slower  2.00 x     1.00 us ->    2.00 us  c");
        assert_eq!(lines[1].trim(), "faster  0.50 x     1.00 us ->  500.00 ns  b");
        assert_eq!(lines[2..], ["2 of 4 moved against abc of today", "1 are new: `--save` keeps them"]);
    }

    #[test]
    fn no_times_and_those_of_another_machine_are_refused() {
        let of_m = times("m", &[("a", 1.0)]);
        assert!(comparable(&of_m, "m").is_ok());
        let error = comparable(&of_m, "n").unwrap_err().to_string();
        assert!(error.contains("`m`") && error.contains("`n`") && error.contains("--save"), "{error}");
        let error = comparable(&Times::default(), "n").unwrap_err().to_string();
        assert!(error.contains("no times yet") && error.contains("--save"), "{error}");
    }

    #[test]
    fn what_is_kept_is_read_again_and_outlives_a_partial_run() {
        let whole = times("m", &[("a", 5.0), ("b", 6.0)]);
        assert_eq!(Times::read(&whole.written().unwrap()).unwrap(), whole);
        assert_eq!(
            times("m", &[("a", 7.0)]).over(times("m", &[("a", 5.0), ("b", 6.0)])).times["b"].median,
            6.0
        );
        assert_eq!(times("n", &[("a", 7.0)]).over(whole).times.len(), 1);
    }

    #[test]
    fn criterions_files_are_found_with_their_ids() {
        let root = tempfile::tempdir().unwrap();
        for (folder, median) in [("group/x/new", 3.0), ("group/x/base", 9.0), ("report", 0.0)] {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            if median == 0.0 {
                continue;
            }
            let interval = json!({ "lower_bound": 2.0, "upper_bound": 4.0 });
            let estimates =
                json!({ "median": { "point_estimate": median, "confidence_interval": interval } });
            fs::write(folder.join("estimates.json"), estimates.to_string()).unwrap();
            fs::write(folder.join("benchmark.json"), json!({ "full_id": "group/x" }).to_string()).unwrap();
        }
        let mut found = BTreeMap::new();
        collect(root.path(), &mut found).unwrap();
        assert_eq!(
            found,
            BTreeMap::from([("group/x".to_owned(), Time { median: 3.0, low: 2.0, high: 4.0 })])
        );
    }
}
