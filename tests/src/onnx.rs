//! Evidence from outside: the oracle, and any backend, against node tests of ONNX.
//!
//! Every file of a folder is run, unless a rule of `onnx/rules.rs` says what of it the contracts do not express.

mod attention;
mod cache;
mod fixture;
mod quantized;
mod rows;
mod rules;

use crate::{Fault, Verdict, tolerance::Bound};
use fixture::Fixture;
use halite_kernels::Backend;
use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

/// How the fixtures of one ONNX operator are judged.
struct Runner<B> {
    /// The operator.
    op: &'static str,
    /// The oracle against the published answer.
    oracle: fn(&Fixture) -> Verdict,
    /// A device against it.
    device: fn(&B, &Fixture) -> Verdict,
}

fn runners<B: Backend>() -> [Runner<B>; 9] {
    [
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
    ]
}

/// Published values, themselves F32, with twice the oracle's bound: theirs and ours.
fn around(published: &[f64], expected: &[Bound]) -> Vec<Bound> {
    let both = published.iter().zip(expected);
    both.map(|(&value, expected)| Bound { value, error: 2.0 * expected.error }).collect()
}

/// What became of a folder: files run by operator, files excluded by reason.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Files that were run, by ONNX's operator.
    pub run: BTreeMap<String, usize>,
    /// Files that were not, by operator and reason.
    pub excluded: BTreeMap<String, usize>,
}

impl Counts {
    /// Files in all.
    pub fn total(&self) -> usize {
        self.run.values().chain(self.excluded.values()).sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, excluded) = (self.run.values().sum::<usize>(), self.excluded.values().sum::<usize>());
        writeln!(f, "{run} run, {excluded} excluded")?;
        self.run.iter().try_for_each(|(op, count)| writeln!(f, "  {count:3} run       {op}"))?;
        self.excluded.iter().try_for_each(|(reason, count)| writeln!(f, "  {count:3} excluded  {reason}"))
    }
}

/// The fixtures that come with this crate.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/onnx")
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

/// Runs a folder of fixtures (`*.safetensors`) on every one of `devices`.
///
/// # Errors
/// A folder without fixtures, one that nothing judges and no rule excludes, or an answer that is wrong.
pub fn run<B: Backend>(devices: &[B], folder: &Path) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    let runners = runners::<B>();
    for path in files(folder)? {
        let fixture = Fixture::open(&path)?;
        if let Some(reason) = rules::excluded(&fixture) {
            *counts.excluded.entry(format!("{}: {reason}", fixture.op)).or_default() += 1;
            continue;
        }
        let Some(runner) = runners.iter().find(|runner| runner.op == fixture.op) else {
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
        for device in devices {
            (runner.device)(device, &fixture).map_err(told(format!("{device:?}")))?;
        }
        *counts.run.entry(fixture.op).or_default() += 1;
    }
    // A rule that excludes all of an operator's files would go unseen.
    let unjudged = runners.iter().find(|runner| !counts.run.contains_key(runner.op));
    match unjudged {
        Some(runner) if folder == fixtures() => Err(Fault(format!("no fixture of {} was run", runner.op))),
        _ => Ok(counts),
    }
}
