//! What happens to a product on its way out.

use crate::activation::Activation;
use halite_hal::{Device, Tensor};

/// What happens to the product; see [the module](crate::linear) for the order.
#[derive(Clone, Debug)]
pub struct Epilogue<'a, D: Device> {
    /// F32 `[weight_rows]`.
    pub bias: Option<&'a Tensor<D>>,
    /// Applied to each element of a layer without a gate.
    pub activation: Option<Activation>,
    /// Bounds each element of the result by `cap · tanh(y / cap)` before the residual is added (the logits of Gemma 2,
    /// arXiv:2408.00118); finite and above zero.
    pub soft_cap: Option<f32>,
    /// `[rows, out_features]` of the output's type, apart from `out`.
    pub residual: Option<&'a Tensor<D>>,
}

impl<D: Device> Default for Epilogue<'_, D> {
    fn default() -> Self {
        Epilogue { bias: None, activation: None, soft_cap: None, residual: None }
    }
}
