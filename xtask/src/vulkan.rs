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

/// The tests on each driver, whatever other adapters this machine has.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let manifests = VULKAN.iter().map(|driver| system(root, driver)).collect::<Result<Vec<_>>>()?;
    let results = manifests.iter().map(|manifest| {
        // With CI=true, nothing passes for want of an adapter.
        Invocation::cargo(&["test", "--package", "halite-wgpu", "--no-fail-fast", "--lib", "--tests"])
            .env("VK_DRIVER_FILES", manifest)
            .env("CI", "true")
            // The drivers share a dispatch among all cores by themselves; two at once wait for each other.
            .env("RUST_TEST_THREADS", "1")
            .run(root)
            .with_context(|| format!("with the driver {manifest}"))
    });
    let failures: Vec<String> =
        results.filter_map(|result| result.err().map(|error| format!("{error:#}"))).collect();
    if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("; ")) }
}
