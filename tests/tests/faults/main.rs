//! The judge, judged: an exact device passes, and each deliberate fault turns the suite red.

mod activation;
mod attention;
mod cache;
mod collectives;
mod device;
mod embedding;
mod experts;
mod fault;
mod grouped;
mod linear;
mod logits;
mod mla;
mod moe;
mod norm;
mod quantize;
mod rope;
mod sampling;
mod top_k;

use device::Exact;
use fault::FAULTS;
use halite_hal::Error;
use halite_parity::{Group, groups, invariance, parity_tests, repeat};
use std::collections::BTreeSet;

fn exact() -> Result<Exact, Error> {
    Ok(Exact::sound())
}

parity_tests!(invariant sound, exact());

fn all() -> Vec<Group<Exact>> {
    groups().into_iter().chain(invariance::groups()).collect()
}

/// One test a group, so that they run side by side, and one of them alone.
macro_rules! every_fault_turns_its_groups_red {
    ($($family:ident: $($group:ident)*;)*) => {
        /// The families that tests were made for.
        const FAMILIES: &[&str] = &[$(stringify!($family)),*];

        mod every_fault_turns_its_groups_red {
            $(
                mod $family {
                    use crate::{faults_are_noticed, sound::$family::GROUPS};
                    $(
                        #[test]
                        fn $group() {
                            faults_are_noticed(stringify!($family), stringify!($group), GROUPS);
                        }
                    )*
                }
            )*
        }
    };
}

halite_parity::families!(invariance[halite_parity::families][every_fault_turns_its_groups_red]);

/// The group can fail, and fails by each of its faults; `tested` are the groups of its family that tests were made for.
fn faults_are_noticed(family: &str, group: &str, tested: &[&str]) {
    let groups: Vec<Group<Exact>> = all().into_iter().filter(|group| group.family == family).collect();
    let made: BTreeSet<&str> = groups.iter().map(|group| group.name).collect();
    assert_eq!(made, tested.iter().copied().collect(), "the groups of {family}, and those that are tests");
    assert!(is_tried(family, group), "no fault is tried against {family}/{group}");
    let mut missed = Vec::new();
    for &(fault, names) in FAULTS {
        for name in names.iter().filter_map(|name| name.strip_prefix(family)?.strip_prefix('/')) {
            assert!(made.contains(name), "{fault:?}: there is no {family}/{name}");
            let group = groups.iter().find(|made| made.name == name && name == group);
            if group.is_some_and(|group| group.run_all(&Exact::with(fault)).is_ok()) {
                missed.push(fault);
            }
        }
    }
    assert!(missed.is_empty(), "faults that {family}/{group} does not notice: {missed:?}");
}

/// Whether a fault is there to be found by this group.
fn is_tried(family: &str, group: &str) -> bool {
    // Their faults would be in the shared checks of the contracts, or in the device itself.
    let elsewhere = ["errors", "tensors", "busy"];
    // They run the bodies of the family's other groups.
    let repeats = ["random", "group_wise_random", "lora_random", "views", "supports"];
    let mut faults = FAULTS.iter().flat_map(|(_, names)| *names).filter_map(|name| name.split_once('/'));
    elsewhere.contains(&group)
        || faults.any(|(of, name)| of == family && (name == group || repeats.contains(&group)))
}

#[test]
fn every_fault_is_in_a_family_of_tests() {
    for (fault, names) in FAULTS {
        for name in *names {
            let family = name.split('/').next().unwrap_or_default();
            assert!(FAMILIES.contains(&family), "{fault:?}: no test runs {name}");
        }
    }
}

#[test]
fn a_failure_names_the_line_that_repeats_it() {
    let faulty = Exact::with(fault::Fault::LinearTailOfK);
    let all = all();
    for name in ["linear/edges", "linear/random"] {
        let group = all.iter().find(|group| format!("{}/{}", group.family, group.name) == name);
        let failure =
            group.and_then(|group| group.run_all(&faulty).err()).expect("a lost element is noticed");
        let text = failure.to_string();
        let line = text.lines().find(|line| line.contains("repeat with")).expect("a line that repeats it");
        assert!(line.contains(&format!("halite_parity::repeat(&device, {:?})", failure.name)), "{line}");
        // The line does what it says: the same failure, and none on a sound device.
        let again = repeat(&faulty, &failure.name).expect_err("the same case fails again");
        assert_eq!(again.to_string(), text);
        repeat(&Exact::sound(), &failure.name).expect("the sound device passes the case");
    }
    assert!(repeat(&faulty, "linear/edges").is_err() && repeat(&faulty, "nothing/at/1").is_err());
    assert!(repeat(&faulty, "linear/edges/999999").is_err());
}
