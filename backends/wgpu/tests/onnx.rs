//! The wgpu backend against node tests of ONNX.

use halite_parity::{Verdict, onnx};
use halite_wgpu::{Options, Wgpu};

#[test]
fn onnx_node_tests() -> Verdict {
    let counts = onnx::run(&[Wgpu::new(Options::default())?], &onnx::fixtures())?;
    println!("{counts}");
    Ok(())
}
