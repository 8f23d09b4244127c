//! Weights packed for this backend: made, saved and restored.
//!
//! Channels are rows, K contiguous; every part begins at a multiple of 16 bytes:
//!
//! | part | content |
//! |---|---|
//! | weights | a channel's floats, INT8, or INT4 in 16 bytes for each 32 of K: byte `i` has the `i`-th in its low half and that
//! 16 further in its high half (of symmetric groups 8 more) |
//! | scales | F32 `[channels, groups]` |
//! | offsets | zero points, I32, or minima, F32, `[channels, groups]` |
//! | sums | I32 `[channels]`: `Σ (q - zero point)`, where activations have zero points |
//! | outliers | F32 `[channels, columns]` |
//! | kept | a byte for each of K, 0 for outlier columns, to a multiple of 32 |

use std::sync::Arc;

use halite_hal::{Device, Error, Pending, Result, Storage};
use halite_kernels::{
    Checked,
    linear::{GroupOffset, HostWeights, LinearSpec},
    saved_weights,
};

use crate::{device::Cuda, memory::CudaBuffer, stream::CudaStream};

/// Parts begin at multiples of this, and channels' weights do.
const ALIGNMENT: usize = 16;
/// INT4 of K that are packed together, as products of the tensor cores take them.
const NIBBLES: usize = 32;

/// Packed weights: a counted handle. One layout serves every number of rows.
#[derive(Clone, Debug)]
pub struct CudaPacked(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: LinearSpec,
    layout: Layout,
    buffer: CudaBuffer,
}

impl AsRef<LinearSpec> for CudaPacked {
    fn as_ref(&self) -> &LinearSpec {
        &self.0.spec
    }
}

impl CudaPacked {
    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(super) fn buffer(&self) -> &CudaBuffer {
        &self.0.buffer
    }
}

/// Where the parts begin, in bytes; the weights do at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes from a channel's weights to the next's.
    pub(super) stride: usize,
    /// Scales along K; 0 of floats.
    pub(super) groups: usize,
    pub(super) scales: usize,
    pub(super) offsets: Option<usize>,
    pub(super) sums: Option<usize>,
    pub(super) outliers: Option<usize>,
    pub(super) kept: Option<usize>,
    len: usize,
}

impl Layout {
    /// None where there are more bytes than can be counted.
    fn of(spec: &LinearSpec) -> Option<Self> {
        let (k, channels) = (spec.in_features, spec.weight_rows());
        let bytes = match spec.weights.float_type() {
            Some(dtype) => k.checked_mul(dtype.size())?,
            None if spec.weights.is_int4() => k.div_ceil(NIBBLES) * NIBBLES / 2,
            None => k,
        };
        let stride = bytes.checked_next_multiple_of(ALIGNMENT)?;
        let groups = spec.weights.group_size(k).map_or(0, |size| k.div_ceil(size));
        let mut len = channels.checked_mul(stride)?;
        let mut part = |bytes: Option<usize>| {
            let start = len;
            len = len.checked_add(bytes?.checked_next_multiple_of(ALIGNMENT)?)?;
            Some(start)
        };
        let words = |columns: usize| channels.checked_mul(columns)?.checked_mul(4);
        let scales = part(words(groups))?;
        let symmetric = spec.weights.offset() == GroupOffset::Symmetric;
        let offsets = if symmetric { None } else { Some(part(words(groups))?) };
        let sums = if spec.activations.has_zero_points() { Some(part(words(1))?) } else { None };
        let outliers = match spec.outliers {
            Some(outliers) => Some(part(words(outliers.columns))?),
            None => None,
        };
        let kept = if spec.outliers.is_some() && spec.weights.offset() == GroupOffset::Min {
            Some(part(Some(k.checked_next_multiple_of(NIBBLES)?))?)
        } else {
            None
        };
        i64::try_from(len).ok()?;
        Some(Layout { stride, groups, scales, offsets, sums, outliers, kept, len })
    }

    fn checked(spec: &LinearSpec) -> Result<Self> {
        let (got, limit) = (u64::MAX, i64::MAX as u64);
        Layout::of(spec).ok_or(Error::Limit { operator: "linear", argument: "packed bytes", got, limit })
    }
}

