//! What a call does, by which its speed is told, and the ceiling that binds it.

#[cfg(feature = "cpu")]
use crate::ceilings::Ceilings;
use criterion::Throughput;

/// Which arithmetic a product is done in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// INT8 with sums of 32 bits.
    Int8,
    /// F32, whatever the storage.
    F32,
}

impl Product {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Product::Int8 => "INT8",
            Product::F32 => "F32",
        }
    }
}

/// What one call does.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// So many multiply-adds.
    Products(Product, u64),
    /// So many multiply-adds of few rows with weights, which are read once.
    Weights {
        /// The arithmetic.
        product: Product,
        /// Multiply-adds of a call.
        products: u64,
        /// Bytes of the weights of a call.
        moved: u64,
        /// Bytes of the weights of all calls together.
        resident: u64,
    },
    /// Bytes read and written, which lie where a set of `resident` bytes lies.
    Bytes {
        /// Bytes a call moves.
        moved: u64,
        /// Bytes that all calls together go through.
        resident: u64,
    },
}

impl Work {
    /// Multiply-adds of INT8.
    pub fn int8(products: u64) -> Self {
        Work::Products(Product::Int8, products)
    }

    /// Multiply-adds of F32.
    pub fn f32(products: u64) -> Self {
        Work::Products(Product::F32, products)
    }

    /// Bytes that every call finds where the one before left them.
    pub fn bytes(moved: u64) -> Self {
        Work::Bytes { moved, resident: moved }
    }

    pub(crate) fn throughput(self) -> Throughput {
        match self {
            Work::Products(_, products) => Throughput::Elements(products),
            Work::Weights { moved, .. } | Work::Bytes { moved, .. } => Throughput::Bytes(moved),
        }
    }

    /// What binds it on the CPU: arithmetic, or the level of memory that its bytes lie in, whichever takes longer.
    #[cfg(feature = "cpu")]
    pub(crate) fn bound_on_cpu(self, ceilings: &Ceilings) -> Bound {
        let arithmetic = |product: Product, products| {
            let rate = match product {
                Product::Int8 => ceilings.int8,
                Product::F32 => ceilings.f32,
            };
            let what = format!("{} on all cores", product.name());
            Bound::operations(products, what, rate.map(|rate| rate.all))
        };
        let memory = |moved, resident: u64| {
            let level = ceilings.level(resident as usize);
            Bound::bytes(moved, format!("{} read by all cores", level.name), level.rate.all)
        };
        match self {
            Work::Products(product, products) => arithmetic(product, products),
            Work::Weights { product, products, moved, resident } => {
                let (products, bytes) = (arithmetic(product, products), memory(moved, resident));
                if products.least_time() > bytes.least_time() { products } else { bytes }
            }
            Work::Bytes { moved, resident } => memory(moved, resident),
        }
    }
}

/// A ceiling, and how much of its units a call has.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    units: f64,
    unit: &'static str,
    what: String,
    /// Units a second, where the machine has it.
    ceiling: Option<f64>,
}

impl Bound {
    /// By arithmetic: a multiply-add is two operations.
    pub(crate) fn operations(products: u64, what: String, ceiling: Option<f64>) -> Self {
        Bound { units: 2.0 * products as f64, unit: "GOP/s", what, ceiling }
    }

    /// By memory.
    pub(crate) fn bytes(moved: u64, what: String, ceiling: f64) -> Self {
        Bound { units: moved as f64, unit: "GB/s", what, ceiling: Some(ceiling) }
    }

    /// The least time that the ceiling allows, in seconds.
    #[cfg(any(feature = "cpu", feature = "wgpu"))]
    pub(crate) fn least_time(&self) -> f64 {
        self.ceiling.map_or(0.0, |ceiling| self.units / ceiling)
    }

    /// What a call in so many seconds makes of it.
    pub(crate) fn told(&self, seconds: f64) -> String {
        let Bound { units, unit, what, ceiling } = self;
        let rate = units / seconds / 1e9;
        match ceiling {
            Some(ceiling) => {
                let (ceiling, share) = (ceiling / 1e9, 100.0 * units / seconds / ceiling);
                format!("at best {rate:.1} {unit}, {share:.0} % of {what} ({ceiling:.1})")
            }
            None => format!("at best {rate:.1} {unit}; this machine has no ceiling of {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_ceiling() {
        let bound = Bound::operations(500_000_000, "INT8".to_owned(), Some(4e9));
        assert_eq!(bound.told(0.5), "at best 2.0 GOP/s, 50 % of INT8 (4.0)");
        let bound = Bound::bytes(3_000_000_000, "memory".to_owned(), 10e9);
        assert_eq!(bound.told(1.0), "at best 3.0 GB/s, 30 % of memory (10.0)");
        let none = Bound::operations(500_000_000, "INT8".to_owned(), None);
        assert_eq!(none.told(1.0), "at best 1.0 GOP/s; this machine has no ceiling of INT8");
    }
}
