//! How far a long task has come: bars on a terminal, now and then a line elsewhere; on standard error.

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines of one stage, where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Between two turns of a spinner.
const TICK: Duration = Duration::from_millis(120);

/// Where progress is shown. Cloning gives another handle to the same place.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// None: lines.
    bars: Option<MultiProgress>,
}

/// What a stage counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Runs,
    Lines,
}

impl Progress {
    /// Progress on standard error.
    pub(crate) fn stderr() -> Self {
        Self { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Begins a stage of `total` units; `None` where nobody knows.
    pub(crate) fn stage(&self, title: &str, unit: Unit, total: Option<u64>) -> Stage {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(total.map_or_else(ProgressBar::new_spinner, ProgressBar::new));
            bar.set_style(style(unit, total));
            bar.set_message(title.to_owned());
            bar.enable_steady_tick(TICK);
            bar
        });
        if bar.is_none() {
            line(title);
        }
        Stage { bar, title: title.to_owned(), unit, total, told: Instant::now() }
    }

    /// Standard error for others: what they write does not run into the bars.
    pub(crate) fn writer(&self) -> impl Write + use<> {
        BetweenBars(self.clone())
    }
}

/// A stage under way. The bar vanishes when it is dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    bar: Option<ProgressBar>,
    title: String,
    unit: Unit,
    total: Option<u64>,
    told: Instant,
}

impl Stage {
    /// Says how much there is, once that is known.
    pub(crate) fn expect(&mut self, total: u64) {
        if self.total == Some(total) {
            return;
        }
        self.total = Some(total);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_style(style(self.unit, self.total));
        }
    }

    /// Says how much is done.
    pub(crate) fn set(&mut self, done: u64) {
        match &self.bar {
            Some(bar) => bar.set_position(done),
            None if self.told.elapsed() >= BETWEEN_LINES => {
                line(&format!("{}: {}", self.title, amount(self.unit, done, self.total)));
                self.told = Instant::now();
            }
            None => {}
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(unit: Unit, total: Option<u64>) -> ProgressStyle {
    let template = match (unit, total) {
        (Unit::Bytes, Some(_)) => "{msg} [{bar:30}] {bytes}/{total_bytes} {eta}",
        (_, Some(_)) => "{msg} [{bar:30}] {pos}/{len}",
        (Unit::Bytes, None) => "{spinner} {msg} {bytes} {elapsed}",
        (_, None) => "{spinner} {msg} {elapsed}",
    };
    // The templates above are right; the default bar is the answer to one that is not.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

fn amount(unit: Unit, done: u64, total: Option<u64>) -> String {
    let count = |count: u64| match unit {
        Unit::Bytes => HumanBytes(count).to_string(),
        Unit::Runs | Unit::Lines => count.to_string(),
    };
    let name = match unit {
        Unit::Bytes => "",
        Unit::Runs => " runs",
        Unit::Lines => " lines",
    };
    match total {
        Some(total) => format!("{} of {}{name}", count(done), count(total)),
        None => format!("{}{name}", count(done)),
    }
}

/// One line on standard error; without one there is nobody to tell.
pub(crate) fn line(text: &str) {
    _ = writeln!(std::io::stderr(), "{text}");
}

struct BetweenBars(Progress);

impl Write for BetweenBars {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &self.0.bars {
            Some(bars) => bars.suspend(|| std::io::stderr().write(bytes)),
            None => std::io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_their_units() {
        assert_eq!(amount(Unit::Bytes, 1 << 20, Some(3 << 20)), "1.00 MiB of 3.00 MiB");
        assert_eq!(amount(Unit::Runs, 2, Some(5)), "2 of 5 runs");
        assert_eq!(amount(Unit::Lines, 7, None), "7 lines");
    }
}
