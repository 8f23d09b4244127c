//! Poisoned memory: every tensor of a case lies inside a region that is full of poison before the run.
//!
//! Poison is NaN of a peculiar payload in floats, and a value that no right result has in integers. An input's
//! surroundings are poisoned so that a read beyond it shows in the result; an output's so that a write beyond it shows
//! afterwards, and its inside so that an element nobody wrote shows as well.

use crate::case::{Fault, Verdict};
use half::{bf16, f16};
use halite_hal::{DType, Device, Error, Pending, Stream, Tensor};

/// The poison of a type, little-endian.
pub fn pattern(dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F32 => 0x7FC0_DEADu32.to_le_bytes().to_vec(),
        DType::F16 => 0x7E5Au16.to_le_bytes().to_vec(),
        DType::Bf16 => 0x7FDAu16.to_le_bytes().to_vec(),
        // Symmetric quantisation never gives -128.
        DType::I8 => vec![0x80],
        DType::I32 => 0x5A5A_5A5Au32.to_le_bytes().to_vec(),
        other => vec![0x5A; other.size()],
    }
}

/// A value as it is stored, rounded to nearest even; integers are truncated by `as` and come whole.
pub fn encode(dtype: DType, value: f32) -> Vec<u8> {
    match dtype {
        DType::F32 => value.to_le_bytes().to_vec(),
        DType::F16 => f16::from_f32(value).to_le_bytes().to_vec(),
        DType::Bf16 => bf16::from_f32(value).to_le_bytes().to_vec(),
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::U8 => vec![value as u8],
        _ => (value as i32).to_le_bytes().to_vec(),
    }
}

/// A stored value, exactly.
pub fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    let two = || u16::from_le_bytes([bytes[0], bytes[1]]);
    let four = || u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    match dtype {
        DType::F32 => f64::from(f32::from_bits(four())),
        DType::F16 => f16::from_bits(two()).to_f64(),
        DType::Bf16 => bf16::from_bits(two()).to_f64(),
        DType::I8 => f64::from(bytes[0] as i8),
        DType::U8 => f64::from(bytes[0]),
        _ => f64::from(four() as i32),
    }
}

/// `value` as a tensor of `dtype` stores it.
pub fn stored(dtype: DType, value: f32) -> f64 {
    decode(dtype, &encode(dtype, value))
}

/// How a tensor lies in its region. There is always a guard row before and one after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Rows without gaps.
    Dense,
    /// Rows between this many columns of poison.
    Rows {
        /// Elements before each row.
        before: usize,
        /// Elements after each row.
        after: usize,
    },
    /// The two outer dimensions of three strided: this many elements of poison after each innermost row.
    Heads {
        /// Elements after each head.
        after: usize,
    },
}

/// The layouts that a suite goes through: odd gaps, so that rows lie at no aligned address.
pub const LAYOUTS: [Layout; 3] =
    [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Rows { before: 0, after: 1 }];

/// A block of poisoned memory with views in it.
#[derive(Debug)]
pub struct Region<D: Device> {
    parent: Tensor<D>,
}

impl<D: Device> Region<D> {
    /// A region of this shape, all poison.
    ///
    /// # Errors
    /// The device's.
    pub fn new(stream: &mut D::Stream, dtype: DType, dims: &[usize]) -> Result<Self, Error> {
        let parent = Tensor::new(stream.device(), dtype, dims)?;
        let bytes = pattern(dtype).repeat(parent.shape().elements());
        stream.upload(&parent, &bytes)?;
        Ok(Region { parent })
    }

    /// The whole, guards included.
    pub fn parent(&self) -> &Tensor<D> {
        &self.parent
    }

    /// Puts `values`, rounded to the region's type, into `view`; returns them as stored.
    ///
    /// # Errors
    /// The device's, or another number of values.
    pub fn put(&self, stream: &mut D::Stream, view: &Tensor<D>, values: &[f32]) -> Result<Vec<f64>, Fault> {
        let (dtype, places) = (self.parent.dtype(), places(view));
        if places.len() != values.len() {
            return Err(Fault(format!("{} values for {:?}", values.len(), view.dims())));
        }
        let mut bytes = stream.download(&self.parent)?.wait()?;
        for (&place, &value) in places.iter().zip(values) {
            let size = dtype.size();
            bytes[place * size..][..size].copy_from_slice(&encode(dtype, value));
        }
        stream.upload(&self.parent, &bytes)?;
        Ok(values.iter().map(|&value| stored(dtype, value)).collect())
    }

    /// The values of `views`, each in row-major order; everything outside of them must still be poison.
    ///
    /// # Errors
    /// The device's, or a guard that was written to.
    pub fn get(&self, stream: &mut D::Stream, views: &[&Tensor<D>]) -> Result<Vec<Vec<f64>>, Fault> {
        let (dtype, size) = (self.parent.dtype(), self.parent.dtype().size());
        let bytes = stream.download(&self.parent)?.wait()?;
        let mut inside = vec![false; self.parent.shape().elements()];
        let values = views
            .iter()
            .map(|view| {
                let read = |place: usize| decode(dtype, &bytes[place * size..][..size]);
                let places = places(view);
                places.iter().for_each(|&place| inside[place] = true);
                places.into_iter().map(read).collect()
            })
            .collect();
        let poison = pattern(dtype);
        for (place, bytes) in bytes.chunks_exact(size).enumerate() {
            if !inside[place] && bytes != poison {
                let value = decode(dtype, bytes);
                let dims = self.parent.dims();
                return Err(Fault(format!("guard element {place} of {dims:?} was overwritten by {value}")));
            }
        }
        Ok(values)
    }
}

