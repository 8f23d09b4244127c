//! Devices and streams on the stand-in, which finds what an NPU keeps to itself: memory that is used after it was freed, read
//! beyond its end, or of another thread's context.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod standin;

use std::{sync::Arc, thread};

use halite_ascend::Ascend;
use halite_hal::{DType, Device, Error, Event, HostBytes, Pending, Result, Stream, Tensor};
use halite_kernels::activation::{
    Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, GateLayout, Glu,
};

fn swi_glu(
    device: &Ascend,
    stream: &mut <Ascend as Device>::Stream,
    x: &Tensor<Ascend>,
    out: &Tensor<Ascend>,
) -> Result<()> {
    let spec = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    device.activation(stream, ActivationArgs { spec: &spec, x, out: ActivationOut::Float(out) }.check()?)
}

#[test]
fn memory_of_queued_work_outlives_its_handles() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let mut expected = Vec::new();
    let mut pending = Vec::new();
    for step in 0..50u16 {
        let gate = f32::from(step) / 10.0;
        let x = Tensor::from_slice(&mut stream, &[gate, 2.0], &[1, 2])?;
        let out = Tensor::new(&device, DType::F32, &[1, 1])?;
        swi_glu(&device, &mut stream, &x, &out)?;
        pending.push(stream.download(&out)?);
        expected.push(2.0 * gate / (1.0 + (-gate).exp()));
        if step % 7 == 0 {
            stream.submit()?.wait()?;
        }
    }
    for (pending, expected) in pending.into_iter().zip(expected) {
        let got = f32::from_le_bytes(pending.wait()?.try_into().unwrap());
        assert!((got - expected).abs() <= 1e-6 * expected.abs(), "{got} {expected}");
    }
    Ok(())
}

#[test]
fn other_threads_use_the_device_in_its_context() -> Result<()> {
    let device = standin::device()?;
    let x = Tensor::from_slice(&mut device.stream()?, &[0f32, 1.0, 2.0, 3.0], &[2, 2])?;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = device.stream()?;
                    let out = Tensor::new(&device, DType::F32, &[2, 1])?;
                    swi_glu(&device, &mut stream, &x, &out)?;
                    out.to_vec::<f32>(&mut stream)
                })
            })
            .collect();
        for thread in threads {
            let got = thread.join().unwrap()?;
            assert!(got[0] == 0.0 && (got[1] - 6.0 / (1.0 + (-2f32).exp())).abs() < 1e-5, "{got:?}");
        }
        Ok(())
    })
}

#[test]
fn host_bytes_are_adopted_and_views_read_back() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let bytes: Vec<u8> = (0..5 << 18).map(|i: u32| (i % 251) as u8).collect();
    let adopted: HostBytes = Arc::new(bytes.clone());
    let buffer = device.adopt(adopted)?;
    let whole = Tensor::<Ascend>::from_buffer(buffer, 0, DType::U8, &[5, 1 << 18])?;
    assert!(stream.download(&whole)?.wait()? == bytes);
    let part = whole.narrow(0, 1..4)?.narrow(1, 7..30)?;
    let expected: Vec<u8> =
        (1..4).flat_map(|row| &bytes[(row << 18) + 7..(row << 18) + 30]).copied().collect();
    assert_eq!(stream.download(&part)?.wait()?, expected);
    Ok(())
}

#[test]
fn memory_of_another_device_is_refused() -> Result<()> {
    let [device, other] = [standin::device()?, standin::device()?];
    let (mut stream, mut others) = (device.stream()?, other.stream()?);
    let x = Tensor::from_slice(&mut stream, &[1f32; 4], &[1, 4])?;
    let out = Tensor::from_slice(&mut others, &[0f32; 2], &[1, 2])?;
    for error in [
        swi_glu(&device, &mut stream, &x, &out).err(),
        out.write(&mut stream, &[0f32; 2]).err(),
        stream.download(&out).err(),
    ] {
        let error = error.unwrap();
        assert!(
            matches!(&error, Error::Argument { expected, .. } if expected.contains("own device")),
            "{error}"
        );
    }
    assert_eq!(out.to_vec::<f32>(&mut others)?, [0.0; 2]);
    Ok(())
}

