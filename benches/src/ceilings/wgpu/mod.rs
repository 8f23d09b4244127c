//! What an adapter gives plain kernels: tiled products, products of one row with weights read once, and a read of memory.
//! They are written for the probe, in the usual way and with nothing clever, against raw wgpu: our kernels share no line
//! with them.

mod gpu;
mod probes;

use crate::work::{Bound, Product, Work};
use probes::Probes;
use std::{fmt, time::Duration};

/// How long one figure is measured; each is the median of three.
const LONG: Duration = Duration::from_millis(150);

/// `(rows, columns, depth)` of the tiled products.
pub(crate) const SHAPES: [(usize, usize, usize); 2] = [(512, 576, 1536), (512, 1536, 576)];

/// The ceilings of one adapter.
#[derive(Clone, Debug)]
pub struct AdapterCeilings {
    /// The adapter's name.
    pub adapter: String,
    /// Of INT8 products with sums of 32 bits.
    pub int8: Rates,
    /// Of F32 products.
    pub f32: Rates,
    /// Bytes a second, read from memory.
    pub read: f64,
}

/// The rates of products.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Operations a second of the tiled product in each of two shapes; a multiply-add is two.
    pub tiled: [f64; 2],
    /// Bytes of weights a second in the product of one row.
    pub row: f64,
}

impl AdapterCeilings {
    /// Measures the adapter of this number: some five seconds.
    pub fn of(index: usize) -> Self {
        eprintln!("probing the ceilings of adapter {index}");
        Self::probe(index, Some(LONG))
    }

    /// Measures each figure for `time`; where none is given, a try of one run each.
    ///
    /// # Panics
    /// Where there is no such adapter, or a probe's answer is wrong.
    #[allow(clippy::panic, reason = "a share of nothing must not be told")]
    pub fn probe(index: usize, time: Option<Duration>) -> Self {
        let probes = Probes::open(index).unwrap_or_else(|error| panic!("adapter {index}: {error}"));
        let rates = |product| Rates {
            tiled: SHAPES.map(|shape| probes.tiled(product, shape, time)),
            row: probes.row(product, time),
        };
        AdapterCeilings {
            adapter: probes.adapter(),
            int8: rates(Product::Int8),
            f32: rates(Product::F32),
            read: probes.read(time),
        }
    }

    /// All figures.
    pub fn figures(&self) -> [f64; 7] {
        let ([int8, int8_too], [f32, f32_too]) = (self.int8.tiled, self.f32.tiled);
        [int8, int8_too, self.int8.row, f32, f32_too, self.f32.row, self.read]
    }

    /// The probe that binds `work`: where several do, the one that would take longest.
    pub(crate) fn bound(&self, work: Work) -> Bound {
        let tiled = |product: Product, products| {
            let [first, second] = self.rates(product).tiled;
            let what = format!("a plain {} product", product.name());
            Bound::operations(products, what, Some(first.max(second)))
        };
        match work {
            Work::Products(product, products) => tiled(product, products),
            Work::Weights { product, products, moved, .. } => {
                let what = format!("a plain {} product of one row", product.name());
                let row = Bound::bytes(moved, what, self.rates(product).row);
                let tiled = tiled(product, products);
                if tiled.least_time() > row.least_time() { tiled } else { row }
            }
            Work::Bytes { moved, .. } => Bound::bytes(moved, "a plain read".to_owned(), self.read),
        }
    }

    fn rates(&self, product: Product) -> &Rates {
        match product {
            Product::Int8 => &self.int8,
            Product::F32 => &self.f32,
        }
    }
}

impl fmt::Display for AdapterCeilings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} | INT8 | F32 |\n|---|---|---|", self.adapter)?;
        for (place, (rows, columns, depth)) in SHAPES.into_iter().enumerate() {
            let [int8, f32] = [self.int8, self.f32].map(|rates| rates.tiled[place] / 1e9);
            writeln!(f, "| product {rows} x {columns} x {depth}, GOP/s | {int8:.1} | {f32:.1} |")?;
        }
        let [int8, f32] = [self.int8, self.f32].map(|rates| rates.row / 1e9);
        writeln!(f, "| product of one row, GB/s of weights | {int8:.1} | {f32:.1} |")?;
        writeln!(f, "| read, GB/s | {:.1} | |", self.read / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longest_binds() {
        let rates = |product, row| Rates { tiled: [product / 2.0, product], row };
        let ceilings = AdapterCeilings {
            adapter: String::new(),
            int8: rates(100e9, 10e9),
            f32: rates(50e9, 20e9),
            read: 30e9,
        };
        let told = |work| ceilings.bound(work).told(1.0);
        assert_eq!(
            told(Work::int8(25_000_000_000)),
            "at best 50.0 GOP/s, 50 % of a plain INT8 product (100.0)"
        );
        let weights = |rows: u64| Work::Weights {
            product: Product::Int8,
            products: rows * 5_000_000_000,
            moved: 5_000_000_000,
            resident: 5_000_000_000,
        };
        assert_eq!(told(weights(1)), "at best 5.0 GB/s, 50 % of a plain INT8 product of one row (10.0)");
        assert_eq!(told(weights(8)), "at best 80.0 GOP/s, 80 % of a plain INT8 product (100.0)");
        assert_eq!(told(Work::bytes(3_000_000_000)), "at best 3.0 GB/s, 10 % of a plain read (30.0)");
    }
}
