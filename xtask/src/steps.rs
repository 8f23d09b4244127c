//! The table of steps that `cargo xtask test` runs.
//!
//! No step has a way to skip itself: what cannot run has failed and says why, on every machine.

use crate::built::{CARGO_DENY, CARGO_SEMVER_CHECKS};
use crate::command::Invocation;
use crate::runner::{Step, Work};
use crate::{
    ascend, compiled, consumer, cuda, deny, files, installed, package, peers, requirements, rust_version,
    semver, vulkan,
};

/// The name that `halite pull` knows the model of the golden tests by.
const MODEL: &str = "smollm2-135m";

/// The crates that people link or install, each of which must build without its siblings' features.
pub(crate) const PUBLISHED: &[&str] = &[
    "halite-hal",
    "halite-kernels",
    "halite-cpu",
    "halite-wgpu",
    "halite-ptx",
    "halite-cuda",
    "halite-ascend",
    "halite",
    "halite-engine",
    "halite-server",
    "halite-parity",
];

/// All steps, cheap ones first. A step comes after the steps it needs.
pub(crate) fn table() -> Vec<Step> {
    vec![
        Step {
            name: "tools",
            proves: "rustfmt, clippy, Python with pip and venv, npm, git and tar are installed",
            needs: &[],
            set_up: true,
            work: Work::Function(requirements::tools),
        },
        Step {
            name: "files",
            proves: "small files, nothing unfinished or ignored, unsafe only where allowed, types that can grow, \
                     every operator in every room and table, links that lead somewhere",
            needs: &[],
            set_up: false,
            work: Work::Function(files::check),
        },
        Step {
            name: "rust-version",
            proves: "every crate promises the Rust version that is tested",
            needs: &["tools"],
            set_up: false,
            work: Work::Function(rust_version::check),
        },
        cargo(
            "fmt",
            "rustfmt's form",
            &["tools"],
            &[
                &["fmt", "--all", "--check"],
                &["fmt", "--manifest-path", "xtask/consumer/Cargo.toml", "--check"],
                &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"],
            ],
        ),
        cargo(
            "clippy",
            "no warning of rustc or clippy in any target with all features",
            &["tools"],
            &[
                &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
                &["clippy", "--manifest-path", "fuzz/Cargo.toml", "--all-features", "--", "-D", "warnings"],
            ],
        ),
        Step {
            name: "build",
            proves: "every test, benchmark, example and program compiles, with all features",
            needs: &["tools"],
            set_up: true,
            work: Work::Function(compiled::everything),
        },
        Step {
            name: "model",
            proves: "the default model is fetched, verified and cached",
            needs: &["build"],
            set_up: true,
            work: Work::Function(|workspace| compiled::pull(workspace, MODEL)),
        },
        Step {
            name: "peers",
            proves: "what the tests compare with is there: Python packages, tokenizers of other models",
            needs: &["tools"],
            set_up: true,
            work: Work::Function(peers::set_up),
        },
        Step {
            name: "vulkan-drivers",
            proves: "two Vulkan drivers that compute on the CPU are installed: Mesa's and SwiftShader's",
            needs: &["tools"],
            set_up: true,
            work: Work::Function(vulkan::drivers),
        },
        Step {
            name: "cuda-compiler",
            proves: "NVIDIA's compiler is there, as Python packages",
            needs: &["tools"],
            set_up: true,
            work: Work::Function(cuda::compiler),
        },
        Step {
            name: "ascend-tools",
            proves: "libclang and the headers of CANN that are public are there, as Python packages",
            needs: &["tools"],
            set_up: true,
            work: Work::Function(ascend::tools),
        },
        Step {
            name: "test",
            proves: "unit, parity, property and golden tests",
            needs: &["model", "peers", "vulkan-drivers"],
            set_up: false,
            work: Work::Function(compiled::test),
        },
        Step {
            name: "wgpu",
            proves: "the wgpu backend's tests, on either driver",
            needs: &["build", "vulkan-drivers"],
            set_up: false,
            work: Work::Function(vulkan::test),
        },
        Step {
            name: "cuda",
            proves: "every CUDA kernel compiles for every architecture, with the instructions and within the registers \
                     it should have; the operators, on the interpreter in the place of a GPU",
            needs: &["build", "cuda-compiler"],
            set_up: false,
            work: Work::Function(cuda::test),
        },
        Step {
            name: "ascend-header",
            proves: "the Ascend backend's bindings are made of its header, and the header agrees with CANN's acl/acl.h",
            needs: &["ascend-tools"],
            set_up: false,
            work: Work::Function(ascend::check),
        },
        Step {
            name: "ascend",
            proves: "the Ascend backend's tests on a stand-in for CANN, by CANN's documents of 2025-11 and of 2026-08",
            needs: &["build"],
            set_up: false,
            work: Work::Function(ascend::test),
        },
        Step {
            name: "report",
            proves: "what the CPU runs natively, how near it comes to its bounds, and how many cases say so",
            needs: &["build"],
            set_up: false,
            work: Work::Function(compiled::report),
        },
        cargo(
            "doctest",
            "the examples in the documentation compile and hold",
            &[],
            &[&["test", "--workspace", "--all-features", "--no-fail-fast", "--doc"]],
        ),
        Step {
            name: "benches",
            proves: "every benchmark runs once, and its answer is right",
            needs: &["build", "vulkan-drivers"],
            set_up: false,
            work: Work::Function(compiled::benches),
        },
        Step {
            name: "examples",
            proves: "every example runs, and its answer is right",
            needs: &["build"],
            set_up: false,
            work: Work::Function(compiled::examples),
        },
        Step {
            name: "alone",
            proves: "each published crate builds alone, with and without its default features",
            needs: &[],
            set_up: false,
            work: Work::Commands(each_alone(PUBLISHED)),
        },
        Step {
            name: "doc",
            proves: "the documentation builds without warnings",
            needs: &[],
            set_up: false,
            work: Work::Commands(vec![
                Invocation::cargo(&["doc", "--workspace", "--lib", "--all-features", "--no-deps"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            ]),
        },
        Step {
            name: "package",
            proves: "the tarballs of the published crates are whole, small, and build alone",
            needs: &["tools"],
            set_up: false,
            work: Work::Function(package::check),
        },
        Step {
            name: "consumer",
            proves: "a crate outside the workspace links the tarballs, gets right answers and no server with them",
            needs: &["package"],
            set_up: false,
            work: Work::Function(consumer::check),
        },
        Step {
            name: "install",
            proves: "`cargo install --path server` gives a program that answers",
            needs: &[],
            set_up: false,
            work: Work::Function(installed::check),
        },
        Step {
            name: "cargo-semver-checks",
            proves: "cargo-semver-checks is built",
            needs: &[],
            set_up: true,
            work: Work::Function(|workspace| CARGO_SEMVER_CHECKS.build(workspace)),
        },
        Step {
            name: "semver",
            proves: "no public item changed more than the version says",
            needs: &["tools", "cargo-semver-checks"],
            set_up: false,
            work: Work::Function(semver::check),
        },
        Step {
            name: "cargo-deny",
            proves: "cargo-deny is built",
            needs: &[],
            set_up: true,
            work: Work::Function(|workspace| CARGO_DENY.build(workspace)),
        },
        Step {
            name: "deny",
            proves: "licences, bans and sources of every dependency are allowed",
            needs: &["cargo-deny"],
            set_up: false,
            work: Work::Function(deny::check),
        },
    ]
}

fn cargo(
    name: &'static str,
    proves: &'static str,
    needs: &'static [&'static str],
    commands: &[&[&str]],
) -> Step {
    let commands = commands.iter().map(|arguments| Invocation::cargo(arguments)).collect();
    Step { name, proves, needs, set_up: false, work: Work::Commands(commands) }
}

/// `-p` alone matters: a workspace build unites features, and hides one that a crate forgot to ask for.
fn each_alone(packages: &[&str]) -> Vec<Invocation> {
    let one = |package| {
        [
            Invocation::cargo(&["check", "--package", package]),
            Invocation::cargo(&["check", "--package", package, "--no-default-features"]),
        ]
    };
    packages.iter().flat_map(|package| one(package)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::runner::Selection;

    #[test]
    fn names_are_distinct_and_every_need_comes_earlier() {
        let mut earlier = BTreeSet::new();
        for step in table() {
            for need in step.needs {
                assert!(earlier.contains(need), "{} needs {need}, which does not come earlier", step.name);
            }
            assert!(earlier.insert(step.name), "two steps are called {}", step.name);
        }
    }

    #[test]
    fn set_up_needs_no_check() {
        let table = table();
        let set_up: Vec<&str> = table.iter().filter(|step| step.set_up).map(|step| step.name).collect();
        assert_eq!(Selection::of(&table, &set_up).unwrap(), Selection::set_up(&table));
    }

    #[test]
    fn every_crate_that_may_be_published_is_listed() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let metadata = Invocation::cargo(&["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: serde_json::Value =
            serde_json::from_slice(&metadata.capture(root.as_ref()).unwrap()).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        // `publish = false` is an empty list of registries.
        let published = packages.iter().filter(|package| package["publish"].is_null());
        let names: BTreeSet<&str> = published.map(|package| package["name"].as_str().unwrap()).collect();
        assert_eq!(names, PUBLISHED.iter().copied().collect());
    }

    #[test]
    fn every_published_crate_is_checked_both_ways() {
        let lines: Vec<String> = each_alone(&["halite-hal"]).iter().map(ToString::to_string).collect();
        let expected =
            ["cargo check --package halite-hal", "cargo check --package halite-hal --no-default-features"];
        assert_eq!(lines, expected);
        assert_eq!(each_alone(PUBLISHED).len(), 2 * PUBLISHED.len());
    }
}
