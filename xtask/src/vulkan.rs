//! The wgpu backend's tests, on Vulkan drivers that compute on the CPU: they need no GPU, and what one of them forgives
//! the other does not.

use anyhow::{Context, Result, bail};

use crate::command::Invocation;
use crate::requirements::{VULKAN, system};
use crate::workspace::Workspace;

/// Checks for the drivers, and installs them where it may.
pub(crate) fn drivers(workspace: &Workspace) -> Result<()> {
    VULKAN.iter().try_for_each(|driver| system(workspace.root(), driver).map(drop))
}

/// What runs of the parity suite on a driver: everything, or the groups whose names hold one of these words. SwiftShader
/// compiles far more slowly than Mesa's driver, so it judges edges, known breakages and errors of every family; `cargo test -p
/// halite-wgpu` with `VK_DRIVER_FILES` runs all of it.
fn groups(driver: &str) -> &'static [&'static str] {
    if driver.contains("swiftshader") { &["device", "edges", "known", "errors"] } else { &[] }
}

/// The tests on each driver, whatever other adapters this machine has.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let manifests = VULKAN.iter().map(|driver| system(root, driver)).collect::<Result<Vec<_>>>()?;
    let on = |manifest: &str, what: &[&str], groups: &[&str]| {
        let cargo = ["test", "--package", "halite-wgpu", "--no-fail-fast"];
        // With CI=true, nothing passes for want of an adapter. The drivers share a dispatch among all cores by themselves:
        // two tests at once would wait for each other.
        Invocation::cargo(&[&cargo, what, &["--"], groups].concat())
            .env("VK_DRIVER_FILES", manifest)
            .env("CI", "true")
            .env("RUST_TEST_THREADS", "1")
            .run(root)
            .with_context(|| format!("with the driver {manifest}"))
    };
    let results = manifests.iter().flat_map(|manifest| {
        // The suite's tests are in a module of that name.
        let others = on(manifest, &["--lib", "--tests"], &["--skip", "wgpu::"]);
        [others, on(manifest, &["--test", "parity"], groups(manifest))]
    });
    let failures: Vec<String> =
        results.filter_map(|result| result.err().map(|error| format!("{error:#}"))).collect();
    if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("; ")) }
}
