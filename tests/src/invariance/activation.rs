//! Activated rows, alone and in a batch.

use super::rows::{input, same_rows};
use crate::{
    case::Verdict,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    activation::{ActivationArgs, ActivationOut, Function},
};

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let columns = 45;
    let (narrow, wide) = (input::<B>(stream, columns)?, input::<B>(stream, 2 * columns)?);
    for spec in crate::activation::specs() {
        let x = if matches!(spec.function, Function::Plain(_)) { &narrow } else { &wide };
        same_rows(&format!("{spec:?}"), columns * 4, |rows| {
            let out = Guarded::<B>::output(stream, DType::F32, &[rows.len(), columns], Layout::Dense)?;
            let (x, target) = (x.narrow(0, rows)?, ActivationOut::Float(&out.view));
            device.activation(stream, ActivationArgs { spec: &spec, x: &x, out: target }.check()?)?;
            out.read_bytes(stream)
        })?;
    }
    Ok(())
}
