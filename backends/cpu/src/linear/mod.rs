//! Linear layers with packed weights.
//!
//! `packed` and `pack_groups` make the weights' panels; `int8` and `float` multiply tiles of rows with them, `scaled` gives
//! integer sums their scales, `group_wise` and `dequantized` are for weights whose scales change along K (each a
//! [`Product`](product::Product)), and `choice` is which of them; `widened` multiplies rows of F16 and BF16 where there is
//! no scratch memory for them; `finish` and `requantize` are what happens to a tile on its
//! way out (each an [`Epilogue`](epilogue::Epilogue)). Tasks share a product by panels, so every number of rows, one
//! included, uses all threads.

pub(crate) mod blocks;
mod choice;
mod dequantize;
mod dequantized;
pub(crate) mod epilogue;
mod few_rows;
mod finish;
pub(crate) mod float;
mod group_wise;
mod group_wise_tile;
mod groups;
pub(crate) mod int8;
mod lora;
mod outliers;
pub(crate) mod output;
pub(crate) mod pack;
mod pack_groups;
mod packed;
pub(crate) mod product;
mod quantized;
mod requantize;
mod scaled;
mod scratch;
pub(crate) mod widened;
mod zero_points;

pub use lora::CpuLoraPlan;
pub use packed::CpuPacked;