/// What saved weights begin with: the layout's name and version, and the spec they were packed for.
fn header(spec: &LinearSpec) -> String {
    format!("halite-cuda linear rows v2 {spec:?}\n")
}

pub(super) fn pack(
    device: &Cuda,
    stream: &mut CudaStream,
    weights: &Checked<HostWeights<'_>, &LinearSpec>,
) -> Result<CudaPacked> {
    let spec = (*weights.context()).clone();
    let layout = Layout::checked(&spec)?;
    let buffer = device.alloc(layout.len as u64)?;
    stream.stage(&buffer, 0, &fill(&spec, layout, weights)?)?;
    Ok(CudaPacked(Arc::new(Inner { spec, layout, buffer })))
}

pub(super) fn save(stream: &mut CudaStream, packed: &CudaPacked) -> Result<Vec<u8>> {
    let mut bytes = header(packed.as_ref()).into_bytes();
    bytes.extend(
        stream.read(packed.buffer(), 0, packed.buffer().len().min(packed.layout().len as u64))?.wait()?,
    );
    Ok(bytes)
}

pub(super) fn restore(
    device: &Cuda,
    stream: &mut CudaStream,
    spec: &LinearSpec,
    saved: &[u8],
) -> Result<CudaPacked> {
    let layout = Layout::checked(spec)?;
    let bytes = saved_weights("linear", &header(spec), layout.len as u64, saved)?;
    let buffer = device.alloc(layout.len as u64)?;
    stream.stage(&buffer, 0, bytes)?;
    Ok(CudaPacked(Arc::new(Inner { spec: spec.clone(), layout, buffer })))
}

/// The packed bytes.
fn fill(spec: &LinearSpec, layout: Layout, weights: &HostWeights<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let full = |_| Error::OutOfMemory { device: "host".to_owned(), requested: layout.len as u64 };
    bytes.try_reserve_exact(layout.len).map_err(full)?;
    bytes.resize(layout.len, 0);
    let (columns, values): (&[u32], &[f32]) = match *weights {
        HostWeights::WithOutliers { columns, values, .. } => (columns, values),
        _ => (&[], &[]),
    };
    let k = spec.in_features;
    match weights.all_columns() {
        HostWeights::F32(data) => rows(&mut bytes, layout, bytemuck::cast_slice(data), 4 * k),
        HostWeights::F16(data) => rows(&mut bytes, layout, bytemuck::cast_slice(data), 2 * k),
        HostWeights::Bf16(data) => rows(&mut bytes, layout, bytemuck::cast_slice(data), 2 * k),
        integers => fill_integers(spec, layout, integers, columns, &mut bytes)?,
    }
    if let Some(at) = layout.outliers {
        let values: &[u8] = bytemuck::cast_slice(values);
        bytes[at..][..values.len()].copy_from_slice(values);
    }
    if let Some(at) = layout.kept {
        let kept = &mut bytes[at..][..k];
        kept.fill(1);
        columns.iter().for_each(|&column| kept[column as usize] = 0);
    }
    Ok(bytes)
}

fn rows(to: &mut [u8], layout: Layout, data: &[u8], row: usize) {
    for (to, from) in to.chunks_mut(layout.stride).zip(data.chunks(row)) {
        to[..row].copy_from_slice(from);
    }
}

