//! Linear layers with packed weights.
//!
//! `layout` is how weights lie in memory and `pack` puts them there; `packed` keeps, saves and restores them. `product`
//! multiplies rows with them, by one of two kernels over the same parts: `vector.wgsl` where there are few rows,
//! `product.wgsl` for many. A part is the arithmetic (`floats.wgsl`; `integers.wgsl` with `whole.wgsl` or `steps.wgsl`), one
//! unpacks a format (`weights_*.wgsl`), one is what follows (`epilogue.wgsl`, `sums.wgsl`). `segments` cuts K alike for both,
//! so a row's bits depend on nothing but the row.

mod adapter_rows;
mod layout;
mod lora;
mod pack;
mod packed;
pub(crate) mod product;
mod segments;
mod shaders;
mod successive;

pub use lora::WgpuLoraPlan;
pub use packed::WgpuPacked;
pub(crate) use successive::Successive;

use crate::{activation, device::Wgpu, stream::WgpuStream};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::{HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
};
use product::{After, Input, Matrix, Product};

/// Software adapters end all loops of an invocation, silently, after 65,535 rounds in total: six for 32 floats.
const MAX_IN_FEATURES: usize = 348_160;
/// The same, for columns in float.
const MAX_OUTLIERS: usize = 131_072;

impl Linear for Wgpu {
    type Packed = WgpuPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        let known = matches!(
            spec.weights,
            WeightFormat::F32
                | WeightFormat::F16
                | WeightFormat::Bf16
                | WeightFormat::Int8PerChannel
                | WeightFormat::Int8PerChannelAsymmetric
                | WeightFormat::Int8PerTensor
                | WeightFormat::Int8PerGroup { .. }
                | WeightFormat::Int4PerGroup { .. }
                | WeightFormat::Q4_0
                | WeightFormat::Q4_1
                | WeightFormat::Q4K
        );
        let outliers = spec.outliers.map_or(0, |outliers| outliers.columns);
        match spec.gate {
            _ if !known => Support::No(format!("weights {:?} are not implemented", spec.weights)),
            Some(gate) if activation::code(gate).is_none() => {
                Support::No(format!("{gate:?} is not implemented"))
            }
            _ if spec.in_features > MAX_IN_FEATURES => {
                Support::No(format!("in_features {} is above {MAX_IN_FEATURES}", spec.in_features))
            }
            _ if outliers > MAX_OUTLIERS => {
                Support::No(format!("{outliers} outlier columns are more than {MAX_OUTLIERS}"))
            }
            _ => Support::Native,
        }
    }

    fn linear_pack(
        &self,
        stream: &mut WgpuStream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<WgpuPacked> {
        self.pack(stream, &weights)
    }

    fn linear_save(&self, stream: &mut WgpuStream, packed: &WgpuPacked) -> Result<Vec<u8>> {
        packed::save(stream, packed)
    }

    fn linear_restore(&self, stream: &mut WgpuStream, spec: &LinearSpec, saved: &[u8]) -> Result<WgpuPacked> {
        self.restore(stream, spec, saved)
    }

    fn linear_workspace(&self, _: &WgpuPacked, _: usize) -> u64 {
        0
    }

    fn linear(&self, stream: &mut WgpuStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        let product = Product {
            weights: args.weights,
            input: Input::of(&args.x)?,
            after: After::of(&args.epilogue),
            out: Matrix::of(args.out),
            rows: args.out.dims()[0],
            range: None,
        };
        product.queue(stream)
    }
}
