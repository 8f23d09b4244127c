//! The best of rows, alone and in a batch.

use super::rows::{input, same_rows};
use crate::{
    case::Verdict,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    top_k::{TopKArgs, TopKSpec},
};

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let x = input::<B>(stream, 301)?;
    for spec in [TopKSpec::largest(20), TopKSpec::smallest(300)] {
        for want_ids in [false, true] {
            same_rows(&format!("{spec:?}"), spec.k * 4, |rows| {
                let dims = [rows.len(), spec.k];
                let values = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
                let ids = Guarded::<B>::output(stream, DType::I32, &dims, Layout::Dense)?;
                let x = x.narrow(0, rows)?;
                let args = TopKArgs { spec: &spec, x: &x, values: &values.view, ids: &ids.view };
                device.top_k(stream, args.check()?)?;
                if want_ids { ids.read_bytes(stream) } else { values.read_bytes(stream) }
            })?;
        }
    }
    Ok(())
}
