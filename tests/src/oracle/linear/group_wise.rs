//! Linear layers whose integer weights have scales along K; formulas from `halite_kernels::linear`.

use crate::tolerance::Bound;
use half::f16;
use halite_kernels::linear::WeightFormat;

/// Integer weights by the element: `w[n, k] = scale · q + min`, `q` less its zero point.
#[derive(Clone, Debug)]
pub struct Weights {
    /// Output channels.
    pub rows: usize,
    /// Columns: K.
    pub k: usize,
    /// Columns that share a scale.
    pub group: usize,
    /// `[rows, k]`.
    pub q: Vec<i64>,
    /// `[rows, ceil(k / group)]`.
    pub scales: Vec<f64>,
    /// `[rows, ceil(k / group)]`, or empty.
    pub mins: Vec<f64>,
}

impl Weights {
    /// Where the scale of an element is.
    fn place(&self, n: usize, k: usize) -> usize {
        n * self.k.div_ceil(self.group) + k / self.group
    }

    /// One element, as F32 arithmetic has it.
    pub fn element(&self, n: usize, k: usize) -> Bound {
        let place = self.place(n, k);
        let product = Bound::exact(self.q[n * self.k + k] as f64).times(Bound::exact(self.scales[place]));
        match self.mins.get(place) {
            Some(&min) => product.plus(Bound::exact(min)),
            None => product,
        }
    }

    /// The elements of stored blocks, each taken from its bits by itself.
    pub fn of_blocks(format: WeightFormat, blocks: &[u8], rows: usize, k: usize) -> Self {
        let mut weights = Weights { rows, k, group: 32, q: Vec::new(), scales: Vec::new(), mins: Vec::new() };
        let number = |at: usize| f16::from_bits(u16::from_le_bytes([blocks[at], blocks[at + 1]])).to_f64();
        // Blocks follow one another through all rows, so an element's number is all that matters.
        for i in 0..rows * k {
            let (code, scale, min) = match format {
                WeightFormat::Q4_0 => {
                    let (block, j) = (i / 32 * 18, i % 32);
                    let code = i64::from(blocks[block + 2 + j % 16] >> (j / 16 * 4) & 15);
                    (code - 8, number(block), None)
                }
                WeightFormat::Q4_1 => {
                    let (block, j) = (i / 32 * 20, i % 32);
                    let code = i64::from(blocks[block + 4 + j % 16] >> (j / 16 * 4) & 15);
                    (code, number(block), Some(number(block + 2)))
                }
                _ => {
                    let (block, g, j) = (i / 256 * 144, i % 256 / 32, i % 32);
                    let code = i64::from(blocks[block + 16 + g / 2 * 32 + j] >> (g % 2 * 4) & 15);
                    let factor = |at: usize| f64::from(blocks[block + 4 + at]);
                    // Six bits; of the later groups the upper two are those left over by the earlier ones.
                    let (a, b) = if g < 4 {
                        (factor(g) % 64.0, factor(g + 4) % 64.0)
                    } else {
                        let (low, up) = (factor(g + 4), |at: usize| (factor(at) / 64.0).floor() * 16.0);
                        (low % 16.0 + up(g - 4), (low / 16.0).floor() + up(g))
                    };
                    (code, number(block) * a, Some(-(number(block + 2) * b)))
                }
            };
            weights.q.push(code);
            if i % 32 == 0 {
                weights.scales.push(scale);
                weights.mins.extend(min);
            }
        }
        weights
    }
}

/// The scales of integer activations.
#[derive(Clone, Copy, Debug)]
pub struct RowScales<'a> {
    /// `[rows, ceil(k / group)]`, `[rows]`, or one for all.
    pub scales: &'a [f64],
    /// Columns that share a scale; none where a row has one, or all have.
    pub group: Option<usize>,
}

/// Columns in float beside integers; their integers count for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outliers<'a> {
    /// Which.
    pub columns: &'a [u32],
    /// `[rows, columns]`.
    pub x: &'a [f64],
    /// `[weight rows, columns]`.
    pub weights: &'a [f64],
}

/// Integer activations times integer weights, `[rows, weight rows]`.
///
/// Where both change scale along K, a sum ends wherever either does; one group is a multiple of the other.
pub fn integer_products(
    x: &[i32],
    row_scales: RowScales<'_>,
    weights: &Weights,
    outliers: Outliers<'_>,
) -> Vec<Bound> {
    let (k, count) = (weights.k, outliers.columns.len());
    let mut counts = vec![true; k];
    outliers.columns.iter().for_each(|&column| counts[column as usize] = false);
    let step = row_scales.group.unwrap_or(k).min(weights.group);
    let mut products = Vec::new();
    for (t, x) in x.chunks_exact(k).enumerate() {
        for n in 0..weights.rows {
            let mut terms = Vec::new();
            for start in (0..k).step_by(step) {
                let places = (start..k.min(start + step)).filter(|&i| counts[i]);
                let dot: i64 = places.clone().map(|i| i64::from(x[i]) * weights.q[n * k + i]).sum();
                let place = weights.place(n, start);
                let mut term = converted(dot).times(Bound::exact(weights.scales[place]));
                if let Some(&min) = weights.mins.get(place) {
                    let sum: i64 = places.map(|i| i64::from(x[i])).sum();
                    term = term.plus(converted(sum).times(Bound::exact(min)));
                }
                if let Some(group) = row_scales.group {
                    term = term.times(Bound::exact(row_scales.scales[t * k.div_ceil(group) + start / group]));
                }
                terms.push(term);
            }
            let mut product = Bound::total(&terms);
            if row_scales.group.is_none() {
                let scale = row_scales.scales[t.min(row_scales.scales.len() - 1)];
                product = product.times(Bound::exact(scale));
            }
            if count > 0 {
                let (x, w) = (&outliers.x[t * count..][..count], &outliers.weights[n * count..][..count]);
                product = product.plus(Bound::sum(x.iter().zip(w).map(|(x, w)| x * w)));
            }
            products.push(product);
        }
    }
    products
}

/// The bare sums of integer activations and integer weights, `[rows, weight rows]`.
pub fn bare_sums(x: &[i32], weights: &Weights) -> Vec<i64> {
    let k = weights.k;
    let sum = |x: &[i32], w: &[i64]| x.iter().zip(w).map(|(&x, &w)| i64::from(x) * w).sum();
    x.chunks_exact(k).flat_map(|x| weights.q.chunks_exact(k).map(move |w| sum(x, w))).collect()
}

/// Float activations times the elements of integer weights, `[rows, weight rows]`.
pub fn float_products(x: &[f64], weights: &Weights) -> Vec<Bound> {
    let k = weights.k;
    let elements: Vec<Bound> = (0..weights.rows * k).map(|i| weights.element(i / k, i % k)).collect();
    let mut products = Vec::new();
    for x in x.chunks_exact(k) {
        for w in elements.chunks_exact(k) {
            let terms = x.iter().zip(w).map(|(&x, w)| Bound { value: x * w.value, error: x.abs() * w.error });
            products.push(Bound::total(&terms.collect::<Vec<_>>()));
        }
    }
    products
}

/// An integer as F32: rounded once.
fn converted(sum: i64) -> Bound {
    Bound::exact(sum as f64).plus(Bound::exact(0.0))
}
