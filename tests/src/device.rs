//! Devices, streams and tensors, judged: what every operator stands on.

use crate::{
    case::{Fault, Group, Verdict, ensure},
    judge::same_bits,
    poison::{Guarded, Layout},
    random::Rng,
};
use half::{bf16, f16};
use halite_hal::{Element, Event, Pending, Storage};
use halite_kernels::{
    Backend, DType, Error, Stream, Tensor,
    activation::{Activation, ActivationArgs, ActivationOut, ActivationSpec},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::bodies(
            "device",
            "tensors",
            vec![
                ("what is written comes back, in every type and shape", round_trips::<B>),
                ("strided views come back dense", strided),
                ("host memory is used, at any address", adopted),
                ("host memory that answers otherwise each time", fickle),
                ("work of one stream happens in order", ordered),
            ],
        ),
        Group::bodies("device", "errors", vec![("wrong sizes and types, no memory", errors::<B>)]),
        Group::bodies("device", "busy", vec![("two threads write one tensor", busy::<B>)]),
    ]
}

fn round_trip<B: Backend, T: Element + PartialEq>(device: &B, make: fn(usize) -> T) -> Verdict {
    let stream = &mut device.stream()?;
    for dims in [&[][..], &[0], &[1], &[17], &[3, 0], &[3, 5], &[2, 3, 4], &[2, 1, 3, 7]] {
        let data: Vec<T> = (0..dims.iter().product()).map(make).collect();
        let tensor = Tensor::<B>::from_slice(stream, &data, dims)?;
        ensure(tensor.dims() == dims && tensor.dtype() == T::DTYPE, || format!("{dims:?} was forgotten"))?;
        ensure(tensor.to_vec::<T>(stream)? == data, || format!("{} {dims:?} came back changed", T::DTYPE))?;
    }
    Ok(())
}

fn round_trips<B: Backend>(device: &B) -> Verdict {
    round_trip(device, |i| i as f32 - 3.5)?;
    round_trip(device, |i| f16::from_f32(i as f32))?;
    round_trip(device, |i| bf16::from_f32(i as f32))?;
    round_trip(device, |i| i as i8)?;
    round_trip(device, |i| i as u8)?;
    round_trip(device, |i| i as i32 * -70_000)
}

fn strided<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for layout in [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }] {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let values = Rng::new(5).aways(60);
            let (guarded, stored) = Guarded::<B>::input(stream, dtype, &values, &[4, 3, 5], layout)?;
            let bytes = stream.download(&guarded.view)?.wait()?;
            let size = dtype.size();
            let got: Vec<f64> =
                bytes.chunks_exact(size).map(|bytes| crate::poison::decode(dtype, bytes)).collect();
            ensure(got == stored, || format!("{dtype} in {layout:?} came back changed"))?;
            let middle = stream.download(&guarded.view.narrow(1, 1..3)?.narrow(0, 2..3)?)?.wait()?;
            same_bits("a part of a view", &middle, &bytes[(2 * 15 + 5) * size..(2 * 15 + 15) * size])?;
        }
    }
    Ok(())
}

/// Host bytes that begin at an address of their own choosing.
struct Shifted(Vec<u8>, usize);

impl AsRef<[u8]> for Shifted {
    fn as_ref(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

fn adopted<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for shift in [0, 1, 2, 4, 63] {
        let values: Vec<f32> = (0..40).map(|i| i as f32).collect();
        let bytes: Vec<u8> =
            std::iter::repeat_n(0xEE, shift).chain(values.iter().flat_map(|x| x.to_le_bytes())).collect();
        let buffer = device.adopt(Arc::new(Shifted(bytes, shift)))?;
        ensure(buffer.len() == 160, || format!("{} of 160 bytes were adopted", buffer.len()))?;
        let x = Tensor::<B>::from_buffer(buffer, 16, DType::F32, &[4, 9])?;
        ensure(x.to_vec::<f32>(stream)? == values[4..], || format!("adopted at {shift}, read changed"))?;
        // An operator reads it like any other memory.
        let out = Guarded::<B>::output(stream, DType::F32, &[4, 9], Layout::Dense)?;
        let spec = ActivationSpec::new(Activation::Silu);
        let args = ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out.view) }.check()?;
        device.activation(stream, args)?;
        let last = out.read(stream)?[35];
        ensure((last - 39.0).abs() < 1e-5, || format!("silu(39) of adopted memory is {last}"))?;
    }
    Ok(())
}

/// Host bytes that are others, and elsewhere, each time somebody asks: safe code may do that.
struct Fickle(Vec<u8>, AtomicUsize);

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        let asked = self.1.fetch_add(1, Ordering::Relaxed);
        if asked == 0 {
            &self.0[64 - self.0.as_ptr().addr() % 64..][..256]
        } else {
            &self.0[asked % 3..][..5]
        }
    }
}

