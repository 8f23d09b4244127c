//! `cargo xtask mutants`: deliberate faults in the kernels themselves, each of which must turn the parity suite red.
//!
//! The judge's own faults (`tests/tests/faults`) show that the suite notices; these show that it looks at the kernels. A
//! copy of the workspace is changed, one line at a time, and judged in the portable tier, whose source all tiers share.

mod list;

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::Invocation;
use crate::workspace::Workspace;
use list::{MUTATIONS, Mutation};

const KERNELS: &str = "backends/cpu/src";
const TEST: [&str; 6] = ["test", "--profile", "quick", "--package", "halite-parity", "--test"];

/// Tries every mutation, or those of files that contain `only`; `false`: one was not noticed.
pub(crate) fn run(workspace: &Workspace, only: &str) -> Result<bool> {
    let tree = copied(workspace.root())?;
    let chosen: Vec<_> = MUTATIONS.iter().filter(|mutation| mutation.file.contains(only)).collect();
    if chosen.is_empty() {
        bail!("no mutation of a file with `{only}` in its name");
    }
    let mut groups: Vec<String> = chosen.iter().map(|mutation| filter(mutation)).collect();
    groups.sort_unstable();
    groups.dedup();
    eprintln!("==> {} mutations; first, what they must turn red is green", chosen.len());
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    judged(&groups).run(&tree)?;
    let mut survivors = Vec::new();
    for (number, mutation) in chosen.iter().enumerate() {
        eprintln!("==> {} of {}: {}: {}", number + 1, chosen.len(), mutation.file, mutation.to);
        if survives(&tree, mutation)? {
            eprintln!("    SURVIVED: {} did not notice", mutation.noticed_by);
            survivors.push(mutation);
        }
    }
    println!("{} of {} mutations were noticed", chosen.len() - survivors.len(), chosen.len());
    for Mutation { file, from, to, noticed_by } in &survivors {
        println!("survived: {file}: `{from}` as `{to}`, by {noticed_by}");
    }
    Ok(survivors.is_empty())
}

/// Whether the suite stays green with this mutation. One that does not compile proves nothing, and is an error.
fn survives(tree: &Path, mutation: &Mutation) -> Result<bool> {
    let path = tree.join(KERNELS).join(mutation.file);
    let sound = fs::read_to_string(&path)?;
    fs::write(&path, mutated(&sound, mutation)?)?;
    let compiled = judged(&["--list"]).capture(tree);
    let noticed = judged(&[&filter(mutation)]).capture(tree).is_err();
    fs::write(&path, sound)?;
    compiled.with_context(|| format!("{}: `{}` does not compile", mutation.file, mutation.to))?;
    Ok(!noticed)
}

fn mutated(sound: &str, Mutation { file, from, to, .. }: &Mutation) -> Result<String> {
    match sound.matches(from).count() {
        1 => Ok(sound.replacen(from, to, 1)),
        count => {
            bail!("{KERNELS}/{file}: `{from}` stands there {count} times; mend xtask/src/mutants/list.rs")
        }
    }
}

fn filter(mutation: &Mutation) -> String {
    format!("portable::{}", mutation.noticed_by)
}

fn judged(arguments: &[&str]) -> Invocation {
    Invocation::cargo(&[&TEST[..], &["cpu", "--"], arguments].concat())
        .env("CARGO_TARGET_DIR", "../build")
        .env("RUSTFLAGS", "--cap-lints allow")
}

/// The tracked files, in a folder of their own below `target`.
fn copied(root: &Path) -> Result<PathBuf> {
    let tree = root.join("target/mutants/tree");
    let listed = Invocation::new("git", &["ls-files", "-z"], "install git").capture(root)?;
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    for name in String::from_utf8(listed)?.split_terminator('\0') {
        let (from, to) = (root.join(name), tree.join(name));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(&from, &to).with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that is rewritten takes its mutations with it.
    #[test]
    fn every_mutation_changes_one_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(KERNELS);
        for mutation in MUTATIONS {
            let sound = fs::read_to_string(root.join(mutation.file)).unwrap();
            assert_ne!(mutated(&sound, mutation).unwrap(), sound, "{}", mutation.from);
        }
        assert!(MUTATIONS.len() >= 30);
    }
}
