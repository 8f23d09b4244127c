//! The oracle, and the CPU backend in each tier, against node tests of ONNX.
//!
//! `HALITE_ONNX_DIR` names another folder of fixtures.

use halite_cpu::{Cpu, Options, Tier};
use halite_parity::{Fault, Verdict, onnx};
use std::path::{Path, PathBuf};

fn tiers() -> Result<Vec<Cpu>, Fault> {
    Ok(Tier::available()
        .map(|tier| Cpu::new(Options::default().tier(tier).threads(2)))
        .collect::<Result<_, _>>()?)
}

#[test]
fn onnx_node_tests() -> Verdict {
    let folder = std::env::var_os("HALITE_ONNX_DIR").map_or_else(onnx::fixtures, PathBuf::from);
    println!("{}: {}", folder.display(), onnx::run(&tiers()?, &folder)?);
    Ok(())
}

#[test]
fn onnx_folders_without_fixtures_fail() -> Verdict {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert!(onnx::run::<Cpu>(&[], &source).is_err_and(|fault| fault.0.contains("no fixtures")));
    assert!(onnx::run::<Cpu>(&[], &source.join("nowhere")).is_err());
    Ok(())
}

#[test]
fn onnx_files_are_judged_and_none_is_lost() -> Verdict {
    let counts = onnx::run::<Cpu>(&[], &onnx::fixtures())?;
    assert_eq!(counts.total(), 82, "{counts}");
    Ok(())
}