use crate::{
    activation::element_supports,
    device::Cpu,
    simd::StoredFloat,
    stream::CpuStream,
    view::{Reader, Writer, read, with_float, write},
};
use choice::{Ending, FloatKernel};
use dequantized::DequantizedProduct;
use epilogue::Epilogue;
use finish::{Arithmetic, Finish};
use float::{FloatProduct, FloatRows, FloatWeights};
use halite_hal::{DType, Element, Error, Result, Storage, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{Activations, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
};
use output::OutputRows;
use product::{Multiply, Product};
use requantize::Requantize;
use scratch::Sizes;

impl Linear for Cpu {
    type Packed = CpuPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        match spec.weights {
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
            | WeightFormat::Q4K => spec.gate.map_or(Support::Native, element_supports),
            other => Support::No(format!("weights {other:?} are not implemented")),
        }
    }

    fn linear_pack(
        &self,
        _stream: &mut CpuStream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<CpuPacked> {
        self.pack(&weights)
    }

    fn linear_save(&self, _stream: &mut CpuStream, packed: &CpuPacked) -> Result<Vec<u8>> {
        packed::save(packed)
    }

    fn linear_restore(&self, _stream: &mut CpuStream, spec: &LinearSpec, saved: &[u8]) -> Result<CpuPacked> {
        packed::restore(self, spec, saved)
    }

    fn linear_workspace(&self, packed: &CpuPacked, max_rows: usize) -> u64 {
        Sizes::of(packed, max_rows).total()
    }

    fn linear(&self, stream: &mut CpuStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        if let Some(activation) = args.epilogue.activation {
            element_supports(activation).require("linear", self, &activation)?;
        }
        if args.out.shape().elements() == 0 {
            return Ok(());
        }
        match (&args.x, args.x.quantized()) {
            (_, Some(x)) => self.integers(stream, &args, &x),
            (Activations::Float(x), _) => self.floats(stream, &args, x),
            (other, _) => Err(crate::unsupported("linear", "this form of activations", other)),
        }
    }
}

impl Cpu {
    /// Float activations.
    fn floats(&self, stream: &mut CpuStream, args: &LinearArgs<'_, Cpu>, x: &Tensor<Cpu>) -> Result<()> {
        let (rows, k) = (args.out.dims()[0], args.weights.as_ref().in_features);
        if x.dtype() == DType::F32 {
            let x = read::<f32>(x)?;
            return self.float_rows(args, FloatRows::new(x.data(), rows, x.rows.outer_stride, k));
        }
        let sizes = Sizes::of(args.weights, rows);
        let wide = sizes.cut(stream.scratch("linear", sizes.total())?).floats;
        self.widen_rows(x, wide)?;
        self.float_rows(args, FloatRows::new(wide, rows, k, k))
    }

    fn float_rows(&self, args: &LinearArgs<'_, Cpu>, rows: FloatRows<'_>) -> Result<()> {
        let spec = args.weights.as_ref();
        let panels = args.weights.panels().read(0..args.weights.panels().len())?;
        match FloatKernel::of(spec) {
            FloatKernel::Dequantized => {
                self.finish(args, DequantizedProduct { rows, weights: args.weights.groups(&panels) })
            }
            FloatKernel::Stored(dtype) => with_float!(dtype, Stored => {
                let panels: &[Stored] = bytemuck::cast_slice(&panels);
                let columns = args.weights.columns();
                let weights = FloatWeights::new(panels, spec.weight_rows(), spec.in_features, columns);
                self.finish(args, FloatProduct::new(rows, weights))
            }),
        }
    }

    /// Runs a product and what follows it.
    fn finish<P: Product<Sum = f32> + Copy + Sync>(
        &self,
        args: &LinearArgs<'_, Cpu>,
        product: P,
    ) -> Result<()> {
        let output = args.weights.as_ref().output;
        match Ending::of(output) {
            Ending::Requantize => {
                let Some(scale) = args.epilogue.output_scale else {
                    return Err(no_scale());
                };
                let bias = args.epilogue.bias.map(read::<f32>).transpose()?;
                let arithmetic = || arithmetic(args, bias.as_ref());
                let share = |out: OutputRows<'_, i8>, flip| {
                    self.share(product, out, |out| Requantize { arithmetic: arithmetic(), scale, flip, out });
                };
                if output == DType::I8 {
                    share(rows_of(&mut write::<i8>(args.out)?), 0);
                } else {
                    let mut out = write::<u8>(args.out)?;
                    let layout = out.rows;
                    let values = bytemuck::cast_slice_mut(out.data());
                    share(OutputRows::new(values, layout.outer, layout.columns, layout.outer_stride), 0x80);
                }
                Ok(())
            }
            Ending::Finish(dtype) => {
                with_float!(dtype, Float => self.finish_floats::<Float, P>(args, product))
            }
        }
    }

    fn finish_floats<T: StoredFloat + Element, P: Product<Sum = f32> + Copy + Sync>(
        &self,
        args: &LinearArgs<'_, Cpu>,
        product: P,
    ) -> Result<()> {
        let bias = args.epilogue.bias.map(read::<f32>).transpose()?;
        let residual = args.epilogue.residual.map(read::<T>).transpose()?;
        let residual = residual.as_ref().map(|residual| (residual.data(), residual.rows));
        let mut out = write::<T>(args.out)?;
        self.share(product, rows_of(&mut out), |out| Finish {
            arithmetic: arithmetic(args, bias.as_ref()),
            residual,
            out,
        });
        Ok(())
    }

    /// Runs `product` over all panels, in as many tasks as they are worth.
    fn share<'a, T: Send, P: Product + Copy + Sync, E: Epilogue<Sum = P::Sum>>(
        &self,
        product: P,
        out: OutputRows<'a, T>,
        epilogue: impl Fn(OutputRows<'a, T>) -> E + Sync,
    ) {
        let panels = product.panels();
        let per_task = self.team().units_per_task(panels, product.panel_cost());
        let tasks = (0..panels).step_by(per_task).map(|first| {
            // SAFETY: tasks take disjoint ranges of panels, and panels write disjoint columns.
            (first..panels.min(first + per_task), unsafe { out.alias() })
        });
        self.team().each(tasks, |(panels, out)| {
            self.tier().run(Multiply { product, panels, epilogue: epilogue(out) });
        });
    }
}

/// The shared checks ask for the scale where the output is integers.
fn no_scale() -> Error {
    let (expected, got) = ("a scale for integers".to_owned(), "none".to_owned());
    Error::Argument { operator: "linear", argument: "output_scale", expected, got }
}

/// A tensor of rows as a matrix to write to.
fn rows_of<'a, T: Element>(out: &'a mut Writer<'_, T>) -> OutputRows<'a, T> {
    let layout = out.rows;
    OutputRows::new(out.data(), layout.outer, layout.columns, layout.outer_stride)
}

/// What the epilogue computes.
fn arithmetic<'a>(args: &LinearArgs<'_, Cpu>, bias: Option<&'a Reader<'_, f32>>) -> Arithmetic<'a> {
    let spec = args.weights.as_ref();
    Arithmetic {
        columns: args.weights.columns(),
        results: spec.out_features,
        bias: bias.map(|bias| bias.data()),
        activation: spec.gate.or(args.epilogue.activation),
        soft_cap: args.epilogue.soft_cap,
    }
}