fn fill_integers(
    spec: &LinearSpec,
    layout: Layout,
    weights: HostWeights<'_>,
    columns: &[u32],
    to: &mut [u8],
) -> Result<()> {
    let k = spec.in_features;
    let size = spec.weights.group_size(k).unwrap_or(k).min(k);
    // Codes of symmetric INT4 are 8 more.
    let more = if spec.weights.offset() == GroupOffset::Symmetric { 8 } else { 0 };
    let mut q = vec![0i8; k];
    for channel in 0..spec.weight_rows() {
        let mut sum = 0i32;
        for group in 0..layout.groups {
            let start = group * size;
            let Some(factors) = weights.read_group(k, channel, group, &mut q[start..]) else {
                // The shared checks have counted groups and values.
                return Err(Error::Argument {
                    operator: "linear",
                    argument: "weights",
                    expected: format!("{} groups of integers a row", layout.groups),
                    got: format!("{:?}", weights.format()),
                });
            };
            // Outlier columns count as zero.
            let end = k.min(start + size);
            for &column in columns.iter().filter(|&&column| (start..end).contains(&(column as usize))) {
                q[column as usize] = factors.zero_point;
            }
            // Where it counts it stays in i32: `LinearSpec::check` bounds in_features.
            let integers = q[start..end].iter().map(|&q| i32::from(q) - i32::from(factors.zero_point));
            sum = integers.fold(sum, i32::wrapping_add);
            let mut word = |part: usize, bits: u32| {
                let at = part + 4 * (channel * layout.groups + group);
                to[at..][..4].copy_from_slice(&bits.to_le_bytes());
            };
            word(layout.scales, factors.scale.to_bits());
            if let Some(offsets) = layout.offsets {
                let minima = spec.weights.offset() == GroupOffset::Min;
                let zero_point = i32::from(factors.zero_point) as u32;
                word(offsets, if minima { factors.min.to_bits() } else { zero_point });
            }
        }
        if let Some(sums) = layout.sums {
            to[sums + 4 * channel..][..4].copy_from_slice(&sum.to_le_bytes());
        }
        let row = &mut to[channel * layout.stride..][..layout.stride];
        if spec.weights.is_int4() {
            for (bytes, q) in row.chunks_mut(NIBBLES / 2).zip(q.chunks(NIBBLES)) {
                let code = |place: usize| q.get(place).map_or(0, |&q| (q + more) as u8 & 15);
                for (place, byte) in bytes.iter_mut().enumerate() {
                    *byte = code(place) | code(place + NIBBLES / 2) << 4;
                }
            }
        } else {
            row[..k].copy_from_slice(bytemuck::cast_slice(&q));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::linear::{GroupOffsets, WeightFormat};

    #[test]
    fn codes_of_four_bits_lie_in_halves_of_32_and_scales_follow() {
        let format = WeightFormat::Int4PerGroup { group_size: 16, offset: GroupOffset::Symmetric };
        let spec = LinearSpec::float(33, 1, format);
        let q: Vec<i8> = (0..33).map(|k| (k % 15) as i8 - 8).collect();
        let offsets = GroupOffsets::Symmetric;
        let weights = HostWeights::Int4PerGroup { q: &q, scales: &[1.0, 2.0, 4.0], offsets, group_size: 16 };
        let layout = Layout::of(&spec).unwrap();
        let bytes = fill(&spec, layout, &weights).unwrap();
        assert_eq!((bytes[0], bytes[1], bytes[15], bytes[16]), (0x10, 0x21, 0x10, 2));
        assert_eq!((layout.stride, layout.scales), (32, 32));
        assert_eq!(bytes[32..44], [1f32, 2.0, 4.0].map(f32::to_le_bytes).concat());
    }

    #[test]
    fn sums_of_channels_are_less_their_zero_points() {
        let activations = halite_kernels::linear::ActivationFormat::AsymmetricPerToken(halite_hal::DType::U8);
        let spec = LinearSpec::w8a8(3, 2)
            .with_weights(WeightFormat::Int8PerChannelAsymmetric)
            .with_activation_format(activations);
        let (q, scales, zero_points) = ([1, 2, -128, 5, 5, 5], &[1.0, 1.0], &[-3, 5]);
        let weights = HostWeights::Int8PerChannelAsymmetric { q: &q, scales, zero_points };
        let layout = Layout::of(&spec).unwrap();
        let bytes = fill(&spec, layout, &weights).unwrap();
        assert_eq!(bytes[layout.sums.unwrap()..][..8], [-116i32, 0].map(i32::to_le_bytes).concat());
    }

    #[test]
    fn sizes_beyond_counting_are_none() {
        assert_eq!(Layout::of(&LinearSpec::float(1 << 62, 1, WeightFormat::F32)), None);
        assert_eq!(Layout::of(&LinearSpec::w8a8(1 << 40, 1 << 40)), None);
    }
}
