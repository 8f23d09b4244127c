//! Layers for unit tests: weights, activations and epilogues of any format, seeded.

use half::{bf16, f16};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::Activation,
    linear::{
        Activations, Epilogue, GroupOffset, GroupOffsets, HostWeights, Linear, LinearArgs, LinearSpec,
        OutputScale, Quantized, WeightFormat,
    },
};

use super::{CudaPacked, call::Call};
use crate::{compile::Source, device::Cuda, stream::CudaStream};

/// Numbers that nobody chose.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(super) fn integer(&mut self, least: i32, most: i32) -> i32 {
        least + (self.next() % (most - least + 1) as u64) as i32
    }

    fn integers(&mut self, count: usize, least: i32, most: i32) -> Vec<i8> {
        (0..count).map(|_| self.integer(least, most) as i8).collect()
    }

    /// Of either sign, about `size`.
    pub(super) fn floats(&mut self, count: usize, size: f32) -> Vec<f32> {
        (0..count).map(|_| self.integer(-1000, 1000) as f32 * 1.0007e-3 * size).collect()
    }

    fn scales(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.integer(100, 1000) as f32 * 1.3e-5).collect()
    }
}

/// What a layer multiplies.
pub(super) struct Inputs {
    pub(super) x: Tensor<Cuda>,
    scales: Tensor<Cuda>,
    zero_points: Option<Tensor<Cuda>>,
    outliers: Option<Tensor<Cuda>>,
}

impl Inputs {
    /// So many rows; where all have one scale, `scales` of them.
    pub(super) fn new(
        stream: &mut CudaStream,
        spec: &LinearSpec,
        rows: usize,
        scales: usize,
        random: &mut Random,
    ) -> Result<Self> {
        let (k, dims) = (spec.in_features, spec.activations.scale_dims(rows, spec.in_features));
        let dims = if spec.activations.is_per_tensor() { vec![scales] } else { dims };
        let count: usize = dims.iter().product();
        let integers = random.integers(rows * k, -128, 127);
        let x = match spec.activations.dtype() {
            DType::I8 => Tensor::from_slice(stream, &integers, &[rows, k])?,
            DType::U8 => Tensor::from_slice(stream, bytemuck::cast_slice::<i8, u8>(&integers), &[rows, k])?,
            dtype => tensor(stream, &random.floats(rows * k, 1.0), dtype, &[rows, k])?,
        };
        let scales = Tensor::from_slice(stream, &random.scales(count), &dims)?;
        let zeros = if spec.activations.dtype() == DType::U8 { (0, 255) } else { (-128, 127) };
        let zeros: Vec<i32> = (0..count).map(|_| random.integer(zeros.0, zeros.1)).collect();
        let zero_points = Tensor::from_slice(stream, &zeros, &dims)?;
        let outliers = match spec.outliers {
            Some(of) => {
                let values = random.floats(rows * of.columns, 3.0);
                Some(tensor(stream, &values, of.dtype, &[rows, of.columns])?)
            }
            None => None,
        };
        let zero_points = spec.activations.has_zero_points().then_some(zero_points);
        Ok(Inputs { x, scales, zero_points, outliers })
    }

    pub(super) fn activations(&self) -> Activations<'_, Cuda> {
        if self.x.dtype().is_float() {
            return Activations::Float(&self.x);
        }
        let mut quantized = Quantized::new(&self.x, &self.scales);
        quantized.zero_points = self.zero_points.as_ref();
        quantized.outliers = self.outliers.as_ref();
        Activations::Quantized(quantized)
    }
}

/// A layer, what it multiplies and what comes after.
pub(super) struct Layer {
    packed: CudaPacked,
    inputs: Inputs,
    bias: Tensor<Cuda>,
    residual: Option<Tensor<Cuda>>,
    activation: Option<Activation>,
    soft_cap: Option<f32>,
    output_scale: Option<OutputScale>,
    rows: usize,
}

fn tensor(stream: &mut CudaStream, values: &[f32], dtype: DType, dims: &[usize]) -> Result<Tensor<Cuda>> {
    match dtype {
        DType::F16 => {
            let values: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
            Tensor::from_slice(stream, &values, dims)
        }
        DType::Bf16 => {
            let values: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
            Tensor::from_slice(stream, &values, dims)
        }
        _ => Tensor::from_slice(stream, values, dims),
    }
}

