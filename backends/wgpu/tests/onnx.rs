//! The wgpu backend against node tests of ONNX.

use halite_parity::{Verdict, onnx};
use halite_wgpu::{Options, Wgpu, adapters};

#[test]
fn onnx_node_tests() -> Verdict {
    if adapters().iter().all(|adapter| adapter.lacks.is_some()) {
        eprintln!("NOT RUN: this machine has no adapter that can be used");
        assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "not run although CI=true");
        return Ok(());
    }
    let counts = onnx::run(&[Wgpu::new(Options::default())?], &onnx::fixtures())?;
    println!("{counts}");
    Ok(())
}
