//! One launch, as an operator describes it: which kernel, compiled with what, over which tensors, with which numbers.
//!
//! Parameters are in the order of the kernel's; their names are for errors. A tensor is the address of its first element,
//! strides are numbers of elements, with 64 bits. What a source is compiled with is part of the description: the first
//! launch of a combination compiles it, and [`crate::programs`] has to list it.

use halite_hal::{DType, Error, Result, Tensor};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    driver::{LaunchShape, Parameters},
    kernels::{Constant, Variant},
    memory::CudaBuffer,
};

/// Blocks along x, y and z that every GPU allows.
pub(crate) const MOST_BLOCKS: [usize; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// The name of a type in kernels.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::I8 => "i8",
        DType::U8 => "u8",
        DType::I32 => "i32",
        // A type that no kernel knows does not compile.
        _ => "unknown",
    }
}

/// One launch.
pub(crate) struct Launch {
    pub(crate) operator: &'static str,
    pub(crate) entry: &'static str,
    pub(crate) variant: Variant,
    pub(crate) parameters: Parameters,
    /// Memory that the kernel touches, by the argument's name.
    pub(crate) memory: Vec<(&'static str, CudaBuffer)>,
    grid: [usize; 3],
    block: [u32; 3],
    shared: usize,
    fault: Option<Error>,
}

impl Launch {
    /// The kernel `entry` of a source, on behalf of an operator, by one block of 256 threads.
    pub(crate) fn new(operator: &'static str, source: &'static Source, entry: &'static str) -> Self {
        Launch {
            operator,
            entry,
            variant: Variant::new(source),
            parameters: Parameters::new(),
            memory: Vec::new(),
            grid: [1; 3],
            block: [256, 1, 1],
            shared: 0,
            fault: None,
        }
    }

    /// `#define NAME value`: few values, or every one is a compilation.
    pub(crate) fn constant(mut self, name: &'static str, value: usize) -> Self {
        // Nothing compiles for so large a number.
        self.variant.define(name, Constant::Number(i64::try_from(value).unwrap_or(i64::MAX)));
        self
    }

    /// `#define NAME f16`: the type of a tensor's elements.
    pub(crate) fn element(self, name: &'static str, dtype: DType) -> Self {
        self.word(name, element(dtype))
    }

    /// `#define NAME word`.
    pub(crate) fn word(mut self, name: &'static str, word: &'static str) -> Self {
        self.variant.define(name, Constant::Name(word));
        self
    }

    /// The address of a tensor's first element.
    pub(crate) fn tensor(self, argument: &'static str, tensor: &Tensor<Cuda>) -> Self {
        self.bytes(argument, tensor.buffer(), tensor.offset())
    }

    /// Likewise; null where there is none.
    pub(crate) fn maybe(mut self, argument: &'static str, tensor: Option<&Tensor<Cuda>>) -> Self {
        match tensor {
            Some(tensor) => self.tensor(argument, tensor),
            None => {
                self.parameters = self.parameters.u64(0);
                self
            }
        }
    }

    /// The address of byte `at` of a buffer.
    pub(crate) fn bytes(mut self, argument: &'static str, buffer: &CudaBuffer, at: u64) -> Self {
        self.parameters = self.parameters.u64(buffer.address() + at);
        self.memory.push((argument, buffer.clone()));
        self
    }

    /// A structure: what `fields` adds, in the order of its fields, the widest of which has 64 bits.
    pub(crate) fn structure(mut self, fields: impl FnOnce(Self) -> Self) -> Self {
        let before = std::mem::take(&mut self.parameters);
        self = fields(self);
        self.parameters = before.structure(&self.parameters);
        self
    }

    /// A size, stride or count: `i64`.
    pub(crate) fn size(mut self, argument: &'static str, value: usize) -> Self {
        let value = self.within(argument, value, i64::MAX as u64);
        self.parameters = self.parameters.i64(value);
        self
    }

    /// A size that the kernel counts with 32 bits: `i32`.
    pub(crate) fn count(mut self, argument: &'static str, value: usize) -> Self {
        let value = self.within(argument, value, i32::MAX as u64);
        self.parameters = self.parameters.i32(i32::try_from(value).unwrap_or(0));
        self
    }