#[test]
fn a_graph_is_launched_with_what_its_memory_holds_then() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1f32, 2.0, 3.0, 4.0], &[1, 4])?;
    let between = Tensor::from_slice(&mut stream, &[0f32; 2], &[1, 2])?;
    let out = Tensor::from_slice(&mut stream, &[0f32; 1], &[1, 1])?;
    // Operators have asked for no memory yet.
    stream.begin_capture()?;
    let error = swi_glu(&device, &mut stream, &x, &between).unwrap_err().to_string();
    assert!(error.contains("run the same once before"), "{error}");
    drop(stream.end_capture()?);

    swi_glu(&device, &mut stream, &x, &between)?;
    stream.begin_capture()?;
    swi_glu(&device, &mut stream, &x, &between)?;
    swi_glu(&device, &mut stream, &between, &out)?;
    for refused in [
        x.write(&mut stream, &[0f32; 4]).err(),
        x.to_vec::<f32>(&mut stream).err(),
        stream.submit().err(),
        stream.begin_capture().err(),
    ] {
        let error = refused.unwrap().to_string();
        assert!(error.contains("not being captured"), "{error}");
    }
    let graph = stream.end_capture()?;
    // What only the graph uses stays.
    drop(between);
    assert_eq!(out.to_vec::<f32>(&mut stream)?, [0.0], "nothing was done yet");
    let unit = |gate: f32, up: f32| gate / (1.0 + (-gate).exp()) * up;
    for row in [[1f32, 2.0, 3.0, 4.0], [-1.0, 0.5, 2.0, -3.0]] {
        x.write(&mut stream, &row)?;
        stream.launch_graph(&graph)?;
        let expected = unit(unit(row[0], row[2]), unit(row[1], row[3]));
        let got = out.to_vec::<f32>(&mut stream)?[0];
        assert!((got - expected).abs() < 1e-5 * expected.abs(), "{got} {expected}");
    }
    let error = device.stream()?.launch_graph(&graph).unwrap_err().to_string();
    assert!(error.contains("this stream has collected"), "{error}");
    Ok(())
}

#[test]
fn a_stream_may_move_to_another_thread_while_it_is_captured() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1f32, 2.0], &[1, 2])?;
    let out = Tensor::from_slice(&mut stream, &[0f32], &[1, 1])?;
    swi_glu(&device, &mut stream, &x, &out)?;
    x.write(&mut stream, &[0f32, 2.0])?;
    stream.begin_capture()?;
    // Others go on meanwhile.
    assert_eq!(x.to_vec::<f32>(&mut device.stream()?)?, [0.0, 2.0]);
    let got = thread::scope(|scope| {
        let moved = scope.spawn(move || {
            swi_glu(&device, &mut stream, &x, &out)?;
            let graph = stream.end_capture()?;
            stream.launch_graph(&graph)?;
            out.to_vec::<f32>(&mut stream)
        });
        moved.join().unwrap()
    })?;
    assert_eq!(got, [0.0]);
    Ok(())
}

/// Work of the stream's that takes a while, so that what comes after it is still queued.
fn long_work(device: &Ascend, stream: &mut <Ascend as Device>::Stream) -> Result<()> {
    let x = Tensor::from_slice(stream, &vec![1f32; 1 << 19], &[1, 1 << 19])?;
    let out = Tensor::new(device, DType::F32, &[1, 1 << 18])?;
    swi_glu(device, stream, &x, &out)
}

#[test]
fn a_capture_that_nobody_began_is_refused_and_frees_nothing() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let out = Tensor::new(&device, DType::F32, &[1, 1])?;
    long_work(&device, &mut stream)?;
    {
        let x = Tensor::from_slice(&mut stream, &[3f32, 2.0], &[1, 2])?;
        swi_glu(&device, &mut stream, &x, &out)?;
    }
    let error = stream.end_capture().unwrap_err();
    assert!(matches!(&error, Error::Argument { operator: "end_capture", argument: "stream", .. }), "{error}");
    assert!(error.to_string().contains("a stream that is being captured"), "{error}");
    let got = out.to_vec::<f32>(&mut stream)?[0];
    assert!((got - 6.0 / (1.0 + (-3f32).exp())).abs() < 1e-5, "{got}");
    Ok(())
}

#[test]
fn what_was_queued_before_a_capture_is_waited_for_or_dropped_within() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1f32, 2.0], &[1, 2])?;
    let out = Tensor::new(&device, DType::F32, &[1, 1])?;
    swi_glu(&device, &mut stream, &x, &out)?;
    stream.begin_capture()?;
    swi_glu(&device, &mut stream, &x, &out)?;
    let graph = stream.end_capture()?;

    long_work(&device, &mut stream)?;
    stream.launch_graph(&graph)?;
    let [waited, dropped] = [stream.download(&x)?, stream.download(&x)?];
    let event = stream.submit()?;
    stream.begin_capture()?;
    drop((dropped, graph));
    assert_eq!(waited.wait()?, [1f32, 2.0].map(f32::to_le_bytes).concat());
    event.wait()?;
    drop(stream.end_capture()?);
    let got = out.to_vec::<f32>(&mut stream)?[0];
    assert!((got - 2.0 / (1.0 + (-1f32).exp())).abs() < 1e-5, "{got}");
    Ok(())
}

#[test]
fn the_stand_in_says_what_it_is() -> Result<()> {
    let device = standin::device()?;
    assert_eq!(device.info().name, "cann-standin 0");
    let error =
        Ascend::new(halite_ascend::Options::default().library(standin::library()).device(7)).unwrap_err();
    assert!(error.to_string().contains("there is no device 7"), "{error}");
    Ok(())
}
