//! CANN's functions of one element and of two, as plans of one call each; and the greatest of a slice, and products of floats.

use halite_hal::Tensor;

use super::{Answer, Descriptor, Operation, Runtime, bindings, descriptor::Scalar, list::IntArray};
use crate::{abi::function, device::Ascend};

/// A function of each element, of the type and shape of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elementwise {
    Abs,
    Tanh,
    Silu,
    /// By the error function, or by its approximation with a hyperbolic tangent.
    Gelu {
        tanh: bool,
    },
    /// Times a number.
    Muls(f32),
    /// By a number.
    Divs(f32),
    /// Between two numbers; what becomes of NaN CANN's document does not say.
    Clamp(f32, f32),
    /// Other numbers for NaN and for the infinities above and below.
    NanToNum(f32, f32, f32),
}

/// Plans a call of `$name` over `$x` and `$out`, with what lies between them.
macro_rules! planned {
    ($runtime:expr, $name:literal, $first:ident, $second:ident, [$x:expr, $out:expr], |$from:ident, $to:ident| ($($argument:expr),*)) => {{
        let cann = $runtime.enter()?;
        let (first, second) = (function!(cann, $first)?, function!(cann, $second)?);
        Operation::plan($runtime, $name, second, $runtime.describe(&[$x, $out])?, |t, bytes, executor| {
            let ($from, $to) = (t[0].raw(), t[1].raw());
            // SAFETY: descriptors, scalars and arrays live; the results' places are the caller's.
            unsafe { first($($argument,)* bytes, executor) }
        })
    }};
}

impl Runtime {
    /// `out = of(x)`, element by element.
    pub(crate) fn elementwise(
        &self,
        of: Elementwise,
        x: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        match of {
            Elementwise::Abs => {
                planned!(self, "aclnnAbs", aclnnAbsGetWorkspaceSize, aclnnAbs, [x, out], |x, y| (x, y))
            }
            Elementwise::Tanh => {
                planned!(self, "aclnnTanh", aclnnTanhGetWorkspaceSize, aclnnTanh, [x, out], |x, y| (x, y))
            }
            Elementwise::Silu => {
                planned!(self, "aclnnSilu", aclnnSiluGetWorkspaceSize, aclnnSilu, [x, out], |x, y| (x, y))
            }
            Elementwise::Gelu { tanh } => {
                let form = i64::from(tanh);
                planned!(self, "aclnnGeluV2", aclnnGeluV2GetWorkspaceSize, aclnnGeluV2, [x, out], |x, y| (
                    x, form, y
                ))
            }
            Elementwise::Muls(factor) => self.with_scalars([factor], |[factor]| {
                planned!(self, "aclnnMuls", aclnnMulsGetWorkspaceSize, aclnnMuls, [x, out], |x, y| (
                    x, factor, y
                ))
            }),
            Elementwise::Divs(divisor) => self.with_scalars([divisor], |[divisor]| {
                planned!(self, "aclnnDivs", aclnnDivsGetWorkspaceSize, aclnnDivs, [x, out], |x, y| (
                    x, divisor, y
                ))
            }),
            Elementwise::Clamp(least, most) => self.with_scalars([least, most], |[least, most]| {
                planned!(self, "aclnnClamp", aclnnClampGetWorkspaceSize, aclnnClamp, [x, out], |x, y| (
                    x, least, most, y
                ))
            }),
            Elementwise::NanToNum(nan, above, below) => planned!(
                self,
                "aclnnNanToNum",
                aclnnNanToNumGetWorkspaceSize,
                aclnnNanToNum,
                [x, out],
                |x, y| (x, nan, above, below, y)
            ),
        }
    }

    /// `out = x / y`; dimensions of 1 are repeated.
    pub(crate) fn div(
        &self,
        x: &Tensor<Ascend>,
        y: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnDivGetWorkspaceSize)?, function!(cann, aclnnDiv)?);
        Operation::plan(self, "aclnnDiv", second, self.describe(&[x, y, out])?, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), t[2].raw(), bytes, executor) }
        })
    }

    /// `out` receives the greatest along these dimensions, which become 1.
    pub(crate) fn amax(&self, x: &Tensor<Ascend>, along: &[i64], out: &Tensor<Ascend>) -> Answer<Operation> {
        let array = IntArray::of(self, along)?;
        let dims = array.raw();
        let plan = || {
            planned!(self, "aclnnAmax", aclnnAmaxGetWorkspaceSize, aclnnAmax, [x, out], |x, y| (
                x, dims, true, y
            ))
        };
        Ok(plan()?.with(Vec::new(), vec![array]))
    }

    /// `out = x · wᵀ`, in the arithmetic of their type.
    pub(crate) fn matmul(
        &self,
        x: &Tensor<Ascend>,
        w: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Answer<Operation> {
        let cann = self.enter()?;
        let (first, second) = (function!(cann, aclnnMatmulGetWorkspaceSize)?, function!(cann, aclnnMatmul)?);
        let mut tensors = self.describe(&[x, out])?;
        tensors.insert(1, Descriptor::turned(self, w)?);
        Operation::plan(self, "aclnnMatmul", second, tensors, |t, bytes, executor| {
            // SAFETY: descriptors live; the results' places are the caller's.
            unsafe { first(t[0].raw(), t[1].raw(), t[2].raw(), 0, bytes, executor) }
        })
    }

    /// Plans with numbers.
    fn with_scalars<const N: usize>(
        &self,
        values: [f32; N],
        plan: impl FnOnce([*const bindings::aclScalar; N]) -> Answer<Operation>,
    ) -> Answer<Operation> {
        let scalars: Vec<Scalar> =
            values.iter().map(|&value| Scalar::f32(self, value)).collect::<Answer<_>>()?;
        let raw = std::array::from_fn(|number| scalars[number].raw().cast_const());
        Ok(plan(raw)?.with_scalars(scalars))
    }
}
