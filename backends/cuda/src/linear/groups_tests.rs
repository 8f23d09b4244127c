//! Groups by the tensor cores against dot products and against their own layers, wherever groups end.

use halite_hal::{DType, Device, Result};
use halite_kernels::{
    activation::Activation,
    linear::{ActivationFormat, GroupOffset, LinearArgs, LinearSpec, WeightFormat},
};

use super::{
    super::{
        bits_tests::formats,
        testing::{self, Inputs, Random},
    },
    *,
};
use crate::testing::cuda;

/// What the result holds where nothing is written.
const UNTOUCHED: u8 = 0xab;
const TOP_K: usize = 3;

/// Where groups end, of the rows that there are.
fn ends(rows: i32) -> [Vec<i32>; 5] {
    [
        // Empty ones at the beginning, in between and in the end; a boundary inside a tile; rows beyond the last.
        vec![0, 0, 3, 3, rows - 7, rows - 2, rows - 2],
        // Whole tiles, and one row more.
        vec![0, 16, 33, 33, rows, rows, rows],
        // All in one.
        vec![0, 0, 0, 0, rows, rows, rows],
        // Rows before the first.
        vec![5, 6, 6, 20, 21, 21, 37],
        // Offsets that nobody would write: each counts as at least the one before it, and at most all rows.
        vec![-9, 18, 4, 30, i32::MIN, i32::MAX, 1],
    ]
}

struct Case {
    spec: LinearSpec,
    inputs: Inputs,
    weights: Vec<CudaPacked>,
    bias: Option<Tensor<Cuda>>,
    /// Rows of the result.
    rows: usize,
}

impl Case {
    /// So many groups; `tokens` of `x`. A scale of all tokens is one of each group's.
    fn new(
        stream: &mut CudaStream,
        cuda: &Cuda,
        spec: LinearSpec,
        groups: usize,
        tokens: usize,
    ) -> Result<Self> {
        let mut random = Random(5);
        let inputs = Inputs::new(stream, &spec, tokens, groups, &mut random)?;
        let mut weights = Vec::new();
        for _ in 0..groups {
            weights.push(testing::weights(cuda, stream, &spec, &mut random)?);
        }
        let bias = random.floats(groups * spec.weight_rows(), 2.0);
        let bias = Tensor::from_slice(stream, &bias, &[groups, spec.weight_rows()])?;
        let bias = Some(bias).filter(|_| spec.output != DType::I32);
        Ok(Case { spec, inputs, weights, bias, rows: tokens })
    }

    /// The result's bytes.
    fn run(
        &self,
        stream: &mut CudaStream,
        rows: RowGroups<'_>,
        factors: Option<&Tensor<Cuda>>,
        choice: (Product, Option<Tile>),
    ) -> Result<Vec<u8>> {
        let dims = [self.rows, self.spec.out_features];
        let bytes = vec![UNTOUCHED; dims[0] * dims[1] * self.spec.output.size()];
        let room = Tensor::from_slice(stream, &bytes, &[bytes.len()])?;
        let out = Tensor::from_buffer(room.buffer().clone(), room.offset(), self.spec.output, &dims)?;
        let groups = Groups {
            operator: "grouped",
            x: &self.inputs.activations(),
            weights: &self.weights,
            rows,
            bias: self.bias.as_ref(),
            out: &out,
            gathered: self.inputs.x.dims()[0] != self.rows,
            factors,
            own_scales: true,
        };
        let launch = groups.launch(0, &self.weights, |_| choice)?;
        stream.launch(launch)?;
        room.to_vec(stream)
    }

    /// Every tile against dot products, with these groups.
    fn assert_has_the_bits_of_dot_products(
        &self,
        stream: &mut CudaStream,
        rows: RowGroups<'_>,
        factors: Option<&Tensor<Cuda>>,
    ) -> Result<()> {
        let expected = self.run(stream, rows, factors, (Product::Dot, None))?;
        let product = Product::of(&self.spec);
        let tiles = if product == Product::Int8 { &Tile::ALL[..] } else { &Tile::ALL[..2] };
        for &tile in tiles {
            let got = self.run(stream, rows, factors, (product, Some(tile)))?;
            assert!(got == expected, "{:?} {tile:?}", self.spec);
        }
        Ok(())
    }
}

