//! Checked arguments, and the checks that the families share.

use halite_hal::{DType, Device, Error, Result, Tensor};
use std::{fmt::Debug, ops::Deref};

/// Arguments that passed their family's check, with the context they were checked against.
///
/// Only the checks in this crate make one, so whoever holds it may rely on shapes, types, limits and on outputs that
/// overlap no input.
#[derive(Clone, Debug)]
pub struct Checked<T, C = ()> {
    value: T,
    context: C,
}

impl<T> Checked<T> {
    pub(crate) fn new(value: T) -> Self {
        Checked { value, context: () }
    }
}

impl<T, C> Checked<T, C> {
    pub(crate) fn with_context(value: T, context: C) -> Self {
        Checked { value, context }
    }

    /// What the value was checked against.
    pub fn context(&self) -> &C {
        &self.context
    }
}

impl<T, C: PartialEq + Debug> Checked<T, C> {
    /// Refuses a step that was checked against another plan's limits: every `…_update` asks this first.
    ///
    /// # Errors
    /// [`Error::Argument`] naming both limits.
    pub fn checked_against(&self, operator: &'static str, limits: &C) -> Result<()> {
        if self.context == *limits {
            return Ok(());
        }
        let expected = format!("a step checked against {limits:?}");
        Err(Check(operator).wrong("step", expected, format!("{:?}", self.context)))
    }
}

impl<T, C> Deref for Checked<T, C> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A tensor with the name of its argument.
pub(crate) type Named<'a, D> = (&'static str, Option<&'a Tensor<D>>);

/// The checks of one operator: they put its name into the errors.
#[derive(Clone, Copy)]
pub(crate) struct Check(pub(crate) &'static str);

impl Check {
    /// The error of a wrong argument.
    pub(crate) fn wrong(
        self,
        argument: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Error {
        Error::Argument { operator: self.0, argument, expected: expected.into(), got: got.into() }
    }

    /// `condition`, or the error of a wrong argument.
    pub(crate) fn that(
        self,
        condition: bool,
        argument: &'static str,
        expected: impl Into<String>,
        got: impl Debug,
    ) -> Result<()> {
        if condition { Ok(()) } else { Err(self.wrong(argument, expected, format!("{got:?}"))) }
    }

    /// Nothing was found that is wrong, or the error of what was.
    pub(crate) fn none(
        self,
        argument: &'static str,
        expected: impl Into<String>,
        found: Option<impl Debug>,
    ) -> Result<()> {
        found.map_or(Ok(()), |found| Err(self.wrong(argument, expected, format!("{found:?}"))))
    }

    /// The same, where what was got is said in words.
    pub(crate) fn holds(
        self,
        condition: bool,
        argument: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Result<()> {
        if condition { Ok(()) } else { Err(self.wrong(argument, expected, got)) }
    }

    /// At most `limit`.
    pub(crate) fn limit(self, argument: &'static str, got: usize, limit: usize) -> Result<()> {
        if got <= limit {
            Ok(())
        } else {
            Err(Error::Limit { operator: self.0, argument, got: got as u64, limit: limit as u64 })
        }
    }

    /// At least one.
    pub(crate) fn positive(self, argument: &'static str, got: usize) -> Result<()> {
        self.that(got > 0, argument, "at least 1", got)
    }

    /// `parts + 1` offsets from 0 on that never fall: part `i` is `offsets[i]..offsets[i + 1]`.
    pub(crate) fn offsets(self, argument: &'static str, offsets: &[u32], parts: usize) -> Result<()> {
        let right = offsets.len() == parts + 1 && offsets[0] == 0 && offsets.is_sorted();
        self.that(right, argument, format!("{} ascending offsets from 0 on", parts + 1), offsets)
    }

    /// A bound of `cap · tanh(y / cap)`, where there is one.
    pub(crate) fn soft_cap(self, cap: Option<f32>) -> Result<()> {
        let strange = cap.filter(|cap| !cap.is_finite() || *cap <= 0.0);
        self.none("soft_cap", "a finite number above zero", strange)
    }

    /// A tensor of this type and shape. Its innermost dimension is contiguous, as every tensor's is.
    pub(crate) fn tensor<D: Device>(
        self,
        argument: &'static str,
        tensor: &Tensor<D>,
        dtype: DType,
        dims: &[usize],
    ) -> Result<()> {
        if tensor.dtype() == dtype && tensor.dims() == dims {
            return Ok(());
        }
        let got = format!("{} {:?}", tensor.dtype(), tensor.dims());
        Err(self.wrong(argument, format!("{dtype} {dims:?}"), got))
    }

    /// The size of a tensor's first dimension; `rank` is what the operator wants.
    pub(crate) fn rows<D: Device>(
        self,
        argument: &'static str,
        tensor: &Tensor<D>,
        rank: usize,
    ) -> Result<usize> {
        match tensor.dims().first() {
            Some(&rows) if tensor.dims().len() == rank => Ok(rows),
            _ => Err(self.wrong(argument, format!("{rank} dimensions"), format!("{:?}", tensor.dims()))),
        }
    }

    /// No byte of `out` lies in the range of any of the others.
    pub(crate) fn disjoint<D: Device>(
        self,
        argument: &'static str,
        out: &Tensor<D>,
        others: &[Named<'_, D>],
    ) -> Result<()> {
        for (name, other) in others {
            if other.is_some_and(|other| out.overlaps(other)) {
                return Err(self.wrong(
                    argument,
                    format!("memory apart from `{name}`"),
                    format!("bytes {:?} of the same buffer", out.byte_range()),
                ));
            }
        }
        Ok(())
    }
}
