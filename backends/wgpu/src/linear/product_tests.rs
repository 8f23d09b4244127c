use super::*;
use crate::testing::gpu;
use halite_hal::Device;
use halite_kernels::linear::{HostWeights, Linear, LinearArgs, LinearSpec};

const K: usize = 40;
const N: usize = 70;
/// What an output holds before.
const BEFORE: f32 = -7.5;

/// Numbers of either sign, no two neighbours alike.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 37 % 101) as f32 / 16.0 - 3.0).collect()
}

fn specs() -> [LinearSpec; 2] {
    let plain = LinearSpec::float(K, N, WeightFormat::F32);
    [plain.clone(), plain.gated(Activation::Silu)]
}

/// The rows of a range alone are written, with the bits of a call for all rows.
#[test]
fn rows_that_a_table_tells_are_the_ones_written() -> Result<()> {
    let Some(gpu) = gpu("rows_that_a_table_tells_are_the_ones_written") else { return Ok(()) };
    let stream = &mut gpu.stream()?;
    for spec in specs() {
        let weights = numbers(spec.weight_rows() * K);
        let packed = gpu.linear_pack(stream, HostWeights::F32(&weights).check(&spec)?)?;
        for rows in [1, 5, 8, 9, 150] {
            let x = Tensor::from_slice(stream, &numbers(rows * K), &[rows, K])?;
            let all = Tensor::<Wgpu>::new(&gpu, DType::F32, &[rows, N])?;
            let (x_args, epilogue) = (Activations::Float(&x), Epilogue::default());
            gpu.linear(stream, LinearArgs { x: x_args, weights: &packed, epilogue, out: &all }.check()?)?;
            let all = all.to_vec::<f32>(stream)?;
            let last = rows as i32;
            for table in [[0, last], [0, 0], [last / 2, last], [-9, last / 3], [last - 1, i32::MAX], [3, 1]] {
                let out = Tensor::from_slice(stream, &vec![BEFORE; rows * N], &[rows, N])?;
                // Not the first of its table.
                let told = Tensor::<Wgpu>::from_slice(stream, &[99, table[0], table[1]], &[3])?;
                let product = Product {
                    weights: &packed,
                    input: Input::of(&Activations::Float(&x))?,
                    after: After::default(),
                    out: Matrix::of(&out),
                    rows,
                    range: Some(RowRange {
                        table: Operand::tensor(&told),
                        at: 1,
                        ascending: true,
                        groups: Successive::ONE,
                        likely: rows,
                    }),
                };
                product.queue(stream)?;
                let first = table[0].clamp(0, last) as usize;
                let end = (table[1].clamp(0, last) as usize).max(first);
                let mut expected = vec![BEFORE; rows * N];
                expected[first * N..end * N].copy_from_slice(&all[first * N..end * N]);
                assert_eq!(out.to_vec::<f32>(stream)?, expected, "{spec:?}, {rows} rows, {table:?}");
            }
        }
    }
    Ok(())
}

/// What is larger than one kernel reaches is cut, and nothing else changes.
#[test]
fn pieces_give_what_the_whole_gives() -> Result<()> {
    let Some(gpu) = gpu("pieces_give_what_the_whole_gives") else { return Ok(()) };
    let stream = &mut gpu.stream()?;
    for spec in specs() {
        let weights = numbers(spec.weight_rows() * K);
        let host = HostWeights::F32(&weights);
        let whole = gpu.linear_pack(stream, host.check(&spec)?)?;
        // A panel is 4 KiB: 10 quads of 16 channels, filled up to 16.
        let cut = gpu.pack_pieces(stream, &host.check(&spec)?, 3 * 4096)?;
        let lengths: Vec<usize> = cut.pieces().iter().map(|piece| piece.panels.len()).collect();
        assert_eq!(lengths, if spec.gate.is_some() { vec![2; 5] } else { vec![3, 2] });
        assert_eq!(gpu.linear_save(stream, &whole)?, gpu.linear_save(stream, &cut)?);
        assert!(gpu.pack_pieces(stream, &host.check(&spec)?, 4095).is_err(), "a panel is the least");
        for rows in [1, 3, 20] {
            let x = Tensor::from_slice(stream, &numbers(rows * K), &[rows, K])?;
            let mut run = |packed: &WgpuPacked| -> Result<Vec<f32>> {
                let out = Tensor::<Wgpu>::new(&gpu, DType::F32, &[rows, N])?;
                let (x, epilogue) = (Activations::Float(&x), Epilogue::default());
                gpu.linear(stream, LinearArgs { x, weights: packed, epilogue, out: &out }.check()?)?;
                out.to_vec::<f32>(stream)
            };
            assert_eq!(run(&whole)?, run(&cut)?, "{spec:?}, {rows} rows");
        }
    }
    Ok(())
}
