//! Products of integers with scales, zero points, groups and outlier columns; formulas from `halite_kernels::linear`.

use crate::tolerance::Bound;

/// One operand, `[rows, k]` of numbers `(q - zero_point) · scale`.
#[derive(Clone, Debug, Default)]
pub struct Integers {
    /// `[rows, k]`.
    pub q: Vec<i32>,
    /// A scale for each row, for each group of a row, or one.
    pub scales: Vec<f64>,
    /// A zero point for each row, or one; empty without.
    pub zero_points: Vec<i32>,
    /// Columns of a group; 0 where scales are not of groups.
    pub group: usize,
    /// `[rows, outlier columns]` in float.
    pub outliers: Vec<f64>,
}

impl Integers {
    /// What is `index` of a list with an entry for each row, or with one for all.
    fn of<T: Copy>(list: &[T], index: usize) -> Option<T> {
        list.get(index).or(if list.len() == 1 { list.first() } else { None }).copied()
    }

    /// A row's numbers before scaling.
    fn row(&self, row: usize, k: usize) -> impl Iterator<Item = i64> {
        let zero = i64::from(Self::of(&self.zero_points, row).unwrap_or(0));
        self.q[row * k..(row + 1) * k].iter().map(move |&q| i64::from(q) - zero)
    }

    fn scale(&self, row: usize) -> f64 {
        Self::of(&self.scales, row).unwrap_or(f64::NAN)
    }
}

/// `x · Wᵀ`, `[rows, weight_rows]`: `columns` are the outliers, ascending. Without scales where `bare`.
pub fn products(x: &Integers, w: &Integers, k: usize, columns: &[u32], bare: bool) -> Vec<Bound> {
    let (rows, weight_rows) = (x.q.len() / k, w.q.len() / k);
    let size = if x.group == 0 { k } else { x.group };
    let groups = k.div_ceil(size);
    let mut products = Vec::with_capacity(rows * weight_rows);
    for row in 0..rows {
        for n in 0..weight_rows {
            let mut sums = vec![0i64; groups];
            for (column, (x, w)) in x.row(row, k).zip(w.row(n, k)).enumerate() {
                if !columns.contains(&(column as u32)) {
                    sums[column / size] += x * w;
                }
            }
            let mut y = match sums[..] {
                [sum] if bare => Bound::exact(sum as f64),
                [sum] if x.group == 0 => {
                    rounded(sum).times(Bound::exact(w.scale(n))).times(Bound::exact(x.scale(row)))
                }
                _ => {
                    let mut y = Bound::exact(0.0);
                    for (sum, &scale) in sums.iter().zip(&x.scales[row * groups..]) {
                        y = y.plus(rounded(*sum).times(Bound::exact(scale)));
                    }
                    y.times(Bound::exact(w.scale(n)))
                }
            };
            if !columns.is_empty() {
                let count = columns.len();
                let (x, w) = (&x.outliers[row * count..][..count], &w.outliers[n * count..][..count]);
                y = y.plus(Bound::sum(x.iter().zip(w).map(|(x, w)| x * w)));
            }
            products.push(y);
        }
    }
    products
}

/// `i32` to F32 rounds once.
fn rounded(sum: i64) -> Bound {
    Bound::exact(sum as f64).plus(Bound::exact(0.0))
}
