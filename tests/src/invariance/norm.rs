//! Normed rows, alone and in a batch.

use super::rows::{input, same_rows};
use crate::{
    case::Verdict,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    norm::{NormArgs, NormOut, NormResidual, NormSpec},
};

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for columns in [17, 100, 576] {
        let x = input::<B>(stream, columns)?;
        let weight = Tensor::from_slice(stream, &Rng::new(1).aways(columns), &[columns])?;
        for (spec, after) in [
            (NormSpec::rms(1e-5), false),
            (NormSpec::layer(1e-5), false),
            (NormSpec::rms(1e-5).with_weight_offset(1.0), true),
        ] {
            same_rows(&format!("{spec:?} of {columns}, residual after: {after}"), columns * 4, |rows| {
                let dims = [rows.len(), columns];
                let out = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
                let x = x.narrow(0, rows)?;
                let out_arg = NormOut::Float(&out.view);
                let args = NormArgs {
                    spec: &spec,
                    x: &x,
                    residual: after.then_some(NormResidual::After { residual: &x }),
                    weight: Some(&weight),
                    bias: None,
                    out: out_arg,
                };
                device.norm(stream, args.check()?)?;
                out.read_bytes(stream)
            })?;
        }
    }
    Ok(())
}
