//! `halite kernels precompile`, and models on the CUDA backend, interpreted; with NVIDIA's compiler in the library path:
//! `cargo xtask cuda` brings it and runs these tests.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests: outside of test functions too")]

mod support;

use support::Place;

#[test]
fn kernels_are_compiled_into_a_folder() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("made/here");
    let said =
        place.halite(&["kernels", "precompile", "--arch", "sm_80", "--out", out.to_str().unwrap()]).success();
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap()).collect();
    let programs = halite_cuda::programs().len();
    assert_eq!(files.len(), programs);
    assert!(files.iter().all(|file| file.metadata().unwrap().len() > 500));
    assert!(said.starts_with(&format!("{programs} programs for sm_80, ")), "{said}");
}

#[test]
fn what_cannot_be_is_said() {
    let place = Place::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().to_str().unwrap();
    place.halite(&["kernels", "precompile", "--arch", "sm_80", "--out", file]).failure(&[file]);
    place.halite(&["kernels", "precompile", "--arch", "volta", "--out", "x"]).usage(&["volta", "--arch"]);
}

#[cfg(feature = "cuda-sim")]
mod interpreted {
    use super::support::{Place, json};

    #[test]
    fn without_a_compiler_the_error_says_what_to_do() {
        let place = Place::new();
        let model = place.model();
        let halite = |arguments: &[&str]| {
            let mut command = place.command(arguments);
            super::support::Outcome::of(command.env_remove("LD_LIBRARY_PATH").output().unwrap())
        };
        let devices = halite(&["devices", "--json"]).success();
        if !json(&devices)[2]["missing"].to_string().contains("NVRTC") {
            eprintln!("NOT RUN: this system has an NVRTC that is found without a library path");
            return;
        }
        let run = ["run", "-m", &model, "--device", "cuda-sim", "A"];
        halite(&run).failure(&["NVRTC was not found", "nvidia-cuda-nvrtc"]);
    }
}
