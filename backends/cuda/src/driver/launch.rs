//! How a kernel is launched, and with what.

use std::fmt;

use super::{Description, DriverError, KernelAttributes};

/// The grid of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
}

/// Blocks along x, y and z that every GPU allows.
const LARGEST_GRID: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
/// Threads along x, y and z that every GPU allows.
const LARGEST_BLOCK: [u64; 3] = [1024, 1024, 64];

impl LaunchShape {
    /// A grid of blocks without dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchShape { grid, block, shared: 0 }
    }

    /// Gives each block this much dynamic shared memory.
    #[must_use]
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Whether there are no blocks: then there is nothing to launch.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }

    /// Checks the shape against what the device and the kernel allow.
    ///
    /// # Errors
    /// [`DriverError::Limit`].
    pub fn check(&self, device: &Description, kernel: &KernelAttributes) -> Result<(), DriverError> {
        let limit = |what, got: u64, limit: u64| {
            if got > limit { Err(DriverError::Limit { what, got, limit }) } else { Ok(()) }
        };
        let (grids, blocks) = (["grid.x", "grid.y", "grid.z"], ["block.x", "block.y", "block.z"]);
        for axis in 0..3 {
            limit(grids[axis], self.grid[axis].into(), LARGEST_GRID[axis])?;
            limit(blocks[axis], self.block[axis].into(), LARGEST_BLOCK[axis])?;
        }
        let threads: u64 = self.block.iter().map(|&side| u64::from(side)).product();
        if threads == 0 {
            return Err(DriverError::Limit { what: "blocks without threads", got: 1, limit: 0 });
        }
        limit("threads of a block", threads, kernel.threads_per_block.into())?;
        let shared = u64::from(self.shared) + u64::from(kernel.static_shared);
        limit("shared memory of a block in bytes", shared, device.shared_per_block.into())?;
        let ready = "dynamic shared memory in bytes, of what the kernel was made ready for,";
        limit(ready, self.shared.into(), kernel.dynamic_shared.into())
    }
}

/// `grid 4x2x1, block 128x1x1, 49152 bytes of dynamic shared memory`.
impl fmt::Display for LaunchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        write!(f, "grid {gx}x{gy}x{gz}, block {bx}x{by}x{bz}, {} bytes of dynamic shared memory", self.shared)
    }
}

/// What a kernel is given, laid out as it lies before the kernel: each parameter at a multiple of its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The bytes in words, so that each parameter is aligned in memory too.
    words: Vec<u64>,
    /// Offset and size of each.
    places: Vec<(usize, usize)>,
}

