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

/// What has a scale of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scales {
    /// All rows, with or without a zero point.
    All,
    /// So many columns of a row.
    Symmetric { group: usize },
    /// A row, with a zero point.
    Asymmetric,
}

impl Scales {
    fn of(format: ActivationFormat, columns: usize) -> Option<Self> {
        match format {
            ActivationFormat::Int8PerTensor | ActivationFormat::AsymmetricPerTensor(_) => Some(Scales::All),
            ActivationFormat::Int8PerGroup { group_size } => Some(Scales::Symmetric { group: group_size }),
            ActivationFormat::Int8PerToken => Some(Scales::Symmetric { group: columns.max(1) }),
            ActivationFormat::AsymmetricPerToken(_) => Some(Scales::Asymmetric),
            _ => None,
        }
    }
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
        let method = match Scales::of(spec.output, columns) {
            Some(Scales::All) => Method::Known(self.known_steps(&call)?),
            Some(Scales::Symmetric { group }) => Method::Symmetric { group },
            Some(Scales::Asymmetric) => Method::Asymmetric { flip: flip(spec) },
            None => return Err(crate::unsupported("quantize", "this format", &spec.output)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_chooses_what_has_a_scale() {
        let group = |group| Some(Scales::Symmetric { group });
        for (format, columns, scales, flipped) in [
            (ActivationFormat::Int8PerToken, 0, group(1), 0),
            (ActivationFormat::Int8PerToken, 1, group(1), 0),
            (ActivationFormat::Int8PerToken, 4096, group(4096), 0),
            // The last group may be shorter than its size, and the only one too.
            (ActivationFormat::Int8PerGroup { group_size: 64 }, 1, group(64), 0),
            (ActivationFormat::Int8PerGroup { group_size: 64 }, 4096, group(64), 0),
            (ActivationFormat::Int8PerTensor, 4096, Some(Scales::All), 0),
            (ActivationFormat::AsymmetricPerTensor(DType::I8), 4096, Some(Scales::All), 0),
            (ActivationFormat::AsymmetricPerTensor(DType::U8), 4096, Some(Scales::All), 0x80),
            (ActivationFormat::AsymmetricPerToken(DType::I8), 4096, Some(Scales::Asymmetric), 0),
            (ActivationFormat::AsymmetricPerToken(DType::U8), 4096, Some(Scales::Asymmetric), 0x80),
            (ActivationFormat::Float(DType::F32), 4096, None, 0),
        ] {
            assert_eq!(Scales::of(format, columns), scales, "{format:?}");
            let spec = QuantizeSpec::new(DType::F32).with_output(format);
            assert_eq!(flip(&spec), flipped, "{format:?}");
        }
    }

    #[test]
    fn what_is_read_more_than_twice_or_as_a_whole_is_kept() {
        use Origin::{Computed, Memory};
        use QuantizeSpec as Spec;
        let plain: fn(Spec) -> Spec = |spec| spec;
        let smoothed: fn(Spec) -> Spec = Spec::with_smoothing;
        let rotated: fn(Spec) -> Spec = |spec| spec.with_hadamard(64);
        let outliers: fn(Spec) -> Spec = |spec| spec.with_outlier_columns(1);
        // Of symmetric formats a row or a group, and of all others.
        for (change, origin, symmetric, others) in [
            (plain, Memory, false, false),
            (smoothed, Memory, false, true),
            (plain, Computed, false, true),
            (smoothed, Computed, false, true),
            (rotated, Memory, true, true),
            (rotated, Computed, true, true),
            (outliers, Memory, true, true),
        ] {
            for (format, expected) in [
                (ActivationFormat::Int8PerToken, symmetric),
                (ActivationFormat::Int8PerGroup { group_size: 64 }, symmetric),
                (ActivationFormat::Int8PerTensor, others),
                (ActivationFormat::AsymmetricPerToken(DType::U8), others),
                (ActivationFormat::AsymmetricPerTensor(DType::I8), others),
            ] {
                let spec = change(Spec::new(DType::F32).with_output(format));
                assert_eq!(buffered(&spec, origin), expected, "{spec:?}");
            }
        }
    }
}
