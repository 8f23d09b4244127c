//! What goes wrong on a device, as the stand-in was asked for it. One test, since what is asked for is the process's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod standin;

use std::ffi::{CString, c_char};

use halite_ascend::Ascend;
use halite_hal::{DType, Device, Error, Event, Result, Stream, Tensor};
use halite_kernels::{
    activation::{Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, GateLayout, Glu},
    linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec, Quantized},
};
use libloading::Library;

/// The faults to come; none takes back what was asked for.
fn ask(fault: &str) {
    let text = CString::new(fault).unwrap();
    // SAFETY: the library is open already, and the function is its own, of this type.
    let code = unsafe {
        let library = Library::new(standin::library()).unwrap();
        let ask = library.get::<unsafe extern "C" fn(*const c_char) -> i32>(b"halite_cann_fault").unwrap();
        ask(text.as_ptr())
    };
    assert_eq!(code, 0, "{fault}");
}

fn swi_glu(device: &Ascend, stream: &mut <Ascend as Device>::Stream) -> Result<Vec<f32>> {
    let spec = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    let x = Tensor::from_slice(stream, &[0f32, 1.0, 2.0, 3.0], &[1, 4])?;
    let out = Tensor::new(device, DType::F32, &[1, 2])?;
    device.activation(
        stream,
        ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out) }.check()?,
    )?;
    out.to_vec(stream)
}

#[test]
fn faults_are_told_once_and_by_name() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let right = swi_glu(&device, &mut stream)?;
    assert!(right[0] == 0.0 && (right[1] - 3.0 * 0.731_058_6).abs() < 1e-6, "{right:?}");

    // No memory: an error like on every device, and everything goes on.
    ask("malloc=1");
    let full = device.alloc(1000).unwrap_err();
    assert!(matches!(full, Error::OutOfMemory { requested: 1000, .. }), "{full}");
    assert_eq!(swi_glu(&device, &mut stream)?, right);
    let beyond = device.alloc(1 << 60).unwrap_err();
    assert!(matches!(beyond, Error::OutOfMemory { requested, .. } if requested == 1 << 60), "{beyond}");

    // No event behind a full chunk of pinned memory: queued copies still read it, so it stays.
    let numbers: Vec<f32> = (0..1 << 19).map(|i| i as f32).collect();
    let x = Tensor::from_slice(&mut stream, &numbers, &[1, 1 << 19])?;
    let out = Tensor::new(&device, DType::F32, &[1, 1 << 18])?;
    let spec = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    let args = ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out) }.check()?;
    device.activation(&mut stream, args)?;
    ask("event=1");
    let refused = x.write(&mut stream, &numbers).unwrap_err().to_string();
    assert!(refused.contains("207007"), "{refused}");
    x.write(&mut stream, &numbers)?;
    assert_eq!(x.to_vec::<f32>(&mut stream)?, numbers);

    // An exception of a core: in CANN's words where somebody waits, and from then on the device is lost.
    ask("launch=1");
    let broken = swi_glu(&device, &mut stream).unwrap_err().to_string();
    assert!(broken.contains("507015") && broken.contains("aclnnSwiGlu"), "{broken}");
    for lost in [
        swi_glu(&device, &mut stream).err(),
        stream.submit().and_then(|event| event.wait()).err(),
        device.alloc(1).err(),
        device.stream().err(),
    ] {
        let lost = lost.expect("the device is lost").to_string();
        assert!(lost.contains("lost since an earlier error"), "{lost}");
    }
    drop(stream);

    // The device is opened again: what is lost is a handle's, and new streams work.
    let device = standin::device()?;
    let mut stream = device.stream()?;
    assert_eq!(swi_glu(&device, &mut stream)?, right);

    // An operator whose newer form is not installed is served by the older one.
    let sums = |device: &Ascend, stream: &mut <Ascend as Device>::Stream| {
        let spec = LinearSpec::w8a8(3, 2).with_output(DType::I32);
        let weights = HostWeights::Int8PerChannel { q: &[1, 2, 3, -1, 0, 1], scales: &[1.0, 2.0] };
        let weights = device.linear_pack(stream, weights.check(&spec)?)?;
        let x = Tensor::from_slice(stream, &[1i8, 1, 1, 0, 2, -128], &[2, 3])?;
        let scales = Tensor::from_slice(stream, &[1f32, 1.0], &[2])?;
        let out = Tensor::new(device, DType::I32, &[2, 2])?;
        stream.reserve(device.linear_workspace(&weights, 2))?;
        let x = Activations::Quantized(Quantized::new(&x, &scales));
        let args = LinearArgs { x, weights: &weights, epilogue: Epilogue::default(), out: &out };
        device.linear(stream, args.check()?)?;
        out.to_vec::<i32>(stream)
    };
    for hidden in ["", "hide=aclnnQuantMatmulV5", "hide=aclnnQuantMatmulV4"] {
        ask(hidden);
        assert_eq!(sums(&device, &mut stream)?, [6, 0, -380, -128], "{hidden}");
    }
    ask("hide=aclnnQuantMatmulV4,hide=aclnnQuantMatmulV5");
    assert!(sums(&device, &mut stream).unwrap_err().to_string().contains("561112"));

    // An operator whose package is not installed.
    ask("hide=aclnnSwiGlu");
    let missing = swi_glu(&device, &mut stream).unwrap_err().to_string();
    assert!(missing.contains("561112"), "{missing}");
    ask("");
    assert_eq!(swi_glu(&device, &mut stream)?, right);
    Ok(())
}
