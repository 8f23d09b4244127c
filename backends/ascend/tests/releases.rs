//! Releases of CANN that lack something: the stand-in with names taken out of its table of functions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod standin;

use std::{
    fs,
    path::{Path, PathBuf},
};

use halite_ascend::{Ascend, Options};
use halite_hal::{DType, Device, Error, Pending, Result, Stream, Tensor};
use halite_kernels::{
    Support,
    activation::{Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, GateLayout, Glu},
    attention::{Attention, AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep},
    cache::{BlockImport, KvCacheOps, KvSpec},
    embedding::{Embedding, EmbeddingSpec, TableFormat},
    grouped::Grouped,
    linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec, Quantized, WeightFormat},
    quantize::{Quantize, QuantizeSpec},
};

/// The folder of a release without these functions, in which the run time lies as CANN's would.
fn release(name: &str, without: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cann-{name}"));
    fs::create_dir_all(&folder).unwrap();
    let mut library = fs::read(standin::library()).unwrap();
    for function in without {
        let entry = [b"\0", function.as_bytes(), b"\0"].concat();
        let places: Vec<usize> = (0..library.len() - entry.len())
            .filter(|&at| library[at] == 0 && library[at..].starts_with(&entry))
            .collect();
        assert!(!places.is_empty(), "the stand-in has no {function}");
        places.into_iter().for_each(|at| library[at + 1] = b'_');
    }
    fs::write(folder.join("libascendcl.so"), library).unwrap();
    folder
}

fn sums(device: &Ascend) -> Result<Vec<i32>> {
    let mut stream = device.stream()?;
    let spec = LinearSpec::w8a8(2, 1).with_output(DType::I32);
    let weights = HostWeights::Int8PerChannel { q: &[3, -4], scales: &[0.5] };
    let weights = device.linear_pack(&mut stream, weights.check(&spec)?)?;
    let x = Tensor::from_slice(&mut stream, &[5i8, 6], &[1, 2])?;
    let scales = Tensor::from_slice(&mut stream, &[0.25f32], &[1])?;
    let out = Tensor::new(device, DType::I32, &[1, 1])?;
    stream.reserve(device.linear_workspace(&weights, 1))?;
    let x = Activations::Quantized(Quantized::new(&x, &scales));
    let args = LinearArgs { x, weights: &weights, epilogue: Epilogue::default(), out: &out };
    device.linear(&mut stream, args.check()?)?;
    out.to_vec(&mut stream)
}

/// One row over one position, whose value is one: BF16.
fn mean(device: &Ascend) -> Result<Vec<u8>> {
    let (kv, stream) =
        (KvSpec::new(1, 1, 64).with_block_size(128).with_dtype(DType::Bf16), &mut device.stream()?);
    let spec = AttentionSpec::causal(1, kv.clone()).with_dtype(DType::Bf16);
    let capacity =
        AttentionCapacity { max_tokens: 1, max_sequences: 1, max_blocks_per_sequence: 1, cache_blocks: 1 };
    let mut plan = device.attention_plan(&spec, &capacity)?;
    let cache = device.kv_cache(&kv, 1)?;
    let bytes = [0x80, 0x3F].repeat(2 * 128 * 64);
    let import = BlockImport { cache: &cache, blocks: &[0], bytes: &bytes };
    device.cache_import(stream, import.check()?)?;
    let step = AttentionStep {
        cu_seqlens: &[0, 1],
        kv_lens: &[1],
        kv_ranges: &[],
        block_table: &[0],
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let [q, out] = [(); 2].map(|()| Tensor::new(device, DType::Bf16, &[1, 1, 64]));
    let (q, out) = (q?, out?);
    stream.upload(&q, &bytes[..128])?;
    let args = AttentionArgs {
        plan: &plan,
        cache: &cache,
        layer: 0,
        q: &q,
        state_in: None,
        out: AttentionOut::Normalised(&out),
        sinks: None,
        log_sum_exp: None,
    };
    device.attention(stream, args.check()?)?;
    stream.download(&out)?.wait()
}

#[test]
fn an_operator_that_is_missing_is_refused_and_the_rest_works() -> Result<()> {
    let folder = release("without-swiglu", &["aclnnSwiGlu"]);
    let device = Ascend::new(Options::default().library(folder))?;
    let spec = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    let Support::No(reason) = device.activation_supports(&spec) else { panic!("granted") };
    assert_eq!(reason, "this release of CANN has no aclnnSwiGlu");
    let mut stream = device.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1f32, 2.0], &[1, 2])?;
    let out = Tensor::new(&device, DType::F32, &[1, 1])?;
    let args = ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out) }.check()?;
    let error = device.activation(&mut stream, args).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { reason: told, .. } if *told == reason), "{error}");
    assert_eq!(sums(&device)?, [-9]);
    Ok(())
}

