//! Grouped products, judged.

use crate::{
    case::{Group, Verdict, ensure},
    judge::{judge, refused, unsupported},
    ledger::denied,
    linear::{Case as Layer, Fill, Operand, Weights, integer_specs, integer_weights, specs},
    oracle::linear::{After, epilogue},
    poison::{Guarded, LAYOUTS, Layout, pattern},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    activation::Activation,
    grouped::GroupedArgs,
    linear::{ActivationFormat, Activations, HostWeights, LinearSpec, WeightFormat},
};

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Each group's layer.
    pub spec: LinearSpec,
    /// Rows in all.
    pub rows: usize,
    /// One more than there are groups.
    pub offsets: Vec<i32>,
    /// Whether there is a bias.
    pub bias: bool,
    /// How rows lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("grouped", "edges", edges(), body),
        Group::listed("grouped", "offsets", offsets(), body),
        Group::seeded("grouped", "random", 30, random, body),
        Group::bodies("grouped", "errors", vec![("wrong weights, offsets and shapes", errors)]),
    ]
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (rows, offsets)) in [
        (0, vec![0, 0, 0]),
        (1, vec![0, 1]),
        (1, vec![0, 0, 0, 1, 1]),
        (13, vec![0, 13]),
        (13, vec![0, 12, 13, 13]),
        (40, vec![0, 1, 3, 3, 16, 40]),
        (7, vec![0, 0, 0, 7]),
    ]
    .into_iter()
    .enumerate()
    {
        for (k, n) in [(37, 19), (64, 48)] {
            for spec in specs(k, n) {
                let layout = LAYOUTS[number % 3];
                let bare = spec.output == DType::I32;
                let case = Case { spec, rows, offsets: offsets.clone(), bias: !bare, layout, seed: 1 };
                if !bare && number % 2 == 0 {
                    let spec = case.spec.clone().gated(Activation::Silu);
                    cases.push(Case { spec, ..case.clone() });
                }
                cases.push(case);
            }
        }
    }
    // Every format of integers, scales and zero points of rows and of all rows among them.
    for spec in integer_specs(64, 17) {
        let offsets = vec![0, 1, 1, 6, 9];
        cases.push(Case { spec, rows: 9, offsets, bias: true, layout: LAYOUTS[1], seed: 1 });
    }
    // Columns in float beside weights with scales along K, one scale for all rows or for groups of columns.
    for format in integer_weights(256) {
        for activations in
            [ActivationFormat::Int8PerTensor, ActivationFormat::Int8PerGroup { group_size: 128 }]
        {
            let spec = LinearSpec::w8a8(256, 17).with_weights(format).with_activation_format(activations);
            let (spec, offsets) = (spec.with_outliers(3, DType::Bf16), vec![0, 2, 2, 5]);
            cases.push(Case { spec, rows: 5, offsets, bias: true, layout: LAYOUTS[1], seed: 1 });
        }
    }
    cases
}

