//! Weights that are used as groups move together, and stay what they are.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod standin;

use halite_ascend::{Ascend, AscendPacked};
use halite_hal::{DType, Device, Error, Result, Stream, Tensor};
use halite_kernels::{
    grouped::{Grouped, GroupedArgs},
    linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec},
};

type Queue = <Ascend as Device>::Stream;

/// A layer of one row, `[1, 2]`.
fn layer(device: &Ascend, stream: &mut Queue, q: [i8; 2], scale: f32) -> Result<AscendPacked> {
    let spec = LinearSpec::w8a8(2, 1);
    device.linear_pack(stream, HostWeights::Int8PerChannel { q: &q, scales: &[scale] }.check(&spec)?)
}

struct Rows {
    q: Tensor<Ascend>,
    scales: Tensor<Ascend>,
}

impl Rows {
    fn new(stream: &mut Queue) -> Result<Self> {
        let q = Tensor::from_slice(stream, &[1i8, 2, 3, 4, 5, 6], &[3, 2])?;
        Ok(Rows { q, scales: Tensor::from_slice(stream, &[1f32, 2.0, 4.0], &[3])? })
    }

    fn grouped(
        &self,
        device: &Ascend,
        stream: &mut Queue,
        weights: &[AscendPacked],
        offsets: &[i32],
    ) -> Result<Vec<f32>> {
        let offsets = Tensor::from_slice(stream, offsets, &[offsets.len()])?;
        let out = Tensor::from_slice(stream, &[-1f32; 3], &[3, 1])?;
        stream.reserve(device.grouped_workspace(&weights[0], 3))?;
        let x = Activations::int8_per_token(&self.q, &self.scales);
        let args = GroupedArgs { x, weights, offsets: &offsets, bias: None, out: &out };
        device.grouped(stream, args.check()?)?;
        out.to_vec(stream)
    }

    fn layer(&self, device: &Ascend, stream: &mut Queue, weights: &AscendPacked) -> Result<Vec<f32>> {
        let out = Tensor::new(device, DType::F32, &[3, 1])?;
        stream.reserve(device.linear_workspace(weights, 3))?;
        let x = Activations::int8_per_token(&self.q, &self.scales);
        let args = LinearArgs { x, weights, epilogue: Epilogue::default(), out: &out };
        device.linear(stream, args.check()?)?;
        out.to_vec(stream)
    }
}

#[test]
fn weights_move_once_and_keep_their_bytes() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let rows = Rows::new(&mut stream)?;
    let [a, b, c] = [([1, 1], 1.0), ([1, -1], 0.5), ([0, 2], 2.0)]
        .map(|(q, scale)| layer(&device, &mut stream, q, scale).unwrap());
    let saved = device.linear_save(&mut stream, &b)?;
    let alone = rows.layer(&device, &mut stream, &b)?;

    let first = rows.grouped(&device, &mut stream, &[a.clone(), b.clone()], &[0, 1, 3])?;
    assert_eq!(first, [3.0, alone[1], alone[2]]);
    let launched = stream.launches();
    assert_eq!(rows.grouped(&device, &mut stream, &[a.clone(), b.clone()], &[0, 1, 3])?, first);
    assert!(stream.launches() > launched);
    // In another order, with others, and one of them twice.
    assert_eq!(
        rows.grouped(&device, &mut stream, &[c.clone(), b.clone()], &[1, 2, 3])?,
        [-1.0, 32.0, alone[2]]
    );
    let both = [b.clone(), a.clone(), b.clone()];
    assert_eq!(rows.grouped(&device, &mut stream, &both, &[0, 1, 2, 2])?, [alone[0], 14.0, -1.0]);
    assert_eq!(rows.layer(&device, &mut stream, &b)?, alone);
    assert_eq!(device.linear_save(&mut stream, &b)?, saved);
    Ok(())
}

/// Nothing is moved while work is collected: the addresses would change under it.
#[test]
fn weights_are_together_before_a_capture() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let rows = Rows::new(&mut stream)?;
    let weights = [layer(&device, &mut stream, [1, 1], 1.0)?, layer(&device, &mut stream, [1, 2], 1.0)?];
    let offsets = Tensor::from_slice(&mut stream, &[0, 2, 3], &[3])?;
    let out = Tensor::new(&device, DType::F32, &[3, 1])?;
    stream.reserve(device.grouped_workspace(&weights[0], 3))?;
    let run = |stream: &mut Queue| {
        let x = Activations::int8_per_token(&rows.q, &rows.scales);
        let args = GroupedArgs { x, weights: &weights, offsets: &offsets, bias: None, out: &out };
        device.grouped(stream, args.check()?)
    };
    stream.begin_capture()?;
    let error = run(&mut stream).unwrap_err().to_string();
    assert!(error.contains("moved together"), "{error}");
    drop(stream.end_capture()?);
    run(&mut stream)?;
    stream.begin_capture()?;
    run(&mut stream)?;
    let graph = stream.end_capture()?;
    offsets.write(&mut stream, &[0, 1, 3])?;
    stream.launch_graph(&graph)?;
    assert_eq!(out.to_vec::<f32>(&mut stream)?, [3.0, 22.0, 68.0]);
    Ok(())
}

/// vllm-ascend 9007 and 2807: the count of groups is what the caller's weights are, and CANN takes 1,024 at most.
#[test]
fn more_groups_than_cann_takes_are_refused() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let rows = Rows::new(&mut stream)?;
    let one = layer(&device, &mut stream, [1, 0], 1.0)?;
    let most = vec![one.clone(); 1023];
    let offsets: Vec<i32> = (0..1024).map(|at| i32::from(at > 1020) * 3).collect();
    assert_eq!(rows.grouped(&device, &mut stream, &most, &offsets)?, [1.0, 6.0, 20.0]);
    let error = rows.grouped(&device, &mut stream, &vec![one; 1024], &[0; 1025]).unwrap_err();
    assert!(matches!(error, Error::Limit { operator: "grouped", got: 1024, limit: 1023, .. }), "{error}");
    Ok(())
}