    /// A signed number: `i32`.
    pub(crate) fn int(mut self, value: i32) -> Self {
        self.parameters = self.parameters.i32(value);
        self
    }

    /// Bits: `u64`.
    pub(crate) fn bits(mut self, value: u64) -> Self {
        self.parameters = self.parameters.u64(value);
        self
    }

    /// A float: `f32`.
    pub(crate) fn float(mut self, value: f32) -> Self {
        self.parameters = self.parameters.f32(value);
        self
    }

    /// Blocks along x, y and z; with none there is nothing to do.
    pub(crate) fn grid(mut self, blocks: [usize; 3]) -> Self {
        self.grid = blocks;
        self
    }

    /// Threads of a block, along x.
    pub(crate) fn block(mut self, threads: u32) -> Self {
        self.block = [threads, 1, 1];
        self
    }

    /// Dynamic shared memory of a block in bytes.
    pub(crate) fn shared(mut self, bytes: usize) -> Self {
        self.shared = bytes;
        self
    }

    /// What is compiled: for `programs()`.
    pub(crate) fn program(&self) -> Program {
        self.variant.program()
    }

    /// The grid, where the device has one of this size.
    pub(crate) fn shape(&mut self, shared_limit: u32) -> Result<LaunchShape> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let operator = self.operator;
        let limit = |argument, got: usize, limit: usize| {
            if got <= limit {
                // Below 2^31, all of them.
                return Ok(u32::try_from(got).unwrap_or(0));
            }
            Err(Error::Limit { operator, argument, got: got as u64, limit: limit as u64 })
        };
        let [x, y, z] = self.grid;
        let grid = [
            limit("blocks along x", x, MOST_BLOCKS[0])?,
            limit("blocks along y", y, MOST_BLOCKS[1])?,
            limit("blocks along z", z, MOST_BLOCKS[2])?,
        ];
        let shared = limit("shared memory of a block in bytes", self.shared, shared_limit as usize)?;
        Ok(LaunchShape::new(grid, self.block).shared(shared))
    }

    fn within(&mut self, argument: &'static str, value: usize, limit: u64) -> i64 {
        let (operator, got) = (self.operator, value as u64);
        if got > limit {
            self.fault.get_or_insert(Error::Limit { operator, argument, got, limit });
        }
        i64::try_from(got).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SOURCE: Source = Source::new("test.cu", "");

    fn limit(error: Error) -> (&'static str, u64, u64) {
        match error {
            Error::Limit { operator: "test", argument, got, limit } => (argument, got, limit),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_too_large_is_told_before_anything_is_launched() {
        let launch = || Launch::new("test", &SOURCE, "entry");
        let many = 1 << 31;
        let error = launch().grid([many, 1, 1]).shape(0).unwrap_err();
        assert_eq!(limit(error), ("blocks along x", 1 << 31, (1 << 31) - 1));
        let error = launch().grid([1, 65_536, 1]).shape(0).unwrap_err();
        assert_eq!(limit(error), ("blocks along y", 65_536, 65_535));
        let error = launch().grid([1, 1, 65_536]).shape(0).unwrap_err();
        assert_eq!(limit(error), ("blocks along z", 65_536, 65_535));
        let error = launch().shared(1001).shape(1000).unwrap_err();
        assert_eq!(limit(error), ("shared memory of a block in bytes", 1001, 1000));
        let error = launch().count("columns", many).shape(0).unwrap_err();
        assert_eq!(limit(error), ("columns", 1 << 31, (1 << 31) - 1));
        let error = launch().size("rows", usize::MAX).count("columns", many).shape(0).unwrap_err();
        assert_eq!(limit(error), ("rows", u64::MAX, i64::MAX as u64));
        launch().grid([many - 1, 65_535, 65_535]).size("rows", many).shared(1000).shape(1000).unwrap();
    }

    #[test]
    fn what_is_compiled_is_told_by_types_and_constants() {
        let launch = Launch::new("test", &SOURCE, "entry").element("X", DType::Bf16).constant("GATED", 1);
        assert_eq!(launch.constant("LANES", 32).program().to_string(), "test.cu (X=bf16, GATED=1, LANES=32)");
    }
}
