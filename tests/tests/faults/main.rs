//! The judge, judged: an exact device passes, and each deliberate fault turns the suite red.

mod activation;
mod attention;
mod cache;
mod collectives;
mod device;
mod embedding;
mod fault;
mod grouped;
mod linear;
mod linear_group_wise;
mod logits;
mod lora;
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

fn exact() -> Result<Exact, Error> {
    Ok(Exact::sound())
}

parity_tests!(invariant sound, exact());

fn all() -> Vec<Group<Exact>> {
    groups().into_iter().chain(invariance::groups()).collect()
}

/// One test a family, so that they run side by side, and one of them alone.
macro_rules! every_fault_turns_its_groups_red {
    ($($family:ident)*) => {
        /// The families that tests were made for.
        const FAMILIES: &[&str] = &[$(stringify!($family)),*];

        mod every_fault_turns_its_groups_red {
            $(
                #[test]
                fn $family() {
                    super::faults_are_noticed(stringify!($family));
                }
            )*
        }
    };
}

every_fault_turns_its_groups_red!(
    activation attention cache collectives embedding grouped invariance linear logits mla moe norm quantize rope sampling top_k
);

fn faults_are_noticed(family: &str) {
    let groups: Vec<Group<Exact>> = all().into_iter().filter(|group| group.family == family).collect();
    let mut missed = Vec::new();
    for &(fault, names) in FAULTS {
        for name in names.iter().filter_map(|name| name.strip_prefix(family)?.strip_prefix('/')) {
            // A group that does not exist notices nothing.
            let group = groups.iter().find(|group| group.name == name);
            if group.is_none_or(|group| group.run_all(&Exact::with(fault)).is_ok()) {
                missed.push(format!("{fault:?} in {family}/{name}"));
            }
        }
    }
    assert!(missed.is_empty(), "faults that nothing noticed: {missed:#?}");
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
fn every_group_finds_a_fault() {
    // Groups whose faults would be in the shared checks of the contracts, or in the device itself.
    let elsewhere = ["errors", "tensors", "busy"];
    for group in all() {
        let name = format!("{}/{}", group.family, group.name);
        let family = format!("{}/", group.family);
        let named = FAULTS.iter().any(|(_, names)| names.contains(&name.as_str()));
        let random = ["random", "group_wise_random", "lora_random", "views", "supports"]
            .contains(&group.name)
            && FAULTS.iter().any(|(_, names)| names.iter().any(|name| name.starts_with(&family)));
        assert!(named || random || elsewhere.contains(&group.name), "no fault is tried against {name}");
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

#[test]
fn the_macro_makes_a_test_of_every_group() {
    let made: Vec<String> = [
        ("activation", sound::activation::GROUPS),
        ("attention", sound::attention::GROUPS),
        ("cache", sound::cache::GROUPS),
        ("collectives", sound::collectives::GROUPS),
        ("device", sound::device::GROUPS),
        ("embedding", sound::embedding::GROUPS),
        ("grouped", sound::grouped::GROUPS),
        ("invariance", sound::invariance::GROUPS),
        ("linear", sound::linear::GROUPS),
        ("logits", sound::logits::GROUPS),
        ("mla", sound::mla::GROUPS),
        ("moe", sound::moe::GROUPS),
        ("norm", sound::norm::GROUPS),
        ("quantize", sound::quantize::GROUPS),
        ("rope", sound::rope::GROUPS),
        ("sampling", sound::sampling::GROUPS),
        ("top_k", sound::top_k::GROUPS),
    ]
    .into_iter()
    .flat_map(|(family, groups)| groups.iter().map(move |group| format!("{family}/{group}")))
    .collect();
    let listed: Vec<String> = all().iter().map(|group| format!("{}/{}", group.family, group.name)).collect();
    for name in &listed {
        assert!(made.contains(name), "parity_tests! leaves out {name}");
    }
    assert_eq!(made.len(), listed.len());
}