fn fickle<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let buffer = device.adopt(Arc::new(Fickle(vec![7; 512], AtomicUsize::new(0))))?;
    for _ in 0..3 {
        ensure(buffer.len() == 256, || format!("256 bytes were adopted, now they are {}", buffer.len()))?;
    }
    let all = Tensor::<B>::from_buffer(buffer.clone(), 0, DType::I32, &[64])?;
    ensure(all.to_vec::<i32>(stream)? == [0x0707_0707; 64], || "other bytes than were adopted".into())?;
    let beyond = Tensor::<B>::from_buffer(buffer, 0, DType::U8, &[257]);
    ensure(beyond.is_err(), || "a tensor beyond what was adopted".into())
}

fn ordered<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = ActivationSpec::new(Activation::Silu);
    let x = Tensor::<B>::from_slice(stream, &[30f32; 64], &[4, 16])?;
    let out = Tensor::<B>::from_slice(stream, &[0f32; 64], &[4, 16])?;
    for round in 1..20 {
        x.write(stream, &[round as f32 * 20.0; 64])?;
        device.activation(
            stream,
            ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out) }.check()?,
        )?;
        // The next round's upload must not reach the work before it.
        let pending = stream.download(&out)?;
        x.write(stream, &[-1e3f32; 64])?;
        let got: Vec<f32> = bytemuck::allocation::pod_collect_to_vec(&pending.wait()?);
        ensure(got.iter().all(|&y| (y - round as f32 * 20.0).abs() < 1e-3), || {
            format!("round {round}: later work reached earlier: {}", got[0])
        })?;
    }
    Ok(stream.submit()?.wait()?)
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Dense)?;
    for bytes in [0, 20, 23, 25, 28] {
        ensure(stream.upload(&x.view, &vec![0; bytes]).is_err(), || {
            format!("{bytes} bytes were uploaded into 24")
        })?;
    }
    let strided = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Rows { before: 1, after: 1 })?;
    ensure(stream.upload(&strided.view, &[0; 24]).is_err(), || "uploaded into a strided view".into())?;
    let mismatch = Error::DTypeMismatch { expected: DType::F32, got: DType::I32 };
    ensure(x.view.write(stream, &[1i32; 6]) == Err(mismatch.clone()), || "I32 written into F32".into())?;
    ensure(x.view.to_vec::<i32>(stream) == Err(mismatch), || "F32 read as I32".into())?;
    x.untouched(stream)?;
    strided.untouched(stream)?;

    let buffer = device.alloc(16)?;
    for (offset, dims) in [(0, &[5][..]), (4, &[4]), (17, &[0]), (1, &[1]), (u64::MAX, &[1])] {
        let tensor = Tensor::<B>::from_buffer(buffer.clone(), offset, DType::F32, dims);
        ensure(tensor.is_err(), || format!("{dims:?} at {offset} of 16 bytes"))?;
    }
    match device.alloc(1 << 62) {
        Err(Error::OutOfMemory { requested, .. }) if requested == 1 << 62 => Ok(()),
        Err(error) => Err(Fault::new(format!("2^62 bytes: expected out of memory, got {error:?}"))),
        Ok(_) => Err(Fault::new("2^62 bytes were allocated")),
    }
}

/// Unordered writers: each call runs whole or says so, and nothing is torn.
fn busy<B: Backend>(device: &B) -> Verdict {
    let (rows, columns, rounds) = (64, 512, 50);
    let dims = [rows, columns];
    let stream = &mut device.stream()?;
    let out = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
    // Its poison comes before what the others write: streams are ordered by nothing else.
    stream.submit()?.wait()?;
    let spec = ActivationSpec::new(Activation::Silu);
    let work = |value: f32| -> Verdict {
        let stream = &mut device.stream()?;
        let x = Tensor::<B>::from_slice(stream, &vec![value; rows * columns], &dims)?;
        for _ in 0..rounds {
            let args = ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out.view) }.check()?;
            match device.activation(stream, args) {
                Ok(()) | Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            match stream.submit()?.wait() {
                Ok(()) | Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    let (left, right) = std::thread::scope(|scope| {
        let left = scope.spawn(|| work(30.0));
        let right = work(40.0);
        (left.join(), right)
    });
    left.unwrap_or_else(|_| Err(Fault::new("a thread that shared a tensor panicked")))?;
    right?;
    let written = out.read(stream)?;
    ensure(written.iter().all(|&y| (y - 30.0).abs() < 1e-3 || (y - 40.0).abs() < 1e-3), || {
        "an element is neither writer's".into()
    })?;
    // Afterwards the tensor is free again.
    let x = Tensor::<B>::from_slice(stream, &vec![50f32; rows * columns], &dims)?;
    device.activation(
        stream,
        ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out.view) }.check()?,
    )?;
    let written = out.read(stream)?;
    ensure(written.iter().all(|&y| (y - 50.0).abs() < 1e-3), || "the tensor stayed busy".into())
}