#[test]
fn an_older_form_serves_where_the_newer_one_is_missing() -> Result<()> {
    assert_eq!(sums(&standin::device()?)?, [-9]);
    let newer = ["aclnnQuantMatmulV5GetWorkspaceSize", "aclnnQuantMatmulV5"];
    let device = Ascend::new(Options::default().library(release("without-v5", &newer)))?;
    assert_eq!(sums(&device)?, [-9]);

    let newer = ["aclnnFusedInferAttentionScoreV4GetWorkspaceSize", "aclnnFusedInferAttentionScoreV4"];
    let device = Ascend::new(Options::default().library(release("without-attention-v4", &newer)))?;
    assert_eq!(mean(&device)?, [0x80, 0x3F].repeat(64), "ones");

    let both = [newer[0], "aclnnFusedInferAttentionScoreV3"];
    let device = Ascend::new(Options::default().library(release("without-attention", &both)))?;
    let Err(Error::Unsupported { reason, .. }) = mean(&device) else { panic!("granted") };
    assert!(
        reason.contains("aclnnFusedInferAttentionScoreV4 or aclnnFusedInferAttentionScoreV3"),
        "{reason}"
    );

    let both = ["aclnnQuantMatmulV5GetWorkspaceSize", "aclnnQuantMatmulV4"];
    let device = Ascend::new(Options::default().library(release("without-quant-matmul", &both)))?;
    let support = device.linear_supports(&LinearSpec::w8a8(2, 1).with_output(DType::I32));
    assert!(matches!(&support, Support::No(reason) if reason.contains("aclnnQuantMatmulV4")), "{support:?}");
    assert!(matches!(sums(&device), Err(Error::Unsupported { .. })));
    Ok(())
}

#[test]
fn what_is_made_of_several_operators_names_the_one_that_is_missing() -> Result<()> {
    for (name, operator) in [
        ("without-div", "aclnnDiv"),
        ("without-groups", "aclnnGroupedMatmulV5"),
        ("without-where", "aclnnSWhere"),
        ("without-tanh", "aclnnTanh"),
    ] {
        let device = Ascend::new(Options::default().library(release(name, &[operator])))?;
        let refused = [
            ("aclnnDiv", device.quantize_supports(&QuantizeSpec::INT8_PER_TOKEN)),
            ("aclnnGroupedMatmulV5", device.grouped_supports(&LinearSpec::w8a8(2, 1))),
            ("aclnnSWhere", device.embedding_supports(&EmbeddingSpec::new(TableFormat::Float(DType::F16)))),
            ("aclnnTanh", device.linear_supports(&LinearSpec::float(2, 1, WeightFormat::Bf16))),
        ];
        for (by, support) in refused {
            let missing = Support::No(format!("this release of CANN has no {operator}"));
            assert!(by != operator || support == missing, "{support:?}");
        }
    }
    Ok(())
}

#[test]
fn a_run_time_without_what_every_device_needs_is_an_error_by_name() {
    let folder = release("without-contexts", &["aclrtSetCurrentContext"]);
    let error = Ascend::new(Options::default().library(folder)).unwrap_err().to_string();
    assert!(error.contains("this release of CANN has no aclrtSetCurrentContext"), "{error}");
}
