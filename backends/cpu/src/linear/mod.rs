//! Linear layers with packed weights.
//!
//! `packed` makes the weights' panels; `int8` and `float` multiply tiles of rows with them and `scaled` gives integer
//! sums their scales (each a [`Product`](product::Product)); `finish` is what happens to a tile on its way out (an
//! [`Epilogue`](epilogue::Epilogue)). Tasks share a product by panels, so every number of rows, one included, uses all
//! threads.

pub(crate) mod blocks;
pub(crate) mod epilogue;
mod finish;
pub(crate) mod float;
pub(crate) mod int8;
pub(crate) mod output;
pub(crate) mod pack;
mod packed;
pub(crate) mod product;
mod scaled;

pub use packed::CpuPacked;

use crate::{
    device::Cpu,
    simd::StoredFloat,
    stream::CpuStream,
    view::{Reader, Writer, read, with_float, write},
};
use epilogue::{Epilogue, Int8ToI32};
use finish::Finish;
use float::{FloatProduct, FloatRows, FloatWeights};
use halite_hal::{DType, Element, Result, Storage, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{ActivationFormat, Activations, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
};
use int8::{Int8Product, Int8Rows, Int8Weights, SumRows};
use output::OutputRows;
use product::{Multiply, Product};
use scaled::Scaled;

impl Linear for Cpu {
    type Packed = CpuPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        match spec.activations {
            ActivationFormat::Float(DType::F32) | ActivationFormat::Int8PerToken => Support::Native,
            other => Support::No(format!("activations {other:?}: F32 and INT8 per token are built")),
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
        match packed.as_ref().weights {
            WeightFormat::Int8PerChannel => (max_rows as u64).saturating_mul(size_of::<i32>() as u64),
            _ => 0,
        }
    }

    fn linear(&self, stream: &mut CpuStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        if args.out.shape().elements() == 0 {
            return Ok(());
        }
        let output = args.weights.as_ref().output;
        match &args.x {
            Activations::Int8PerToken { q, .. } if output == DType::I32 => self.int8_sums(stream, &args, q),
            Activations::Int8PerToken { q, scales } => {
                with_float!(output, Float => self.int8::<Float>(stream, &args, q, scales))
            }
            Activations::Float(x) => with_float!(output, Float => {
                with_float!(stored(args.weights.as_ref()), Stored => self.float::<Stored, Float>(&args, x))
            }),
            other => Err(crate::unsupported("linear", "this form of activations", other)),
        }
    }
}

impl Cpu {
    /// The bare sums of an INT8 product.
    fn int8_sums(&self, stream: &mut CpuStream, args: &LinearArgs<'_, Cpu>, q: &Tensor<Cpu>) -> Result<()> {
        let q = read::<i8>(q)?;
        let panels = args.weights.panels().read(0..args.weights.panels().len())?;
        let mut out = write::<i32>(args.out)?;
        let product = self.int8_product(stream, args.weights, &panels, &q)?;
        self.share(product, rows_of(&mut out), |out| Int8ToI32 { out });
        Ok(())
    }

    /// An INT8 product with scales and epilogue.
    fn int8<T: StoredFloat + Element>(
        &self,
        stream: &mut CpuStream,
        args: &LinearArgs<'_, Cpu>,
        q: &Tensor<Cpu>,
        scales: &Tensor<Cpu>,
    ) -> Result<()> {
        let (q, a_scale) = (read::<i8>(q)?, read::<f32>(scales)?);
        let panels = args.weights.panels().read(0..args.weights.panels().len())?;
        let epilogue = EpilogueReads::<T>::new(args)?;
        let mut out = write::<T>(args.out)?;
        let sums = self.int8_product(stream, args.weights, &panels, &q)?;
        let product = Scaled { sums, a_scale: a_scale.data(), w_scale: args.weights.scales() };
        self.share(product, rows_of(&mut out), |out| epilogue.finish(args, out));
        Ok(())
    }

    /// Activations and weights; the rows' sums are made in scratch memory.
    fn int8_product<'a>(
        &self,
        stream: &'a mut CpuStream,
        packed: &CpuPacked,
        panels: &'a [u8],
        q: &'a Reader<'_, i8>,
    ) -> Result<Int8Product<'a>> {
        let (layout, k) = (q.rows, packed.as_ref().in_features);
        let workspace = self.linear_workspace(packed, layout.outer);
        let sums: &mut [i32] = bytemuck::cast_slice_mut(stream.scratch("linear", workspace)?);
        let (values, stride) = (q.data(), layout.outer_stride);
        self.tier().run(SumRows { values, stride, k, sums });
        let rows = Int8Rows::new(values, stride, k, sums);
        Ok(Int8Product::new(
            rows,
            Int8Weights::new(panels, packed.as_ref().weight_rows(), k, packed.columns()),
        ))
    }

    fn float<S: StoredFloat + Element, T: StoredFloat + Element>(
        &self,
        args: &LinearArgs<'_, Cpu>,
        x: &Tensor<Cpu>,
    ) -> Result<()> {
        let x = read::<f32>(x)?;
        let epilogue = EpilogueReads::<T>::new(args)?;
        let mut out = write::<T>(args.out)?;
        let (layout, spec) = (x.rows, args.weights.as_ref());
        let rows = FloatRows::new(x.data(), layout.outer, layout.outer_stride, spec.in_features);
        let panels = args.weights.panels().read(0..args.weights.panels().len())?;
        let panels: &[S] = bytemuck::cast_slice(&panels);
        let weights = FloatWeights::new(panels, spec.weight_rows(), spec.in_features, args.weights.columns());
        let product = FloatProduct::new(rows, weights);
        self.share(product, rows_of(&mut out), |out| epilogue.finish(args, out));
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

/// The type in which float weights are stored.
fn stored(spec: &LinearSpec) -> DType {
    match spec.weights {
        WeightFormat::F16 => DType::F16,
        WeightFormat::Bf16 => DType::Bf16,
        _ => DType::F32,
    }
}

/// A tensor of rows as a matrix to write to.
fn rows_of<'a, T: Element>(out: &'a mut Writer<'_, T>) -> OutputRows<'a, T> {
    let layout = out.rows;
    OutputRows::new(out.data(), layout.outer, layout.columns, layout.outer_stride)
}

/// The epilogue's tensors, guarded for reading.
struct EpilogueReads<'a, T> {
    bias: Option<Reader<'a, f32>>,
    residual: Option<Reader<'a, T>>,
}

impl<'a, T: StoredFloat + Element> EpilogueReads<'a, T> {
    fn new(args: &LinearArgs<'a, Cpu>) -> Result<Self> {
        let (bias, residual) = (args.epilogue.bias, args.epilogue.residual);
        Ok(EpilogueReads { bias: bias.map(read).transpose()?, residual: residual.map(read).transpose()? })
    }

    fn finish<'f>(&'f self, args: &LinearArgs<'_, Cpu>, out: OutputRows<'f, T>) -> Finish<'f, T> {
        let spec = args.weights.as_ref();
        Finish {
            columns: args.weights.columns(),
            results: spec.out_features,
            bias: self.bias.as_ref().map(|bias| bias.data()),
            activation: spec.gate.or(args.epilogue.activation),
            soft_cap: args.epilogue.soft_cap,
            residual: self.residual.as_ref().map(|residual| (residual.data(), residual.rows)),
            out,
        }
    }
}
