//! One dispatch, as an operator describes it: which shader, over which tensors, with which numbers.
//!
//! The shader's declarations are made from the description (`declarations`), so a tensor, a constant or a number has one
//! name, at the place where it is passed: an operand `x` is read by `x(i)` and written by `set_x(i, value)`, whatever its
//! type; a constant `KIND` is `KIND`; a number `rows` is `im.rows`.

use crate::{device::Wgpu, operand::Operand};
use halite_hal::{DType, Error, Result, Tensor};

/// WGSL that becomes one kernel or, with other constants and types, several.
#[derive(Debug)]
pub(crate) struct Shader {
    /// The operator, for errors and profilers.
    pub(crate) name: &'static str,
    /// What is put together after the declarations; the last part has the entry point `main`.
    pub(crate) source: &'static [&'static str],
}

/// `sum_of_lanes`, for shaders of several families; they say how many LANES they have.
pub(crate) const LANES_SUM: &str = include_str!("lanes_sum.wgsl");

/// How a shader sees an operand `x`. Indices count from the tensor's first element; strides are the caller's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// `x(i)`: `f32` of floats, `i32` of integers.
    In,
    /// `set_x(i, value)`, rounded to nearest even; neighbours of elements smaller than a word are left alone.
    Out,
    /// Both.
    InOut,
    /// `x(i)` and `set_x(i, value)` of the raw words: element `i` is `u32` word `i` from the operand's beginning, which is
    /// at a multiple of 4 bytes.
    Words,
    /// `x(i)`: four words at once, as `vec4<u32>`, of an operand that begins at a multiple of 16 bytes.
    Quads,
    /// `x_words[x_at(i)]`: the words as `atomic<u32>`.
    Atomic,
}

impl Access {
    /// Bytes of what an index counts.
    pub(crate) fn unit(self, dtype: DType) -> u64 {
        match self {
            Access::In | Access::Out | Access::InOut => dtype.size() as u64,
            Access::Words | Access::Atomic => 4,
            Access::Quads => 16,
        }
    }
}

/// What a shader is compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    U32(u32),
    Bool(bool),
}

impl Constant {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Constant::U32(value) => value,
            Constant::Bool(value) => value.into(),
        }
    }
}

/// A number that a shader is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    U32(u32),
    I32(i32),
    F32(f32),
}

impl Number {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Number::U32(value) => value,
            Number::I32(value) => value as u32,
            Number::F32(value) => value.to_bits(),
        }
    }
}

pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) access: Access,
    pub(crate) dtype: DType,
    /// None where the tensor is not given: `HAS_X` is false, `x(i)` is 0 and `set_x` does nothing.
    pub(crate) operand: Option<Operand>,
}

/// One dispatch.
pub(crate) struct Launch {
    pub(crate) shader: &'static Shader,
    pub(crate) operands: Vec<Bound>,
    pub(crate) constants: Vec<(&'static str, Constant)>,
    pub(crate) numbers: Vec<(&'static str, Number)>,
    /// Rounds that an invocation's loops take in all, at most.
    pub(crate) rounds: usize,
    fault: Option<Error>,
}

impl Launch {
    pub(crate) fn new(shader: &'static Shader) -> Self {
        let (operands, constants, numbers) = (Vec::new(), Vec::new(), Vec::new());
        Launch { shader, operands, constants, numbers, rounds: 0, fault: None }
    }

    /// A tensor, or part of a buffer.
    pub(crate) fn operand(mut self, name: &'static str, access: Access, operand: Operand) -> Self {
        self.operands.push(Bound { name, access, dtype: operand.dtype, operand: Some(operand) });
        self
    }

    /// A tensor that is read.
    pub(crate) fn input(self, name: &'static str, tensor: &Tensor<Wgpu>) -> Self {
        self.operand(name, Access::In, Operand::tensor(tensor))
    }

    /// A tensor that is written.
    pub(crate) fn output(self, name: &'static str, tensor: &Tensor<Wgpu>) -> Self {
        self.operand(name, Access::Out, Operand::tensor(tensor))
    }

    /// A tensor of `dtype` that may not be given; the shader asks `HAS_NAME`.
    pub(crate) fn maybe(
        self,
        name: &'static str,
        access: Access,
        dtype: DType,
        tensor: Option<&Tensor<Wgpu>>,
    ) -> Self {
        self.optional(name, access, dtype, tensor.map(Operand::tensor))
    }

    /// Likewise part of a buffer.
    pub(crate) fn optional(
        mut self,
        name: &'static str,
        access: Access,
        dtype: DType,
        operand: Option<Operand>,
    ) -> Self {
        self.operands.push(Bound { name, access, dtype, operand });
        self
    }

    /// A constant that the shader is compiled with: few values, or every one is a compilation.
    pub(crate) fn constant(mut self, name: &'static str, value: u32) -> Self {
        self.constants.push((name, Constant::U32(value)));
        self
    }

    /// A constant that is true or false.
    pub(crate) fn flag(mut self, name: &'static str, value: bool) -> Self {
        self.constants.push((name, Constant::Bool(value)));
        self
    }

    /// A size or a stride.
    pub(crate) fn size(mut self, name: &'static str, value: usize) -> Self {
        match u32::try_from(value) {
            Ok(value) => self.numbers.push((name, Number::U32(value))),
            Err(_) => {
                self.fault.get_or_insert(Error::Limit {
                    operator: self.shader.name,
                    argument: name,
                    got: value as u64,
                    limit: u32::MAX.into(),
                });
            }
        }
        self
    }

    /// A float.
    pub(crate) fn float(mut self, name: &'static str, value: f32) -> Self {
        self.numbers.push((name, Number::F32(value)));
        self
    }

    /// A signed integer.
    pub(crate) fn int(mut self, name: &'static str, value: i32) -> Self {
        self.numbers.push((name, Number::I32(value)));
        self
    }

    /// So many more rounds that an invocation's loops take, at most: see [`SOFTWARE_ROUNDS`].
    pub(crate) fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = self.rounds.saturating_add(rounds);
        self
    }

    /// What was wrong with the numbers.
    pub(crate) fn fault(&mut self) -> Result<()> {
        self.fault.take().map_or(Ok(()), Err)
    }
}

/// The rounds after which software adapters end all loops of an invocation, silently. Kernels whose loops go over what has
/// no limit otherwise say how many they take, and are refused there; GPUs go on.
pub(crate) const SOFTWARE_ROUNDS: usize = 65_535;

/// The most workgroups along one dimension.
pub(crate) const MAX_GROUPS: usize = 65_535;

/// A grid of at least `groups` workgroups: a shader finds its own by `linear_group`, and leaves where there are enough.
pub(crate) fn spread(groups: usize) -> [usize; 3] {
    let rows = groups.div_ceil(MAX_GROUPS);
    if rows == 0 { [0, 1, 1] } else { [groups.div_ceil(rows), rows, 1] }
}
