//! The probes of an adapter, each of which must give the right answer before its time counts.

use super::gpu::{Gpu, Kernel};
use crate::work::Product;
use std::{error::Error, time::Duration};

/// Words of weights: more than the last cache holds, less than the 128 MiB that every adapter binds.
const WEIGHTS: usize = 96 << 18;
/// Elements of a row whose product with all those weights is taken.
const ROW: usize = 1536;
/// Words of activations: those of the largest tiled product in F32.
const ACTIVATIONS: usize = 512 * 1536;
/// Invocations that share the read of all weights.
const READERS: usize = 1 << 18;

pub(super) struct Probes {
    gpu: Gpu,
    words: Vec<u32>,
    weights: wgpu::Buffer,
    activations: wgpu::Buffer,
}

impl Probes {
    pub(super) fn open(index: usize) -> Result<Self, Box<dyn Error>> {
        let gpu = Gpu::open(index)?;
        let words = words();
        let (weights, activations) = (gpu.words(&words), gpu.words(&words[..ACTIVATIONS]));
        Ok(Probes { gpu, words, weights, activations })
    }

    pub(super) fn adapter(&self) -> String {
        self.gpu.name()
    }

    /// Operations a second of a tiled product.
    pub(super) fn tiled(
        &self,
        product: Product,
        (rows, columns, depth): (usize, usize, usize),
        time: Option<Duration>,
    ) -> f64 {
        let words = depth / elements(product);
        let out = self.gpu.results(rows * columns);
        let constants = format!("const COLUMNS: u32 = {columns}u;\nconst WORDS: u32 = {words}u;\n");
        let source = constants + types(product) + include_str!("tiled.wgsl");
        let buffers = [&self.activations, &self.weights, &out];
        let kernel = self.gpu.kernel(source, &buffers, [columns / 64, rows / 64]);
        let first = self.gpu.run(&kernel, 1);
        let answer = self.gpu.read(&out);
        for (row, column) in [(0, 0), (rows / 2 + 1, 1), (rows - 1, columns - 1)] {
            self.check(product, words, [row, column], answer[row * columns + column]);
        }
        2.0 * (rows * columns * depth) as f64 * self.rate(&kernel, first, time)
    }

    /// Bytes of weights a second in the product of one row.
    pub(super) fn row(&self, product: Product, time: Option<Duration>) -> f64 {
        let words = ROW / elements(product);
        let columns = WEIGHTS / words;
        let out = self.gpu.results(columns);
        let source =
            format!("const QUADS: u32 = {}u;\n", words / 4) + types(product) + include_str!("row.wgsl");
        let buffers = [&self.activations, &self.weights, &out];
        let kernel = self.gpu.kernel(source, &buffers, [columns / 8, 1]);
        let first = self.gpu.run(&kernel, 1);
        let answer = self.gpu.read(&out);
        for column in [0, columns / 2 + 1, columns - 1] {
            self.check(product, words, [0, column], answer[column]);
        }
        (4 * WEIGHTS) as f64 * self.rate(&kernel, first, time)
    }

    /// Bytes a second, read from memory.
    pub(super) fn read(&self, time: Option<Duration>) -> f64 {
        let out = self.gpu.results(READERS);
        let source = format!("const READERS: u32 = {READERS}u;\n") + include_str!("read.wgsl");
        let kernel = self.gpu.kernel(source, &[&self.weights, &out], [READERS / 256, 1]);
        let first = self.gpu.run(&kernel, 1);
        let sum = |words: &[u32]| words.iter().fold(0, |sum: u32, word| sum.wrapping_add(*word));
        assert_eq!(sum(&self.gpu.read(&out)), sum(&self.words), "every word is read once");
        (4 * WEIGHTS) as f64 * self.rate(&kernel, first, time)
    }

    /// Runs a second, of a try by its first run, which took so many seconds.
    fn rate(&self, kernel: &Kernel, first: f64, time: Option<Duration>) -> f64 {
        time.map_or(1.0 / first, |time| self.gpu.rate(kernel, time))
    }

    /// Holds a result to what the host makes of a row of activations and a row of weights.
    fn check(&self, product: Product, words: usize, [row, column]: [usize; 2], answer: u32) {
        let (x, w) = (&self.words[row * words..][..words], &self.words[column * words..][..words]);
        let pairs = x.iter().zip(w);
        match product {
            Product::Int8 => {
                let bytes = |(x, w): (&u32, &u32)| {
                    let products = x.to_le_bytes().into_iter().zip(w.to_le_bytes());
                    products.map(|(x, w)| i32::from(x as i8) * i32::from(w as i8)).sum::<i32>()
                };
                assert_eq!(answer as i32, pairs.map(bytes).sum::<i32>(), "row {row}, column {column}");
            }
            Product::F32 => {
                let expected: f64 = pairs.map(|(x, w)| float(*x) * float(*w)).sum();
                let close = (float(answer) - expected).abs() <= 1e-4 * expected;
                assert!(close, "{} instead of {expected} at row {row}, column {column}", float(answer));
            }
        }
    }
}

/// Elements of a word.
fn elements(product: Product) -> usize {
    match product {
        Product::Int8 => 4,
        Product::F32 => 1,
    }
}

/// The WGSL of an arithmetic: its words, its sums, and steps of them.
fn types(product: Product) -> &'static str {
    match product {
        Product::Int8 => include_str!("int8.wgsl"),
        Product::F32 => include_str!("f32.wgsl"),
    }
}

fn float(word: u32) -> f64 {
    f32::from_bits(word).into()
}

/// Words that are floats in [1, 2) and four bytes of any value but the highest.
fn words() -> Vec<u32> {
    let hash = |i: u32| {
        let i = (i ^ i >> 15).wrapping_mul(0x2C1B_3C6D);
        (i ^ i >> 12).wrapping_mul(0x297A_2D39)
    };
    (0..WEIGHTS as u32).map(|i| 0x3F80_0000 | hash(i) >> 9).collect()
}