/// The elements of a view, in row-major order, counted from the start of its buffer.
pub fn places<D: Device>(view: &Tensor<D>) -> Vec<usize> {
    let start = view.offset() as usize / view.dtype().size();
    let mut places = vec![start];
    for (&dim, &stride) in view.dims().iter().zip(view.strides()) {
        places = places.iter().flat_map(|&place| (0..dim).map(move |i| place + i * stride)).collect();
    }
    places
}

/// A tensor with guards all round it.
#[derive(Debug)]
pub struct Guarded<D: Device> {
    region: Region<D>,
    /// What the operator gets.
    pub view: Tensor<D>,
}

impl<D: Device> Guarded<D> {
    /// An output: poison inside and outside. `dims` has one to three dimensions; [`Layout`] matters from two on.
    ///
    /// # Errors
    /// The device's.
    pub fn output(
        stream: &mut D::Stream,
        dtype: DType,
        dims: &[usize],
        layout: Layout,
    ) -> Result<Self, Error> {
        // Rows of nothing cannot be split off wider ones: they lie between poison of their own.
        let layout = if matches!(dims, [_, _, 0]) { Layout::Heads { after: 1 } } else { layout };
        if let ([outer, middle, inner], Layout::Heads { after }) = (dims, layout) {
            let region = Region::new(stream, dtype, &[outer + 2, *middle, inner + after])?;
            let view = region.parent.narrow(0, 1..outer + 1)?.narrow(2, 0..*inner)?;
            return Ok(Guarded { region, view });
        }
        let Some((&outer, inner)) = dims.split_first() else {
            let region = Region::new(stream, dtype, &[3])?;
            let view = region.parent.narrow(0, 1..2)?.reshape(&[])?;
            return Ok(Guarded { region, view });
        };
        if inner.is_empty() {
            let region = Region::new(stream, dtype, &[outer + 2])?;
            let view = region.parent.narrow(0, 1..outer + 1)?;
            return Ok(Guarded { region, view });
        }
        let columns: usize = inner.iter().product();
        let (before, after) = match layout {
            Layout::Rows { before, after } => (before, after),
            _ => (0, 0),
        };
        let region = Region::new(stream, dtype, &[outer + 2, before + columns + after])?;
        let mut view = region.parent.narrow(0, 1..outer + 1)?.narrow(1, before..before + columns)?;
        if let [_, last] = inner {
            view = view.split_last(*last)?;
        }
        Ok(Guarded { region, view })
    }

    /// An input: `values`, rounded to `dtype`, inside. Returns them as stored beside it.
    ///
    /// # Errors
    /// The device's, or another number of values.
    pub fn input(
        stream: &mut D::Stream,
        dtype: DType,
        values: &[f32],
        dims: &[usize],
        layout: Layout,
    ) -> Result<(Self, Vec<f64>), Fault> {
        let guarded = Guarded::output(stream, dtype, dims, layout)?;
        let values = guarded.region.put(stream, &guarded.view, values)?;
        Ok((guarded, values))
    }

    /// An input of integers: I8 or I32.
    ///
    /// # Errors
    /// The device's, or another number of values.
    pub fn integers(
        stream: &mut D::Stream,
        dtype: DType,
        values: &[i32],
        dims: &[usize],
        layout: Layout,
    ) -> Result<Self, Fault> {
        let guarded = Guarded::output(stream, dtype, dims, layout)?;
        let mut bytes = stream.download(&guarded.region.parent)?.wait()?;
        for (place, value) in places(&guarded.view).into_iter().zip(values) {
            let size = dtype.size();
            bytes[place * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        stream.upload(&guarded.region.parent, &bytes)?;
        Ok(guarded)
    }

    /// The result; the guards must be untouched.
    ///
    /// # Errors
    /// The device's, or a guard that was written to.
    pub fn read(&self, stream: &mut D::Stream) -> Result<Vec<f64>, Fault> {
        Ok(self.region.get(stream, &[&self.view])?.swap_remove(0))
    }

    /// The result's bytes, for comparisons to the last bit; the guards must be untouched.
    ///
    /// # Errors
    /// The device's, or a guard that was written to.
    pub fn read_bytes(&self, stream: &mut D::Stream) -> Result<Vec<u8>, Fault> {
        self.read(stream)?;
        Ok(stream.download(&self.view)?.wait()?)
    }

    /// Nothing was written at all.
    ///
    /// # Errors
    /// The device's, or an element that is no longer poison.
    pub fn untouched(&self, stream: &mut D::Stream) -> Verdict {
        self.region.get(stream, &[]).map(drop)
    }
}