pub(super) fn weights(
    cuda: &Cuda,
    stream: &mut CudaStream,
    spec: &LinearSpec,
    random: &mut Random,
) -> Result<CudaPacked> {
    let (rows, k) = (spec.weight_rows(), spec.in_features);
    let groups = rows * spec.weights.group_size(k).map_or(1, |size| k.div_ceil(size));
    let (least, most) = match (spec.weights.is_int4(), spec.weights.offset()) {
        (false, _) => (-128, 127),
        (true, GroupOffset::Symmetric) => (-8, 7),
        (true, _) => (0, 15),
    };
    let (q, scales) = (&random.integers(rows * k, least, most)[..], &random.scales(groups)[..]);
    let zero_points = &random.integers(rows, -128, 127)[..];
    let (zeros, mins) = (random.integers(groups, 0, 15), random.floats(groups, 0.1));
    let zeros: Vec<u8> = zeros.into_iter().map(i8::cast_unsigned).collect();
    let floats = random.floats(rows * k, 1.0);
    let f16s: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
    let bf16s: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
    let host = match spec.weights {
        WeightFormat::F16 => HostWeights::F16(&f16s),
        WeightFormat::Bf16 => HostWeights::Bf16(&bf16s),
        WeightFormat::Int8PerChannel => HostWeights::Int8PerChannel { q, scales },
        WeightFormat::Int8PerChannelAsymmetric => {
            HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points }
        }
        WeightFormat::Int8PerTensor => HostWeights::Int8PerTensor { q, scale: 0.0123 },
        WeightFormat::Int8PerGroup { group_size } => HostWeights::Int8PerGroup { q, scales, group_size },
        WeightFormat::Int4PerGroup { group_size, offset } => {
            let offsets = match offset {
                GroupOffset::ZeroPoint => GroupOffsets::ZeroPoints(&zeros),
                GroupOffset::Min => GroupOffsets::Mins(&mins),
                _ => GroupOffsets::Symmetric,
            };
            HostWeights::Int4PerGroup { q, scales, offsets, group_size }
        }
        _ => HostWeights::F32(&floats),
    };
    let count = spec.outliers.map_or(0, |outliers| outliers.columns);
    // Every third column.
    let columns: Vec<u32> = (0..count).map(|index| 3 * index as u32).collect();
    let values = random.floats(rows * count, 1.0);
    let with_outliers = HostWeights::WithOutliers { weights: &host, columns: &columns, values: &values };
    let host = if count > 0 { with_outliers } else { host };
    cuda.linear_pack(stream, host.check(spec)?)
}

impl Layer {
    /// With a bias and a residual wherever the spec allows them, without a function.
    pub(super) fn new(cuda: &Cuda, stream: &mut CudaStream, spec: &LinearSpec, rows: usize) -> Result<Self> {
        let mut random = Random(77);
        let packed = weights(cuda, stream, spec, &mut random)?;
        let inputs = Inputs::new(stream, spec, rows, 1, &mut random)?;
        let bias = random.floats(spec.weight_rows(), 2.0);
        let residual = random.floats(rows * spec.out_features, 2.0);
        let residual = match spec.output.is_float() {
            true => Some(tensor(stream, &residual, spec.output, &[rows, spec.out_features])?),
            false => None,
        };
        let scale = matches!(spec.output, DType::I8 | DType::U8);
        Ok(Layer {
            packed,
            inputs,
            bias: Tensor::from_slice(stream, &bias, &[spec.weight_rows()])?,
            residual,
            activation: None,
            soft_cap: None,
            output_scale: scale.then_some(OutputScale::new(0.05).with_zero_point(3)),
            rows,
        })
    }

    /// Only the first rows, of a layer of floats.
    pub(super) fn first_rows(mut self, rows: usize) -> Result<Self> {
        self.inputs.x = self.inputs.x.narrow(0, 0..rows)?;
        self.residual = self.residual.map(|residual| residual.narrow(0, 0..rows)).transpose()?;
        self.rows = rows;
        Ok(self)
    }

    pub(super) fn activation(mut self, activation: Activation) -> Self {
        self.activation = Some(activation);
        self
    }

    pub(super) fn soft_cap(mut self, cap: f32) -> Self {
        self.soft_cap = Some(cap);
        self
    }

    /// The result's bytes, of what `run` does with the call.
    pub(super) fn run(
        &self,
        stream: &mut CudaStream,
        run: impl FnOnce(&mut CudaStream, &Call<'_>) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let spec = self.packed.as_ref();
        let bytes = vec![0u8; self.rows * spec.out_features * spec.output.size()];
        let room = Tensor::from_slice(stream, &bytes, &[bytes.len()])?;
        let dims = [self.rows, spec.out_features];
        let out = Tensor::from_buffer(room.buffer().clone(), room.offset(), spec.output, &dims)?;
        let x = self.inputs.activations();
        let epilogue = match spec.output {
            DType::I32 => Epilogue::default(),
            _ => Epilogue {
                bias: Some(&self.bias),
                activation: self.activation,
                soft_cap: self.soft_cap,
                residual: self.residual.as_ref(),
                output_scale: self.output_scale,
            },
        };
        let args = LinearArgs { x, weights: &self.packed, epilogue, out: &out }.check()?;
        run(stream, &Call::of(&args)?)?;
        room.to_vec(stream)
    }
}

/// A source with one place of the last of some headers changed; the others are those through which it is included.
pub(super) fn changed(
    file: &'static str,
    source: &Source,
    headers: &[(&str, &str)],
    from: &str,
    to: &str,
) -> &'static Source {
    let mut text = source.text.to_owned();
    for (number, (name, header)) in headers.iter().enumerate() {
        let last = number + 1 == headers.len();
        assert!(!last || header.matches(from).count() == 1, "{name} has one {from:?}");
        let header = if last { header.replace(from, to) } else { (*header).to_owned() };
        let include = format!("#include \"{name}\"");
        assert!(text.contains(&include), "{name} is included");
        // What includes it again has it already.
        text = text.replacen(&include, &header.replace("#pragma once", ""), 1).replace(&include, "");
    }
    Box::leak(Box::new(Source::new(file, text.leak())))
}
