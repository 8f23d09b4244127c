//! Evidence from outside: the oracle, and the CPU backend in each tier, against node tests of ONNX.
//!
//! `HALITE_ONNX_DIR` names another folder of fixtures. Every file of it is run, unless a rule of `rules.rs` says what of it
//! the contracts do not express.

mod attention;
mod cache;
mod fixture;
mod quantized;
mod rows;
mod rules;

use fixture::Fixture;
use halite_cpu::{Cpu, Options, Tier};
use halite_parity::{Fault, Verdict, tolerance::Bound};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// How the fixtures of one ONNX operator are judged.
struct Runner {
    /// The operator.
    op: &'static str,
    /// The oracle against the published answer.
    oracle: fn(&Fixture) -> Verdict,
    /// A device against it.
    device: fn(&Cpu, &Fixture) -> Verdict,
}

const RUNNERS: &[Runner] = &[
    Runner { op: "Attention", oracle: attention::oracle, device: attention::device },
    Runner {
        op: "DynamicQuantizeLinear",
        oracle: quantized::dynamic_oracle,
        device: quantized::dynamic_device,
    },
    Runner { op: "MatMulInteger", oracle: quantized::matmul_oracle, device: quantized::matmul_device },
    Runner {
        op: "QLinearMatMul",
        oracle: quantized::requantized_oracle,
        device: quantized::requantized_device,
    },
    Runner { op: "RMSNormalization", oracle: rows::rms_oracle, device: rows::rms_device },
    Runner { op: "RotaryEmbedding", oracle: rows::rope_oracle, device: rows::rope_device },
    Runner { op: "Softmax", oracle: rows::softmax_oracle, device: rows::softmax_device },
    Runner { op: "TensorScatter", oracle: |_| Ok(()), device: cache::scatter },
    Runner { op: "TopK", oracle: rows::top_k_oracle, device: rows::top_k_device },
];

/// Published values, themselves F32, with twice the oracle's bound: theirs and ours.
fn around(published: &[f64], expected: &[Bound]) -> Vec<Bound> {
    let both = published.iter().zip(expected);
    both.map(|(&value, expected)| Bound { value, error: 2.0 * expected.error }).collect()
}

/// What became of a folder: files run by operator, files excluded by reason.
#[derive(Debug, Default)]
struct Counts {
    run: BTreeMap<String, usize>,
    excluded: BTreeMap<String, usize>,
}

impl Counts {
    fn total(counts: &BTreeMap<String, usize>) -> usize {
        counts.values().sum()
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let entries = fs::read_dir(folder).map_err(|error| Fault(format!("{}: {error}", folder.display())))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(|error| Fault(error.to_string()))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    if paths.is_empty() {
        return Err(Fault(format!("{}: no fixtures (*.safetensors)", folder.display())));
    }
    Ok(paths)
}

fn run(folder: &Path) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    for path in files(folder)? {
        let fixture = Fixture::open(&path)?;
        if let Some(reason) = rules::excluded(&fixture) {
            *counts.excluded.entry(format!("{}: {reason}", fixture.op)).or_default() += 1;
            continue;
        }
        let Some(runner) = RUNNERS.iter().find(|runner| runner.op == fixture.op) else {
            return Err(Fault(format!(
                "{}: nothing judges {}, and no rule excludes it",
                fixture.name, fixture.op
            )));
        };
        let told = |who: String| {
            let name = fixture.name.clone();
            move |Fault(fault)| Fault(format!("{name}, {who}: {fault}"))
        };
        (runner.oracle)(&fixture).map_err(told("the oracle".into()))?;
        for tier in Tier::available() {
            let cpu = Cpu::new(Options::default().tier(tier).threads(2))?;
            (runner.device)(&cpu, &fixture).map_err(told(tier.to_string()))?;
        }
        *counts.run.entry(fixture.op).or_default() += 1;
    }
    Ok(counts)
}

#[test]
fn onnx_node_tests() -> Verdict {
    let copied = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/onnx");
    let folder = std::env::var_os("HALITE_ONNX_DIR").map_or(copied, PathBuf::from);
    let counts = run(&folder)?;
    println!(
        "{}: {} run, {} excluded",
        folder.display(),
        Counts::total(&counts.run),
        Counts::total(&counts.excluded)
    );
    for (op, count) in &counts.run {
        println!("  {count:3} run       {op}");
    }
    for (reason, count) in &counts.excluded {
        println!("  {count:3} excluded  {reason}");
    }
    Ok(())
}

#[test]
fn onnx_folders_without_fixtures_fail() -> Verdict {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert!(run(&source).is_err_and(|fault| fault.0.contains("no fixtures")));
    assert!(run(&source.join("nowhere")).is_err());
    Ok(())
}

/// A rule that excludes nothing of the copied files is a rule that nobody tried.
#[test]
fn onnx_files_are_judged_and_none_is_lost() -> Verdict {
    let counts = run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/onnx"))?;
    for runner in RUNNERS {
        assert!(counts.run.contains_key(runner.op), "no fixture of {}", runner.op);
    }
    assert_eq!(Counts::total(&counts.run) + Counts::total(&counts.excluded), 82, "{counts:?}");
    Ok(())
}
