//! One call's outputs, cut into tasks.

use super::{
    prepare::Prepare,
    row::Steps,
    rows::{IntegerRows, Method, Part},
    take,
};
use crate::{
    device::Cpu,
    simd::StoredFloat,
    view::{Reader, Rows, Writer, read, write},
};
use halite_hal::{DType, Element, Result};
use halite_kernels::{
    Support,
    linear::ActivationFormat,
    quantize::{QuantizeOut, QuantizeSpec, Rotation, Smoothing},
};

/// Where rows come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From a tensor.
    Memory,
    /// From an operator that computes them as they are read.
    Computed,
}

/// One call's quantisation.
pub(crate) struct Call<'a> {
    pub(crate) spec: &'a QuantizeSpec,
    pub(crate) out: &'a QuantizeOut<'a, Cpu>,
    /// Of the size that the workspace function gives.
    pub(crate) scratch: &'a mut [f32],
    /// Outer and inner rows, and columns.
    pub(crate) shape: [usize; 3],
}

/// Whether an operator can quantise its result by `spec`, whose check has passed.
pub(crate) fn fused_supports(own: Support, spec: &QuantizeSpec) -> Support {
    match own {
        Support::Native if spec.input != DType::F32 => {
            Support::No(format!("{}: F32 results are quantised", spec.input))
        }
        own => own,
    }
}

/// Whether a row is taken to memory before it becomes integers: what has to be there as a whole, and what would be
/// computed more than twice.
pub(super) fn buffered(spec: &QuantizeSpec, origin: Origin) -> bool {
    let symmetric =
        matches!(spec.output, ActivationFormat::Int8PerToken | ActivationFormat::Int8PerGroup { .. });
    let computed = origin == Origin::Computed || spec.smoothing != Smoothing::None;
    spec.rotation != Rotation::None || spec.outlier_columns > 0 || computed && !symmetric
}

/// How far below I8 the format's bytes are, as the bits to turn.
pub(super) fn flip(spec: &QuantizeSpec) -> u8 {
    if spec.output.dtype() == DType::U8 { 0x80 } else { 0 }
}

/// What is read on the way.
pub(super) struct Inputs<'a> {
    factors: Option<Reader<'a, f32>>,
    outliers: Option<Reader<'a, i32>>,
}

impl<'a> Inputs<'a> {
    pub(super) fn of(out: &QuantizeOut<'a, Cpu>) -> Result<Self> {
        Ok(Inputs {
            factors: out.smoothing.map(read).transpose()?,
            outliers: out.outliers.map(|outliers| read(outliers.columns)).transpose()?,
        })
    }

    pub(super) fn prepare(&self, spec: &QuantizeSpec) -> Prepare<'_> {
        Prepare {
            factors: self.factors.as_ref().map(Reader::data),
            outliers: self.outliers.as_ref().map_or(&[], Reader::data),
            block: if let Rotation::Hadamard { block } = spec.rotation { Some(block) } else { None },
        }
    }
}

impl Cpu {
    /// Bytes of a row's memory for each task of up to `max_rows` rows, if there is one.
    pub(super) fn row_buffers(&self, buffered: bool, max_rows: usize, columns: usize) -> u64 {
        let tasks = if buffered { self.team().most_tasks(max_rows) as u64 } else { 0 };
        tasks.saturating_mul(columns as u64).saturating_mul(4)
    }

    /// The workspace of an operator that computes the rows.
    pub(crate) fn fused_workspace(&self, spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
        self.row_buffers(buffered(spec, Origin::Computed), max_rows, columns)
    }

    /// Rows as integers. `run` gets the first outer row of a task, how many there are, and where they go; `nanoseconds` is
    /// the work of an outer row.
    pub(crate) fn rows_to_integers<V: StoredFloat + Element>(
        &self,
        call: Call<'_>,
        nanoseconds: usize,
        run: impl Fn(usize, usize, IntegerRows<'_, V>) + Sync,
    ) -> Result<()> {
        let [outer, _, columns] = call.shape;
        let (spec, out) = (call.spec, call.out);
        let method = match spec.output {
            format if format.is_per_tensor() => Method::Known(self.known_steps(&call)?),
            ActivationFormat::Int8PerGroup { size } => Method::Symmetric { group: size },
            ActivationFormat::AsymmetricPerToken(_) => Method::Asymmetric { flip: flip(spec) },
            ActivationFormat::Int8PerToken => Method::Symmetric { group: columns.max(1) },
            other => return Err(crate::unsupported("quantize", "this format", &other)),
        };
        let inputs = Inputs::of(out)?;
        let prepare = inputs.prepare(spec);
        let own = !matches!(method, Method::Known(_));
        let mut scales = own.then(|| write::<f32>(out.scales)).transpose()?;
        let mut zeros = out.zero_points.filter(|_| own).map(write::<i32>).transpose()?;
        if columns == 0 {
            // Rows of nothing are rows of zeros, and have no chunks below.
            let zero = Steps::of_range(0.0, 0.0, flip(spec)).zero.unwrap_or(0);
            scales.iter_mut().for_each(|scales| scales.data().fill(f32::MIN_POSITIVE));
            zeros.iter_mut().for_each(|zeros| zeros.data().fill(zero));
            return Ok(());
        }
        let grouped = matches!(spec.output, ActivationFormat::Int8PerGroup { .. });
        let steps_of = |rows: Rows| match (grouped, out.scales.dims().len()) {
            (true, _) => [rows.outer_stride, rows.inner_stride],
            // Scales of [rows] are one row in memory; those of [tokens, heads], with one head too, may be strided.
            (false, 1) => [1, 0],
            (false, _) => [rows.outer_stride, 1],
        };
        let mut scales = Part::of(scales.as_mut(), steps_of);
        let mut zeros = Part::of(zeros.as_mut(), steps_of);
        let mut values = out.outliers.map(|outliers| write::<V>(outliers.values)).transpose()?;
        let mut values = Part::of(values.as_mut(), |rows| [rows.outer_stride, rows.inner_stride]);
        let (mut signed, mut unsigned);
        let (q, rows): (&mut [i8], Rows) = if flip(spec) == 0 {
            signed = write::<i8>(out.q)?;
            let rows = signed.rows;
            (signed.data(), rows)
        } else {
            unsigned = write::<u8>(out.q)?;
            let rows = unsigned.rows;
            (bytemuck::cast_slice_mut(unsigned.data()), rows)
        };
        let mut q = Part { data: q, outer: rows.outer_stride, inner: rows.inner_stride };
        let mut buffers = call.scratch;
        let per_task = self.team().units_per_task(outer, nanoseconds);
        let tasks = (0..outer.div_ceil(per_task)).map(|task| {
            let target = IntegerRows {
                method,
                prepare,
                buffer: take(&mut buffers, columns),
                q: q.take(per_task),
                scales: scales.take(per_task),
                zeros: zeros.take(per_task),
                outliers: values.take(per_task),
            };
            (task * per_task, target)
        });
        self.team().each(tasks, |(first, target)| run(first, per_task.min(outer - first), target));
        Ok(())
    }
}

impl<'a, T: Element> Part<'a, T> {
    /// A whole output; nothing where there is none.
    fn of(tensor: Option<&'a mut Writer<'_, T>>, strides: impl Fn(Rows) -> [usize; 2]) -> Self {
        match tensor {
            Some(tensor) => {
                let [outer, inner] = strides(tensor.rows);
                Part { data: tensor.data(), outer, inner }
            }
            None => Part { data: &mut [], outer: 0, inner: 0 },
        }
    }
}