#[test]
fn integers_of_groups_have_the_bits_of_dot_products() -> Result<()> {
    let Some(cuda) = cuda("integers of groups by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let rows = 40;
    for (number, mut format) in formats().into_iter().enumerate() {
        let ends = &ends(rows)[number % 5];
        format.out_features = 21;
        let spec = match number % 3 {
            0 => format.with_output(DType::Bf16),
            1 => format.gated(Activation::Silu),
            _ => format.with_outliers(5, DType::F16),
        };
        let offsets = Tensor::from_slice(stream, ends, &[ends.len()])?;
        let case = Case::new(stream, &cuda, spec, ends.len() - 1, rows as usize)?;
        let sorted = RowGroups::Sorted { offsets: &offsets, slots: None, top_k: 1 };
        case.assert_has_the_bits_of_dot_products(stream, sorted, None)?;
    }
    Ok(())
}

/// Wherever groups end, every row is found once, in its own group.
#[test]
fn rows_are_found_wherever_groups_end() -> Result<()> {
    let Some(cuda) = cuda("rows of groups") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    // More than lanes of a warp; fewer and more rows than blocks of all groups.
    let spec = LinearSpec::w8a8(16, 1).with_output(DType::I32);
    for (groups, rows) in [(6, 40), (31, 5), (32, 90), (70, 30), (70, 200)] {
        let case = Case::new(stream, &cuda, spec.clone(), groups, rows)?;
        let mut all = if groups == 6 { ends(rows as i32).to_vec() } else { Vec::new() };
        let mut random = Random(groups as u64 + rows as u64);
        for most in [2, 40] {
            let mut end = 0;
            let mut next = || {
                end += random.integer(-most, most).max(0);
                end
            };
            all.push((0..=groups).map(|_| next()).collect());
        }
        for ends in all {
            let offsets = Tensor::from_slice(stream, &ends, &[ends.len()])?;
            let sorted = RowGroups::Sorted { offsets: &offsets, slots: None, top_k: 1 };
            case.assert_has_the_bits_of_dot_products(stream, sorted, None)?;
        }
    }
    Ok(())
}

/// Tokens that are gathered, sorted or as their slots come; ids out of range are nobody's.
#[test]
fn gathered_tokens_have_the_bits_of_dot_products() -> Result<()> {
    let Some(cuda) = cuda("gathered tokens by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let (tokens, groups) = (9, 4);
    let slots = tokens * TOP_K;
    let mut random = Random(3);
    let factors = random.floats(slots, 1.0);
    let factors = Tensor::from_slice(stream, &factors, &[tokens, TOP_K])?;
    // From 10 on they are here.
    let mut ids: Vec<i32> = (0..slots).map(|_| random.integer(8, 15)).collect();
    (ids[3], ids[7], ids[11]) = (-1, i32::MAX, i32::MIN);
    let ids = Tensor::from_slice(stream, &ids, &[tokens, TOP_K])?;
    // Any order of slots, one of them twice, and rows that have none.
    let ends = [0, 5, 5, 18, slots as i32 - 3];
    let order: Vec<i32> =
        (0..slots as i32).map(|row| if row < ends[4] { row * 7 % slots as i32 } else { i32::MAX }).collect();
    let offsets = Tensor::from_slice(stream, &ends, &[groups + 1])?;
    let order = Tensor::from_slice(stream, &order, &[slots])?;
    let sorted = RowGroups::Sorted { offsets: &offsets, slots: Some(&order), top_k: TOP_K };
    let by_slot = RowGroups::BySlot { ids: &ids, first: 10, count: groups };
    let zeros = WeightFormat::Int8PerChannelAsymmetric;
    let int4 = WeightFormat::Int4PerGroup { group_size: 32, offset: GroupOffset::Min };
    for spec in [
        LinearSpec::w8a8(48, 20).gated(Activation::Silu),
        LinearSpec::w8a8(48, 20)
            .with_weights(zeros)
            .with_activation_format(ActivationFormat::AsymmetricPerTensor(DType::U8)),
        LinearSpec::w8a8(64, 20)
            .with_weights(int4)
            .with_activation_format(ActivationFormat::Int8PerGroup { group_size: 32 })
            .with_outliers(3, DType::F32),
    ] {
        let case = Case { rows: slots, ..Case::new(stream, &cuda, spec, groups, tokens)? };
        for rows in [sorted, by_slot] {
            case.assert_has_the_bits_of_dot_products(stream, rows, None)?;
            case.assert_has_the_bits_of_dot_products(stream, rows, Some(&factors))?;
        }
    }
    Ok(())
}

#[test]
fn floats_of_a_group_have_the_bits_of_its_own_layer() -> Result<()> {
    let Some(cuda) = cuda("floats of groups by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let (rows, ends) = (40, [0, 3, 3, 20, 37]);
    let offsets = Tensor::from_slice(stream, &ends, &[ends.len()])?;
    let sorted = RowGroups::Sorted { offsets: &offsets, slots: None, top_k: 1 };
    for (weights, dtype) in [(WeightFormat::F16, DType::F16), (WeightFormat::Bf16, DType::Bf16)] {
        // Rows of the latter begin anywhere.
        for k in [72, 71] {
            let spec = LinearSpec::float(k, 35, weights).with_activations(dtype).with_output(dtype);
            let case = Case::new(stream, &cuda, spec.clone(), ends.len() - 1, rows)?;
            let tiles = if k == 72 { &Tile::ALL[..] } else { &[Tile::DECODE] };
            for &tile in tiles {
                let got = case.run(stream, sorted, None, (Product::Float(dtype), Some(tile)))?;
                let row_bytes = spec.out_features * dtype.size();
                for (group, own) in
                    ends.windows(2).enumerate().map(|(g, e)| (g, e[0] as usize..e[1] as usize))
                {
                    if own.is_empty() {
                        continue;
                    }
                    let out = Tensor::<Cuda>::new(&cuda, dtype, &[own.len(), spec.out_features])?;
                    let bias = case.bias.as_ref().map(|bias| bias.narrow(0, group..group + 1)).transpose()?;
                    let bias = bias.map(|bias| bias.reshape(&[spec.weight_rows()])).transpose()?;
                    let x = case.inputs.x.narrow(0, own.clone())?;
                    let epilogue = Epilogue { bias: bias.as_ref(), ..Epilogue::default() };
                    let (x, weights) = (Activations::Float(&x), &case.weights[group]);
                    let args = LinearArgs { x, weights, epilogue, out: &out }.check()?;
                    float::run(stream, &Call::of(&args)?, dtype)?;
                    let bytes = Tensor::from_buffer(
                        out.buffer().clone(),
                        out.offset(),
                        DType::U8,
                        &[own.len() * row_bytes],
                    )?;
                    let expected = bytes.to_vec::<u8>(stream)?;
                    assert!(
                        got[own.start * row_bytes..own.end * row_bytes] == expected,
                        "{spec:?} {tile:?} {group}"
                    );
                }
                assert!(got[37 * row_bytes..].iter().all(|&byte| byte == UNTOUCHED));
            }
        }
    }
    Ok(())
}

/// Formats have their layers' kernels, in the tile of a group's share of the rows.
#[test]
fn a_kernel_is_chosen_by_format_and_a_tile_by_the_share_of_a_group() -> Result<()> {
    let Some(cuda) = cuda("which kernel groups take") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    let offsets = Tensor::<Cuda>::new(&cuda, DType::I32, &[4])?;
    let mut chosen = |spec: LinearSpec, rows: usize| -> Result<_> {
        let case = Case::new(stream, &cuda, spec, 3, rows)?;
        let out = Tensor::new(&cuda, case.spec.output, &[rows, case.spec.out_features])?;
        let groups = Groups {
            operator: "grouped",
            x: &case.inputs.activations(),
            weights: &case.weights,
            rows: RowGroups::Sorted { offsets: &offsets, slots: None, top_k: 1 },
            bias: None,
            out: &out,
            gathered: false,
            factors: None,
            own_scales: true,
        };
        let mut tile = None;
        let launch = groups.launch(0, &case.weights, |call| {
            let choice = groups.choose(call);
            tile = choice.1;
            choice
        })?;
        Ok((launch.entry, tile))
    };
    let int4 = WeightFormat::Int4PerGroup { group_size: 32, offset: GroupOffset::Symmetric };
    let (w8a8, w4a8) = (|k| LinearSpec::w8a8(k, 8), |k| LinearSpec::w8a8(k, 8).with_weights(int4));
    let bf16 = |k| LinearSpec::float(k, 8, WeightFormat::Bf16).with_activations(DType::Bf16);
    for (rows, tile) in [(1, Tile::DECODE), (48, Tile::DECODE), (49, Tile::MIDDLE), (193, Tile::LARGE)] {
        assert_eq!(chosen(w8a8(32), rows)?, ("grouped_int8", Some(tile)));
        assert_eq!(chosen(bf16(32), rows)?, ("grouped_float", Some(tile)));
    }
    assert_eq!(chosen(w4a8(32), 48)?, ("grouped_group_wise", Some(Tile::DECODE)));
    assert_eq!(chosen(w4a8(32), 193)?, ("grouped_group_wise", Some(Tile::MIDDLE)));
    // Rows that begin anywhere, and formats without tiles.
    assert_eq!(chosen(w8a8(33), 193)?, ("grouped_dot", None));
    assert_eq!(chosen(w4a8(33), 193)?, ("grouped_dot", None));
    assert_eq!(chosen(bf16(33), 193)?, ("grouped_float", Some(Tile::DECODE)));
    assert_eq!(chosen(LinearSpec::float(32, 8, int4), 193)?, ("grouped_dot", None));
    Ok(())
}

/// What the source gives with one place changed of how a block finds its rows, and what it should; none without NVRTC.
fn with_a_fault(from: &str, to: &str) -> Result<Option<(Result<Vec<u8>>, Vec<u8>)>> {
    let headers = [("linear/group_rows.cuh", include_str!("group_rows.cuh"))];
    // A device of its own: a fault loses it.
    let Some(cuda) = cuda("faults in how blocks find rows") else { return Ok(None) };
    let stream = &mut cuda.stream()?;
    let ends = [0, 3, 20, 37, 37];
    let case = Case::new(stream, &cuda, LinearSpec::w8a8(48, 21), ends.len() - 1, 40)?;
    let offsets = Tensor::from_slice(stream, &ends, &[ends.len()])?;
    let rows = RowGroups::Sorted { offsets: &offsets, slots: None, top_k: 1 };
    let expected = case.run(stream, rows, None, (Product::Dot, None))?;
    let source = testing::changed("test/grouped_int8.cu", &int8::GROUPED, &headers, from, to);
    let room = Tensor::from_slice(stream, &vec![UNTOUCHED; expected.len()], &[expected.len()])?;
    let out = Tensor::from_buffer(room.buffer().clone(), room.offset(), case.spec.output, &[40, 21])?;
    let groups = Groups {
        operator: "grouped",
        x: &case.inputs.activations(),
        weights: &case.weights,
        rows,
        bias: case.bias.as_ref(),
        out: &out,
        gathered: false,
        factors: None,
        own_scales: true,
    };
    let mut launch = groups.launch(0, &case.weights, |_| (Product::Int8, Some(Tile::DECODE)))?;
    launch.variant = int8::grouped("grouped", source, Tile::DECODE).variant;
    let got = stream.launch(launch).and_then(|()| room.to_vec::<u8>(stream));
    Ok(Some((got, expected)))
}

#[test]
fn a_wrong_boundary_of_a_group_is_wrong_numbers() -> Result<()> {
    let end = "min(first + BLOCK_M, end)};";
    for (to, right) in
        [(end, true), ("min(first + BLOCK_M, end + 1)};", false), ("min(first + BLOCK_M, end - 1)};", false)]
    {
        let Some((got, expected)) = with_a_fault(end, to)? else { return Ok(()) };
        assert_eq!(got? == expected, right, "{to}");
    }
    Ok(())
}

#[test]
fn rows_that_others_looked_up_need_a_barrier() -> Result<()> {
    let barrier = "    // From here on all look at all of them.\n    __syncthreads();\n";
    let Some((got, _)) = with_a_fault(barrier, "")? else { return Ok(()) };
    let report = got.map_or_else(|error| error.to_string(), |_| "nothing".to_owned());
    for part in ["kernel `", "block (", "lane ", "line ", "no barrier lies between"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    Ok(())
}
