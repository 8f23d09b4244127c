//! Cases: numbered, grouped by operator, and repeatable by the one line that a failure prints.
//!
//! A case's name is `family/group/number`. In a random group the number is the seed, and any number works.

use halite_hal::Error;
use std::fmt;

/// What is wrong, found inside a body; the runner adds which case it was.
#[derive(Clone, PartialEq, Eq)]
pub struct Fault(pub String);

/// What a body returns.
pub type Verdict = Result<(), Fault>;

/// A case without parameters: what it shows, and its body.
pub type Shown<B> = (&'static str, fn(&B) -> Verdict);

impl Fault {
    /// A fault of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Fault(text.into())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault(format!("an error where none was due: {error}"))
    }
}

/// `condition`, or the fault.
pub(crate) fn ensure(condition: bool, fault: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(Fault(fault())) }
}

/// A case that went wrong, with the line that repeats it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Failure {
    /// `family/group/number`.
    pub name: String,
    /// The case, as its `Debug` text.
    pub case: String,
    /// What went wrong.
    pub fault: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { name, case, fault } = self;
        writeln!(f, "{name}: {fault}")?;
        writeln!(f, "  case: {case}")?;
        write!(f, "  repeat with: halite_parity::repeat(&device, {name:?})")
    }
}

// The test harness prints errors by `Debug`, and the text is made for people.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Failure {}

type Run<B> = Box<dyn Fn(&B, u64) -> Result<(), Failure>>;

/// A named group of one operator's cases, for backend `B`.
#[non_exhaustive]
pub struct Group<B> {
    /// The operator's family.
    pub family: &'static str,
    /// The group's own name.
    pub name: &'static str,
    /// The cases that a suite runs.
    pub numbers: Vec<u64>,
    run: Run<B>,
}

impl<B: 'static> Group<B> {
    /// The listed cases, each handed to `body`.
    pub fn listed<C: fmt::Debug + 'static>(
        family: &'static str,
        name: &'static str,
        cases: Vec<C>,
        body: fn(&B, &C) -> Verdict,
    ) -> Self {
        let numbers = (0..cases.len() as u64).collect();
        let run = move |device: &B, number: u64| match cases.get(number as usize) {
            Some(case) => report(family, name, number, case, body(device, case)),
            None => {
                let fault = Fault(format!("there are {} cases", cases.len()));
                report(family, name, number, &"no such case", Err(fault))
            }
        };
        Group { family, name, numbers, run: Box::new(run) }
    }

    /// Cases made from seeds `0..seeds`.
    pub fn seeded<C: fmt::Debug + 'static>(
        family: &'static str,
        name: &'static str,
        seeds: u64,
        make: fn(u64) -> C,
        body: fn(&B, &C) -> Verdict,
    ) -> Self {
        let run = move |device: &B, seed: u64| {
            let case = make(seed);
            report(family, name, seed, &case, body(device, &case))
        };
        Group { family, name, numbers: (0..seeds).collect(), run: Box::new(run) }
    }

    /// Bodies without parameters, each with what it shows.
    pub fn bodies(family: &'static str, name: &'static str, bodies: Vec<Shown<B>>) -> Self {
        let numbers = (0..bodies.len() as u64).collect();
        let run = move |device: &B, number: u64| match bodies.get(number as usize) {
            Some((shows, body)) => report(family, name, number, shows, body(device)),
            None => {
                let fault = Fault(format!("there are {} cases", bodies.len()));
                report(family, name, number, &"no such case", Err(fault))
            }
        };
        Group { family, name, numbers, run: Box::new(run) }
    }

    /// Runs one case.
    ///
    /// # Errors
    /// The case's failure.
    pub fn run(&self, device: &B, number: u64) -> Result<(), Failure> {
        (self.run)(device, number)
    }

    /// Runs all cases.
    ///
    /// # Errors
    /// The first failure.
    pub fn run_all(&self, device: &B) -> Result<(), Failure> {
        self.numbers.iter().try_for_each(|&number| self.run(device, number))
    }
}

fn report(
    family: &str,
    group: &str,
    number: u64,
    case: &dyn fmt::Debug,
    verdict: Verdict,
) -> Result<(), Failure> {
    verdict.map_err(|Fault(fault)| Failure {
        name: format!("{family}/{group}/{number}"),
        case: format!("{case:?}"),
        fault,
    })
}
