//! Running cases: whole suites, one group as a test, or the one case that a failure named.

use crate::{
    case::{Failure, Group},
    invariance,
};
use halite_hal::Error;
use halite_kernels::Backend;

/// Selects one case, by the name that its failure printed; other tests then run nothing and say so.
pub const CASE_VARIABLE: &str = "HALITE_PARITY_CASE";

/// All groups of all families, [`invariance`] apart.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    macro_rules! all {
        ($($family:ident: $($group:ident)*;)*) => { [$(crate::$family::groups()),*] };
    }
    crate::families!([all]).into_iter().flatten().collect()
}

/// Every case of every operator; [`invariance::suite`] is for those who claim it.
///
/// # Errors
/// The first failure.
pub fn suite<B: Backend>(device: &B) -> Result<(), Failure> {
    groups::<B>().iter().try_for_each(|group| group.run_all(device))
}

/// Runs one case again: `name` is `family/group/number`, as a failure prints it.
///
/// # Errors
/// The case's failure, or no such case.
pub fn repeat<B: Backend>(device: &B, name: &str) -> Result<(), Failure> {
    let mut parts = name.split('/');
    let (family, group, number) = (parts.next(), parts.next(), parts.next().and_then(|n| n.parse().ok()));
    let all = groups::<B>().into_iter().chain(invariance::groups());
    let found = all.into_iter().find(|g| Some(g.family) == family && Some(g.name) == group);
    match (found, number) {
        (Some(group), Some(number)) => group.run(device, number),
        _ => Err(outside(name, "no such case; expected family/group/number".into())),
    }
}

/// What [`parity_tests!`](crate::parity_tests) needs to know of the test that it made.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The operator's family.
    pub family: &'static str,
    /// The group.
    pub group: &'static str,
    /// The package of the test.
    pub package: &'static str,
    /// Its module, from the crate on.
    pub module: &'static str,
}

impl Test {
    /// The command that runs one case of this test.
    fn command(&self, number: &str) -> String {
        let Test { family, group, package, module } = self;
        let path = module.split_once("::").map_or("", |(_, path)| path);
        format!(
            "{CASE_VARIABLE}={family}/{group}/{number} cargo test -p {package} -- --exact {path}::{group}"
        )
    }
}

/// [`run_test`] on a device that asks for instructions: a processor without them judges nothing, and no set-up would change
/// that, so the test passes wherever it runs and says that nothing ran.
///
/// # Errors
/// As [`run_test`].
pub fn run_test_if_able<B: Backend>(device: Result<Option<B>, Error>, test: Test) -> Result<(), Failure> {
    if matches!(device, Ok(None)) {
        eprintln!("NOT RUN: {}/{}: this processor lacks the instructions", test.family, test.group);
        return Ok(());
    }
    run_test(device, test)
}

/// [`run_test`] for a backend that has not begun some families, `FAMILY`, or groups, `FAMILY/GROUP`.
///
/// # Errors
/// As [`run_test`].
pub fn run_test_of_begun<B: Backend>(
    (without, device): (&[&str], Result<Option<B>, Error>),
    test: Test,
) -> Result<(), Failure> {
    let name = format!("{}/{}", test.family, test.group);
    if without.contains(&test.family) || without.contains(&name.as_str()) {
        eprintln!("NOT JUDGED: {name}: the backend has not begun it");
        return Ok(());
    }
    run_test(device, test)
}

/// Runs one group as a test; `device` is `None` where the machine cannot have it.
///
/// # Errors
/// The group's first failure, with the command that repeats it; a device that is missing or selected away where
/// `CI=true`, because nothing may be skipped there.
pub fn run_test<B: Backend>(device: Result<Option<B>, Error>, test: Test) -> Result<(), Failure> {
    let name = format!("{}/{}", test.family, test.group);
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let skip = |why: String| {
        eprintln!("NOT RUN: {name}: {why}");
        if ci { Err(outside(&name, format!("not run although CI=true: {why}"))) } else { Ok(()) }
    };
    let device = match device {
        Ok(Some(device)) => device,
        Ok(None) => return skip("this machine has no such device".into()),
        Err(error) => return Err(outside(&name, format!("no device: {error}"))),
    };
    if let Ok(selected) = std::env::var(CASE_VARIABLE) {
        if !selected.strip_prefix(&name).is_some_and(|rest| rest.starts_with('/')) {
            return skip(format!("{CASE_VARIABLE} selects {selected}"));
        }
        return repeat(&device, &selected);
    }
    let mut all = groups::<B>().into_iter().chain(invariance::groups());
    let Some(group) = all.find(|group| group.family == test.family && group.name == test.group) else {
        return Err(outside(&name, "there is no such group".into()));
    };
    group.run_all(&device).inspect_err(|failure| {
        let number = failure.name.rsplit('/').next().unwrap_or_default();
        eprintln!("repeat with: {}", test.command(number));
    })
}

fn outside(name: &str, fault: String) -> Failure {
    Failure { name: name.into(), case: "none was run".into(), fault }
}