impl Parameters {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a 64-bit integer, or an address.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.add(value, 8)
    }

    /// Adds a signed 64-bit integer.
    #[must_use]
    pub fn i64(self, value: i64) -> Self {
        self.add(value.cast_unsigned(), 8)
    }

    /// Adds a 32-bit integer.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.add(value.into(), 4)
    }

    /// Adds a signed 32-bit integer.
    #[must_use]
    pub fn i32(self, value: i32) -> Self {
        self.add(value.cast_unsigned().into(), 4)
    }

    /// Adds a float.
    #[must_use]
    pub fn f32(self, value: f32) -> Self {
        self.add(value.to_bits().into(), 4)
    }

    /// Adds a structure of these fields, the widest of which has 64 bits.
    #[must_use]
    pub fn structure(mut self, fields: &Parameters) -> Self {
        let offset = self.end().next_multiple_of(8);
        self.places.push((offset, fields.end().next_multiple_of(8)));
        self.words.extend(&fields.words);
        self
    }

    /// Offset and size in bytes of each.
    pub fn places(&self) -> &[(usize, usize)] {
        &self.places
    }

    /// All bytes, from the first parameter to the end of the last.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.end());
        bytes
    }

    /// The bytes in memory, each parameter aligned. (GPUs and the hosts they have are little-endian.)
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Checks them against what the kernel declares, where that is known.
    ///
    /// # Errors
    /// [`DriverError::Parameters`].
    pub fn check(&self, kernel: &KernelAttributes) -> Result<(), DriverError> {
        match &kernel.parameters {
            Some(expected) if *expected != self.places => {
                Err(DriverError::Parameters { expected: expected.clone(), got: self.places.clone() })
            }
            _ => Ok(()),
        }
    }

    fn end(&self) -> usize {
        self.places.last().map_or(0, |(offset, size)| offset + size)
    }

    fn add(mut self, value: u64, size: usize) -> Self {
        let offset = self.end().next_multiple_of(size);
        self.places.push((offset, size));
        let value = value << (8 * (offset % 8));
        // No parameter crosses a word: its offset is a multiple of its size.
        match self.words.get_mut(offset / 8) {
            Some(word) => *word |= value,
            None => self.words.push(value),
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Architecture;

    #[test]
    fn parameters_lie_as_a_kernel_declares_them() {
        let parameters = Parameters::new().i32(-2).u64(3).u32(4).f32(1.0).i64(-5).i32(6);
        assert_eq!(parameters.places(), [(0, 4), (8, 8), (16, 4), (20, 4), (24, 8), (32, 4)]);
        let mut expected = (-2_i32).to_le_bytes().to_vec();
        expected.extend([0; 4]);
        expected.extend(3_u64.to_le_bytes());
        expected.extend(4_u32.to_le_bytes());
        expected.extend(1.0_f32.to_le_bytes());
        expected.extend((-5_i64).to_le_bytes());
        expected.extend(6_i32.to_le_bytes());
        assert_eq!(parameters.bytes(), expected);
        assert!(Parameters::new().bytes().is_empty());
    }

    #[test]
    fn a_structure_is_one_parameter_of_whole_words() {
        let fields = Parameters::new().u64(7).i32(8);
        let parameters = Parameters::new().i32(1).structure(&fields).i32(2);
        assert_eq!(parameters.places(), [(0, 4), (8, 16), (24, 4)]);
        let words: Vec<u8> = [1_u64, 7, 8].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(parameters.bytes(), [&words[..], &2_i32.to_le_bytes()].concat());
    }

    #[test]
    fn parameters_that_a_kernel_does_not_declare_are_refused() {
        let kernel = KernelAttributes::new(32, 1024).with_parameters(vec![(0, 8), (8, 4)]);
        Parameters::new().u64(1).i32(2).check(&kernel).unwrap();
        for wrong in
            [Parameters::new().u64(1), Parameters::new().i32(1).u64(2), Parameters::new().u64(1).i64(2)]
        {
            assert!(matches!(wrong.check(&kernel), Err(DriverError::Parameters { .. })), "{wrong:?}");
        }
        Parameters::new().check(&KernelAttributes::new(32, 1024)).unwrap();
    }

    #[test]
    fn a_shape_is_held_against_device_and_kernel() {
        let device = Description::new("test".into(), Architecture::OLDEST, 1, 1 << 30, 100_000);
        let kernel = KernelAttributes::new(32, 256).with_shared(1000).with_dynamic_shared(u32::MAX);
        let shape =
            |grid, block, shared| LaunchShape::new(grid, block).shared(shared).check(&device, &kernel);
        shape([(1 << 31) - 1, 65_535, 65_535], [256, 1, 1], 99_000).unwrap();
        shape([1, 1, 1], [1, 4, 64], 0).unwrap();
        for (grid, block, shared, what) in [
            ([1 << 31, 1, 1], [1, 1, 1], 0, "grid.x is 2147483648"),
            ([1, 65_536, 1], [1, 1, 1], 0, "grid.y"),
            ([1, 1, 65_536], [1, 1, 1], 0, "grid.z"),
            ([1, 1, 1], [1, 1, 65], 0, "block.z"),
            ([1, 1, 1], [257, 1, 1], 0, "threads of a block is 257, beyond the limit of 256"),
            ([1, 1, 1], [0, 1, 1], 0, "blocks without threads"),
            ([1, 1, 1], [1, 1, 1], 99_001, "shared memory of a block in bytes is 100001"),
        ] {
            let error = shape(grid, block, shared).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        let unready = KernelAttributes::new(32, 256).with_dynamic_shared(100);
        let error = LaunchShape::new([1, 1, 1], [1, 1, 1]).shared(101).check(&device, &unready).unwrap_err();
        assert!(error.to_string().contains("made ready for, is 101, beyond the limit of 100"), "{error}");
        assert!(LaunchShape::new([1, 0, 1], [1, 1, 1]).is_empty());
    }
}
