//! Machines without NVRTC: what was precompiled runs there, and what was not is an error that says what to do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use std::{env, path::Path, process::Command};

use halite_cuda::{
    compile::{Architecture, CompileError, Compiler, Options, nvrtc_version, precompile},
    programs,
};

/// Names the folder to the process that has no library path.
const FOLDER: &str = "HALITE_TEST_PRECOMPILED";

#[test]
fn precompiled_kernels_need_no_nvrtc() {
    if let Some(folder) = env::var_os(FOLDER) {
        return without_nvrtc(folder.as_ref());
    }
    if nvrtc_version().is_none() {
        return not_run("NVRTC was not found (`cargo xtask cuda` brings it)");
    }
    let folder = tempfile::tempdir().unwrap();
    let made = precompile(&programs()[..1], Architecture::OLDEST, folder.path()).unwrap();
    assert_eq!(made.len(), 1);
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "precompiled_kernels_need_no_nvrtc", "--nocapture"])
        .env(FOLDER, folder.path())
        .env_remove("LD_LIBRARY_PATH")
        .status()
        .unwrap();
    assert!(status.success());
}

fn without_nvrtc(folder: &Path) {
    if nvrtc_version().is_some() {
        return not_run("this system has an NVRTC that is found without a library path");
    }
    let programs = programs();
    let compiler = Compiler::new(Options::default().precompiled(folder).cache(folder.join("cache")));
    let image = compiler.cubin(&programs[0], Architecture::OLDEST).unwrap();
    assert!(image.bytes().starts_with(b"\x7fELF"));

    let error = compiler.cubin(&programs[1], Architecture::OLDEST).unwrap_err();
    assert!(matches!(error, CompileError::NotPrecompiled { .. }));
    let text = error.to_string();
    let remedy = format!("halite kernels precompile --arch sm_80 --out {}", folder.display());
    assert!(text.contains(&programs[1].to_string()) && text.contains(&remedy), "{text}");

    let error = Compiler::new(Options::default()).cubin(&programs[0], Architecture::OLDEST).unwrap_err();
    assert!(matches!(error, CompileError::NvrtcMissing { .. }));
    assert!(error.to_string().contains("nvidia-cuda-nvrtc"), "{error}");
}

fn not_run(why: &str) {
    eprintln!("NOT RUN: precompiled kernels: {why}");
    assert!(!env::var("CI").is_ok_and(|value| value == "true"), "not run although CI=true");
}