/// Offsets that no right dispatch makes: nothing outside of the rows may be touched.
fn offsets() -> Vec<Case> {
    let mut cases = Vec::new();
    for offsets in [
        vec![3, 5, 9],
        vec![0, 5, 2, 6],
        vec![-7, -1, 4],
        vec![i32::MIN, i32::MAX, 3],
        vec![0, 4, i32::MAX],
        vec![11, 12, 13],
        vec![9, 0, 10],
    ] {
        for spec in specs(20, 17) {
            let layout = LAYOUTS[1];
            cases.push(Case { spec, rows: 10, offsets: offsets.clone(), bias: false, layout, seed: 2 });
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let mut specs = specs(1 + rng.below(90), 1 + rng.below(60));
    let spec = specs.swap_remove(rng.below(specs.len()));
    let rows = rng.below(40);
    let mut offsets: Vec<i32> = (0..1 + rng.below(9)).map(|_| rng.below(rows + 1) as i32).collect();
    offsets.sort_unstable();
    offsets.insert(0, 0);
    let bias = spec.output != DType::I32 && rng.coin();
    Case { spec, rows, offsets, bias, layout: rng.pick(&LAYOUTS), seed }
}

/// The group of each row, by the contract's reading of offsets.
fn groups_of_rows(offsets: &[i32], rows: usize) -> Vec<Option<usize>> {
    let mut groups = vec![None; rows];
    let mut start = i64::from(offsets[0]).clamp(0, rows as i64);
    for (group, &end) in offsets[1..].iter().enumerate() {
        let end = i64::from(end).clamp(start, rows as i64);
        groups[start as usize..end as usize].fill(Some(group));
        start = end;
    }
    groups
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, layout, .. } = case;
    let (rows, n) = (*rows, spec.weight_rows());
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let count = case.offsets.len() - 1;
    let weights: Vec<Weights> = (0..count).map(|_| Weights::new(&mut rng, spec, Fill::Away)).collect();
    let mut packed = Vec::new();
    let refused = denied(device.grouped_supports(spec));
    for weights in &weights {
        if refused && denied(device.linear_supports(spec)) {
            let result = weights.with_host(|host| Ok(device.linear_pack(stream, host.check(spec)?)));
            return result.and_then(|result| unsupported("linear", result));
        }
        packed.push(weights.pack(device, stream, spec)?);
    }
    let layer = Layer { layout: *layout, ..Layer::new(spec.clone(), rows) };
    let operand = Operand::<B>::new(stream, &mut rng, &layer)?;
    let views = operand.rows(0..rows, spec.activations)?;
    let bias = rng.spreads(count * n);
    let (bias, biases) = Guarded::<B>::input(stream, DType::F32, &bias, &[count, n], Layout::Dense)?;
    let offsets = Guarded::<B>::integers(stream, DType::I32, &case.offsets, &[count + 1], Layout::Dense)?;
    let out = Guarded::<B>::output(stream, spec.output, &[rows, spec.out_features], *layout)?;
    stream.reserve(device.grouped_workspace(&packed[0], rows))?;
    let args = GroupedArgs::<B> {
        x: views.activations(),
        weights: &packed,
        offsets: &offsets.view,
        bias: case.bias.then_some(&bias.view),
        out: &out.view,
    };
    let ran = device.grouped(stream, args.check()?);
    if refused {
        unsupported("grouped", ran)?;
        return out.untouched(stream);
    }
    ran?;
    let (values, bytes) = (out.read(stream)?, out.read_bytes(stream)?);
    let poison = pattern(spec.output);
    let products: Vec<_> = weights.iter().map(|weights| operand.products(spec, rows, weights)).collect();
    for (row, group) in groups_of_rows(&case.offsets, rows).into_iter().enumerate() {
        let width = spec.out_features;
        let Some(group) = group else {
            let size = width * spec.output.size();
            let row_bytes = &bytes[row * size..][..size];
            ensure(row_bytes.chunks_exact(poison.len()).all(|bytes| bytes == poison), || {
                format!("row {row} belongs to no group, and was written")
            })?;
            continue;
        };
        let after = After {
            out_features: width,
            bias: case.bias.then_some(&biases[group * n..][..n]),
            activation: None,
            gate: spec.gate,
            soft_cap: None,
            residual: None,
            output_scale: None,
            output: spec.output,
        };
        let expected = epilogue(&products[group][row * n..][..n], &after);
        judge(&format!("out[{row}]"), &[width], &values[row * width..][..width], &expected)?;
    }
    Ok(())
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = LinearSpec::float(3, 4, WeightFormat::F32);
    let packed = device.linear_pack(stream, HostWeights::F32(&[1.0; 12]).check(&spec)?)?;
    let wide_spec = LinearSpec::float(3, 5, WeightFormat::F32);
    let wide = device.linear_pack(stream, HostWeights::F32(&[1.0; 15]).check(&wide_spec)?)?;
    let bare_spec = LinearSpec::w8a8(3, 4).with_output(DType::I32);
    let byte_spec = spec.clone().with_output(DType::I8);
    let bytes = vec![device.linear_pack(stream, HostWeights::F32(&[1.0; 12]).check(&byte_spec)?)?; 2];
    ensure(denied(device.grouped_supports(&byte_spec)), || "a scale for I8 has no place".to_owned())?;
    let host = HostWeights::Int8PerChannel { q: &[1; 12], scales: &[1.0; 4] };
    let bare = vec![device.linear_pack(stream, host.check(&bare_spec)?)?; 2];
    let (same, mixed) = (vec![packed.clone(); 2], vec![packed, wide]);
    let tensor = |dtype, dims: &[usize]| Tensor::<B>::new(device, dtype, dims);
    let (x, out) = (tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[2, 4])?);
    let (offsets, few) = (tensor(DType::I32, &[3])?, tensor(DType::I32, &[2])?);
    let (floats, bias) = (tensor(DType::F32, &[3])?, tensor(DType::F32, &[2, 4])?);
    let (flat_bias, sums) = (tensor(DType::F32, &[4])?, tensor(DType::I32, &[2, 4])?);
    let (q, scales) = (tensor(DType::I8, &[2, 3])?, tensor(DType::F32, &[2])?);
    let q_out = tensor(DType::I8, &[2, 4])?;
    let args = || GroupedArgs::<B> {
        x: Activations::Float(&x),
        weights: &same,
        offsets: &offsets,
        bias: None,
        out: &out,
    };
    args().check()?;
    let int8 = || Activations::int8_per_token(&q, &scales);
    let short = x.narrow(0, 0..1)?;
    for (argument, args) in [
        ("weights", GroupedArgs { weights: &[], ..args() }),
        ("weights", GroupedArgs { weights: &mixed, ..args() }),
        ("weights", GroupedArgs { weights: &bytes, out: &q_out, ..args() }),
        ("offsets", GroupedArgs { offsets: &few, ..args() }),
        ("offsets", GroupedArgs { offsets: &floats, ..args() }),
        ("bias", GroupedArgs { bias: Some(&flat_bias), ..args() }),
        ("bias", GroupedArgs { weights: &bare, x: int8(), bias: Some(&bias), out: &sums, ..args() }),
        ("x", GroupedArgs { x: Activations::Float(&short), ..args() }),
        ("x", GroupedArgs { x: Activations::Float(&out), ..args() }),
        ("x", GroupedArgs { x: int8(), ..args() }),
        ("out", GroupedArgs { out: &x, ..args() }),
        ("out", GroupedArgs { out: &bias, bias: Some(&bias), ..args() }),
    ] {
        refused("grouped", argument, args.check())?;
    }
    Ok(())
}
