//! `cargo xtask fuzz`: libFuzzer over everything that Halite reads from strangers; see fuzz/README.md.

use crate::built::CARGO_FUZZ;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// Seconds and megabytes after which an input is a finding.
const SLOW_SECONDS: u32 = 10;
const LARGE_MEGABYTES: u32 = 2048;

/// Runs the targets, all where none is named, for some minutes each; `false`: something was found.
pub(crate) fn run(workspace: &Workspace, targets: &[String], minutes: u64) -> Result<bool> {
    let folder = workspace.root().join("fuzz");
    let all = targets_of(&folder)?;
    if let Some(unknown) = targets.iter().find(|target| !all.contains(target)) {
        bail!("no fuzz target `{unknown}`; there are {}", all.join(", "));
    }
    CARGO_FUZZ.build(workspace)?;
    let mut sound = true;
    for target in all.iter().filter(|target| targets.is_empty() || targets.contains(target)) {
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let (corpus, seeds) = (shown(&corpus), shown(&folder.join("seeds").join(target)));
        let limits = [
            format!("-max_total_time={}", minutes * 60),
            format!("-timeout={SLOW_SECONDS}"),
            format!("-rss_limit_mb={LARGE_MEGABYTES}"),
            "-max_len=65536".to_owned(),
            "-print_final_stats=1".to_owned(),
        ];
        let mut arguments = vec!["run", "-s", "none", "--fuzz-dir", "fuzz"];
        if target == "request" {
            arguments.extend(["--features", "server"]);
        }
        arguments.extend([target, &corpus, &seeds, "--"]);
        arguments.extend(limits.iter().map(String::as_str));
        eprintln!("==> {target}, {minutes} minutes");
        if let Err(error) = CARGO_FUZZ.command(workspace, &arguments).run(workspace.root()) {
            eprintln!("    {error:#}; see fuzz/artifacts/{target}");
            sound = false;
        }
    }
    Ok(sound)
}

/// The names of the files in `fuzz/targets`.
fn targets_of(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(folder.join("targets"))? {
        let path = file?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
