//! Every test, benchmark, example and program of the workspace, compiled once for all steps.
//!
//! Cargo unites features over the packages that one command names: `--package halite-wgpu` compiles the kernels again that
//! `--workspace` has compiled, and optimised kernels take minutes. So the steps compile everything with one pair of
//! commands, which do nothing the second time, and start the files themselves.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::Invocation;
use crate::cuda;
use crate::runner::every;
use crate::workspace::{Workspace, text};

const TESTS: &[&str] =
    &["test", "--workspace", "--all-features", "--no-run", "--lib", "--bins", "--tests", "--benches"];
const EXAMPLES: &[&str] = &["build", "--workspace", "--all-features", "--examples"];
/// The example that is a step of its own.
const REPORT: &str = "report";
const AS_JSON: &[&str] = &["--message-format", "json-render-diagnostics"];

/// What a file of machine code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tests of a library, a program or a file in `tests/`, with their harness.
    Test,
    /// A benchmark.
    Bench,
    /// An example.
    Example,
    /// A program that people run.
    Program,
}

/// A file of machine code, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Executable {
    pub(crate) package: String,
    /// The target's name.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    file: PathBuf,
    /// The package's folder, where cargo would start it.
    folder: PathBuf,
    /// How cargo would be asked to compile and start it.
    command: String,
}

impl Executable {
    /// Runs it where cargo would.
    pub(crate) fn run(&self, arguments: &[&str], environment: &[(&'static str, &str)]) -> Result<()> {
        let mut invocation =
            Invocation::at(self.file.clone().into(), text(&self.file)?, arguments, "it was deleted");
        for (name, value) in environment {
            invocation = invocation.env(name, *value);
        }
        invocation.run(&self.folder).with_context(|| format!("`{}`", self.command))
    }

    fn of(message: &Value) -> Option<Self> {
        let file = PathBuf::from(message["executable"].as_str()?);
        let target = &message["target"];
        let (name, made) = (target["name"].as_str()?, target["kind"][0].as_str()?);
        let (kind, chosen) = match (made, message["profile"]["test"].as_bool()?) {
            ("bench", _) => (Kind::Bench, format!("--bench {name}")),
            ("example", false) => (Kind::Example, format!("--example {name}")),
            ("bin", false) => (Kind::Program, format!("--bin {name}")),
            ("bin", true) => (Kind::Test, format!("--bin {name}")),
            ("test", true) => (Kind::Test, format!("--test {name}")),
            (_, true) => (Kind::Test, "--lib".to_owned()),
            (_, false) => return None,
        };
        // `…/folder#name@version`, or `…/name#version`.
        let (source, rest) = message["package_id"].as_str()?.split_once('#')?;
        let package =
            rest.split_once('@').map_or_else(|| source.rsplit('/').next(), |(name, _)| Some(name))?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let verb = if matches!(kind, Kind::Program | Kind::Example) { "run" } else { "test" };
        let command = format!("cargo {verb} --package {package} --all-features {chosen}");
        Some(Self { package: package.to_owned(), name: name.to_owned(), kind, file, folder, command })
    }
}

/// The executables of a kind, compiled where they are not.
pub(crate) fn all(workspace: &Workspace, kind: Kind) -> Result<Vec<Executable>> {
    let commands = if kind == Kind::Example { EXAMPLES } else { TESTS };
    let printed = Invocation::cargo(&[commands, AS_JSON].concat()).capture_stdout(workspace.root())?;
    let executables: Vec<_> = String::from_utf8(printed)?
        .lines()
        .filter_map(|line| Executable::of(&serde_json::from_str(line).ok()?))
        .filter(|executable| executable.kind == kind)
        .collect();
    if executables.is_empty() {
        bail!("cargo compiled nothing of the kind {kind:?}")
    }
    Ok(executables)
}

/// The one executable of this kind and name.
pub(crate) fn one(workspace: &Workspace, kind: Kind, name: &str) -> Result<Executable> {
    let found = all(workspace, kind)?.into_iter().find(|executable| executable.name == name);
    found.with_context(|| format!("there is no {kind:?} `{name}`"))
}

/// Compiles everything.
pub(crate) fn everything(workspace: &Workspace) -> Result<()> {
    let (tests, examples) = (all(workspace, Kind::Test)?, all(workspace, Kind::Example)?);
    eprintln!("    {} files of tests, {} examples", tests.len(), examples.len());
    Ok(())
}

/// The step `model`.
pub(crate) fn pull(workspace: &Workspace, model: &str) -> Result<()> {
    one(workspace, Kind::Program, "halite")?.run(&["pull", model], &[])
}

/// The step `test`: all but the tests of the wgpu backend, which choose a driver, those of CUDA, which need a compiler, and those
/// of the Ascend backend, which run twice.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let mut tests = all(workspace, Kind::Test)?;
    tests.retain(|test| {
        !["halite-wgpu", "halite-ascend"].contains(&test.package.as_str()) && !cuda::is_one(test)
    });
    every(tests.iter().map(|test| test.run(&[], &[])))
}

/// The step `benches`: one round each.
pub(crate) fn benches(workspace: &Workspace) -> Result<()> {
    every(all(workspace, Kind::Bench)?.iter().map(|bench| bench.run(&["--test"], &[])))
}

/// The step `report`.
pub(crate) fn report(workspace: &Workspace) -> Result<()> {
    one(workspace, Kind::Example, REPORT)?.run(&[], &[])
}

/// The step `examples`: all others.
pub(crate) fn examples(workspace: &Workspace) -> Result<()> {
    let examples = all(workspace, Kind::Example)?;
    let others = examples.iter().filter(|example| example.name != REPORT);
    every(others.map(|example| example.run(&[], &[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, kind: &str, name: &str, test: bool) -> Value {
        serde_json::json!({
            "reason": "compiler-artifact", "package_id": id, "manifest_path": "/h/backends/cpu/Cargo.toml",
            "target": { "kind": [kind], "name": name }, "profile": { "test": test }, "executable": "/t/file",
        })
    }

    #[test]
    fn an_executable_is_known_by_what_cargo_says_of_it() {
        let cpu = "path+file:///h/backends/cpu#halite-cpu@0.3.0";
        for (id, kind, name, test, expected) in [
            (cpu, "lib", "halite_cpu", true, "cargo test --package halite-cpu --all-features --lib"),
            (cpu, "cdylib", "halite_cpu", true, "cargo test --package halite-cpu --all-features --lib"),
            (cpu, "test", "edges", true, "cargo test --package halite-cpu --all-features --test edges"),
            (cpu, "bench", "norm", true, "cargo test --package halite-cpu --all-features --bench norm"),
            (cpu, "bin", "tool", true, "cargo test --package halite-cpu --all-features --bin tool"),
            (cpu, "bin", "tool", false, "cargo run --package halite-cpu --all-features --bin tool"),
            (
                "path+file:///h/xtask#0.3.0",
                "example",
                "e",
                false,
                "cargo run --package xtask --all-features --example e",
            ),
        ] {
            let executable = Executable::of(&message(id, kind, name, test)).unwrap();
            assert_eq!(executable.command, expected);
            assert_eq!(executable.folder, Path::new("/h/backends/cpu"));
        }
        assert!(Executable::of(&message(cpu, "custom-build", "build-script", false)).is_none());
        let mut library = message(cpu, "lib", "halite_cpu", false);
        library["executable"] = Value::Null;
        assert!(Executable::of(&library).is_none());
    }
}
