//! The generator of random cases: counter-based, so that a value depends on seed and place only.

/// A stream of pseudo-random numbers: SplitMix64's finaliser (Steele et al. 2014) over seed and counter.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    counter: u64,
}

impl Rng {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Rng { seed: mix(seed ^ 0x5EED_5EED_5EED_5EED), counter: 0 }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.counter += 1;
        mix(self.seed ^ mix(self.counter))
    }

    /// Uniform in `0..below`; 0 where `below` is 0.
    pub fn below(&mut self, below: usize) -> usize {
        if below == 0 { 0 } else { (self.bits() % below as u64) as usize }
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A coin.
    pub fn coin(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// Of either sign, magnitude in [0.5, 1): no element is so small that losing it could pass for rounding.
    pub fn away(&mut self) -> f32 {
        let magnitude = 0.5 + self.unit() / 2.0;
        if self.coin() { magnitude } else { -magnitude }
    }

    /// Of either sign, magnitude spread evenly over the octaves from 2^-8 to 2^4.
    pub fn spread(&mut self) -> f32 {
        let magnitude = (1.0 + self.unit()) * 2f32.powi(self.below(12) as i32 - 8);
        if self.coin() { magnitude } else { -magnitude }
    }

    /// `count` values of [`Rng::away`].
    pub fn aways(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.away()).collect()
    }

    /// `count` values of [`Rng::spread`].
    pub fn spreads(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.spread()).collect()
    }

    /// `count` INT8 values, -128 included, none of them 0.
    pub fn int8(&mut self, count: usize) -> Vec<i8> {
        (0..count)
            .map(|_| match self.below(255) as i16 - 128 {
                value if value < 0 => value as i8,
                value => (value + 1) as i8,
            })
            .collect()
    }

    /// `0..count` in random order (Fisher and Yates).
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_and_another_seed_another() {
        let take = |seed| {
            let mut rng = Rng::new(seed);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn int8_covers_both_ends_and_never_gives_zero() {
        let values = Rng::new(1).int8(20_000);
        assert!(values.contains(&-128) && values.contains(&127));
        assert!(!values.contains(&0));
    }
}
