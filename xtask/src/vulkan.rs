//! The wgpu backend's tests, on Vulkan drivers that compute on the CPU: they need no GPU, and what one of them forgives
//! the other does not.

use anyhow::{Context, Result};

use crate::compiled::{self, Kind};
use crate::requirements::{Program, VULKAN, system};
use crate::runner::every;
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
    let mut tests = compiled::all(workspace, Kind::Test)?;
    tests.retain(|test| test.package == "halite-wgpu");
    let on = |driver: &Program| {
        let manifest = system(workspace.root(), driver)?;
        // With CI=true, nothing passes for want of an adapter.
        let environment = [("VK_DRIVER_FILES", manifest.as_str()), ("CI", "true")];
        every(tests.iter().map(|test| {
            let groups = if test.name == "parity" { groups(&manifest) } else { &[] };
            test.run(groups, &environment)
        }))
        .with_context(|| format!("with the driver {manifest}"))
    };
    every(VULKAN.iter().map(on))
}
