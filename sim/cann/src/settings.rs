//! Version profiles and injected faults. They change what is refused and what fails, never a number.

use std::ffi::c_char;
use std::sync::Mutex;

use crate::foreign;
use crate::runtime::device::is_initialized;
use crate::runtime::error::{Failure, INVALID_PARAM, answer, lock};

/// Which documents the operators' limits come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Profile {
    /// The documents of 2025-11: the narrower limits.
    V8_3,
    /// Those of 2026-08.
    V9_0,
}

/// Faults to come; counts go down, and 1 is the next.
#[derive(Clone, Debug)]
struct Faults {
    malloc: u64,
    event: u64,
    launch: u64,
    stall: u64,
    hidden: Vec<String>,
}

impl Faults {
    const NONE: Self = Self { malloc: 0, event: 0, launch: 0, stall: 0, hidden: Vec::new() };
}

struct Settings {
    profile: Option<Profile>,
    faults: Option<Faults>,
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings { profile: None, faults: None });

fn parse_profile(name: &str) -> Result<Profile, Failure> {
    match name {
        "8.3" => Ok(Profile::V8_3),
        "9.0" => Ok(Profile::V9_0),
        _ => Err(Failure::new(INVALID_PARAM, format!("profile `{name}`, there are `8.3` and `9.0`"))),
    }
}

fn parse_faults(text: &str) -> Result<Faults, Failure> {
    let mut faults = Faults::NONE;
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let unknown = || {
            let allowed = "malloc=N, event=N, launch=N, stall=N, hide=NAME";
            Failure::new(INVALID_PARAM, format!("fault `{item}`, there are {allowed}"))
        };
        let (kind, value) = item.split_once('=').ok_or_else(unknown)?;
        let number = value.parse::<u64>().map_err(|_| unknown());
        match kind {
            "malloc" => faults.malloc = number?,
            "event" => faults.event = number?,
            "launch" => faults.launch = number?,
            "stall" => faults.stall = number?,
            "hide" => faults.hidden.push(value.to_owned()),
            _ => return Err(unknown()),
        }
    }
    Ok(faults)
}

/// What the environment says where no function did, once, at `aclInit`.
pub(crate) fn read_environment() -> Result<(), Failure> {
    let mut settings = lock(&SETTINGS);
    if settings.profile.is_none() {
        let name = std::env::var("HALITE_CANN_PROFILE").unwrap_or_else(|_| "9.0".to_owned());
        settings.profile = Some(parse_profile(&name)?);
    }
    if settings.faults.is_none() {
        settings.faults = Some(parse_faults(&std::env::var("HALITE_CANN_FAULT").unwrap_or_default())?);
    }
    Ok(())
}

/// As before the first call.
pub(crate) fn reset() {
    *lock(&SETTINGS) = Settings { profile: None, faults: None };
}

/// The profile in force.
pub(crate) fn profile() -> Profile {
    lock(&SETTINGS).profile.unwrap_or(Profile::V9_0)
}

/// The faults that are counted.
pub(crate) enum Counted {
    Malloc,
    Event,
    Launch,
    Stall,
}

/// Counts one; true if this is the one that fails.
pub(crate) fn strikes(counted: Counted) -> bool {
    let mut settings = lock(&SETTINGS);
    let Some(faults) = &mut settings.faults else { return false };
    let count = match counted {
        Counted::Malloc => &mut faults.malloc,
        Counted::Event => &mut faults.event,
        Counted::Launch => &mut faults.launch,
        Counted::Stall => &mut faults.stall,
    };
    let now = *count == 1;
    *count = count.saturating_sub(1);
    now
}

/// True if an older CANN is played that lacks the operator.
pub(crate) fn hides(name: &str) -> bool {
    lock(&SETTINGS).faults.as_ref().is_some_and(|faults| faults.hidden.iter().any(|hidden| hidden == name))
}

/// This library's own: chooses the documents, `8.3` or `9.0`, before `aclInit`. 0, or CANN's code for a wrong parameter.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn halite_cann_profile(name: *const c_char) -> i32 {
    let choose = || {
        if is_initialized() {
            return Err(Failure::new(INVALID_PARAM, "a profile is chosen before aclInit"));
        }
        lock(&SETTINGS).profile = Some(parse_profile(&foreign::text(name).unwrap_or_default())?);
        Ok(())
    };
    answer("halite_cann_profile", choose())
}

/// This library's own: faults to come, comma between them; an empty text or null takes them back. `malloc=N`: the N-th
/// allocation from now has no memory. `event=N`: there is no N-th event. `launch=N`: the N-th launch ends in an AI core
/// exception that stays with its stream. `stall=N`: the N-th launch does not end before its stream does. `hide=NAME`: that
/// operator is not installed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn halite_cann_fault(faults: *const c_char) -> i32 {
    let inject = || {
        lock(&SETTINGS).faults = Some(parse_faults(&foreign::text(faults).unwrap_or_default())?);
        Ok(())
    };
    answer("halite_cann_fault", inject())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, alone, message};

    #[test]
    fn unknown_settings_are_refused() {
        let _alone = alone();
        assert_eq!(halite_cann_profile(c"7.0".as_ptr()), INVALID_PARAM);
        assert_eq!(message(), "halite_cann_profile: profile `7.0`, there are `8.3` and `9.0`");
        assert_eq!(halite_cann_fault(c"malloc=x".as_ptr()), INVALID_PARAM);
        assert_eq!(halite_cann_fault(c"rain=1".as_ptr()), INVALID_PARAM);
        reset();
    }

    #[test]
    fn a_profile_is_chosen_before_the_beginning() {
        let _session = Session::new();
        assert_eq!(halite_cann_profile(c"8.3".as_ptr()), INVALID_PARAM);
        assert_eq!(profile(), Profile::V9_0);
    }

    #[test]
    fn a_count_strikes_once() {
        let _session = Session::new();
        assert_eq!(halite_cann_fault(c"malloc=2,hide=aclnnSwiGlu".as_ptr()), 0);
        assert!(!strikes(Counted::Malloc));
        assert!(strikes(Counted::Malloc));
        assert!(!strikes(Counted::Malloc));
        assert!(hides("aclnnSwiGlu") && !hides("aclnnRmsNorm"));
    }
}
