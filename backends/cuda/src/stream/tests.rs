//! Streams on the interpreter.

use halite_hal::{DType, Device, Event, Pending};
use halite_kernels::activation::{Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec};

use super::*;
use crate::{compile::Source, testing};

fn relu(cuda: &Cuda, stream: &mut CudaStream, x: &Tensor<Cuda>, out: &Tensor<Cuda>) -> Result<()> {
    let spec = ActivationSpec::new(Activation::Relu);
    let args = ActivationArgs { spec: &spec, x, out: ActivationOut::Float(out) }.check()?;
    cuda.activation(stream, args)
}

#[test]
fn a_graph_is_launched_with_what_its_memory_holds_then() -> Result<()> {
    let Some(cuda) = testing::cuda("graphs") else { return Ok(()) };
    let mut stream = cuda.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1.0f32, -2.0, 3.0], &[1, 3])?;
    let out = Tensor::from_slice(&mut stream, &[0.0f32; 3], &[1, 3])?;
    let last = Tensor::from_slice(&mut stream, &[0.0f32; 3], &[1, 3])?;
    stream.begin_capture()?;
    relu(&cuda, &mut stream, &x, &out)?;
    relu(&cuda, &mut stream, &out, &last)?;
    for refused in
        [x.write(&mut stream, &[0.0f32; 3]).err(), x.to_vec::<f32>(&mut stream).err(), stream.submit().err()]
    {
        let error = refused.expect("refused while it is captured").to_string();
        assert!(error.contains("not being captured"), "{error}");
    }
    let graph = stream.end_capture()?;
    // What only the graph uses stays.
    drop(out);
    assert_eq!(last.to_vec::<f32>(&mut stream)?, [0.0; 3]);
    for row in [[4.0f32, -5.0, 6.0], [-7.0, 8.0, -9.0]] {
        x.write(&mut stream, &row)?;
        stream.launch_graph(&graph)?;
        assert_eq!(last.to_vec::<f32>(&mut stream)?, row.map(|x| x.max(0.0)));
    }
    let other = testing::cuda("graphs").expect("as above");
    assert!(other.stream()?.launch_graph(&graph).unwrap_err().to_string().contains("own device"));
    Ok(())
}

#[test]
fn memory_of_queued_work_is_held_until_it_is_done() -> Result<()> {
    let Some(cuda) = testing::cuda("held memory") else { return Ok(()) };
    let mut stream = cuda.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1.0f32; 300], &[3, 100])?;
    let out = Tensor::new(&cuda, DType::F32, &[3, 100])?;
    relu(&cuda, &mut stream, &x, &out)?;
    let held = |stream: &CudaStream, buffer: &CudaBuffer| {
        let behind = stream.behind.iter().flat_map(|(_, held)| held);
        stream.held.iter().chain(behind).any(|held| held.same(buffer))
    };
    let buffers = [x.buffer().clone(), out.buffer().clone()];
    drop((x, out));
    assert!(buffers.iter().all(|buffer| held(&stream, buffer)));
    let error = stream.end_capture().unwrap_err().to_string();
    assert!(error.contains("a stream that is being captured"), "{error}");
    assert!(buffers.iter().all(|buffer| held(&stream, buffer)), "no capture was begun");
    let event = stream.submit()?;
    assert!(buffers.iter().all(|buffer| held(&stream, buffer)), "nobody has waited yet");
    event.wait()?;
    stream.submit()?.wait()?;
    assert!(!buffers.iter().any(|buffer| held(&stream, buffer)));
    Ok(())
}

#[test]
fn memory_of_another_device_is_refused() -> Result<()> {
    let Some(cuda) = testing::cuda("memory of another device") else { return Ok(()) };
    let other = testing::cuda("memory of another device").expect("as above");
    let (mut stream, mut others) = (cuda.stream()?, other.stream()?);
    let x = Tensor::from_slice(&mut stream, &[1.0f32; 4], &[1, 4])?;
    let out = Tensor::from_slice(&mut others, &[0.0f32; 4], &[1, 4])?;
    for error in [
        relu(&cuda, &mut stream, &x, &out).err(),
        out.write(&mut stream, &[0.0f32; 4]).err(),
        stream.download(&out).err(),
    ] {
        let error = error.expect("refused").to_string();
        assert!(error.contains("own device"), "{error}");
    }
    assert_eq!(out.to_vec::<f32>(&mut others)?, [0.0; 4]);
    Ok(())
}

#[test]
fn a_program_that_is_not_listed_is_refused() -> Result<()> {
    static UNLISTED: Source = Source::new("unlisted.cu", "extern \"C\" __global__ void unlisted() {}");
    let Some(cuda) = testing::cuda("an unlisted program") else { return Ok(()) };
    let error = cuda.stream()?.launch(Launch::new("test", &UNLISTED, "unlisted")).unwrap_err().to_string();
    assert!(error.contains("unlisted.cu is not among `programs()`"), "{error}");
    Ok(())
}

#[test]
fn strided_views_are_copied_on_the_device() -> Result<()> {
    let Some(cuda) = testing::cuda("strided views") else { return Ok(()) };
    let mut stream = cuda.stream()?;
    let numbers: Vec<i32> = (0..2 * 3 * 5 * 7).collect();
    let whole = Tensor::from_slice(&mut stream, &numbers, &[2, 3, 5, 7])?;
    let part = whole.narrow(1, 1..3)?.narrow(2, 2..4)?.narrow(3, 1..6)?;
    let bytes = stream.download(&part)?.wait()?;
    let got: Vec<i32> = bytemuck::allocation::pod_collect_to_vec(&bytes);
    let mut expected = Vec::new();
    for a in 0..2 {
        for b in 1..3 {
            for c in 2..4 {
                expected.extend((1..6).map(|d| ((a * 3 + b) * 5 + c) * 7 + d));
            }
        }
    }
    assert_eq!(got, expected);
    Ok(())
}
