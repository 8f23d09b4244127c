//! Rotated heads, alone and in a batch.

use super::rows::{ROWS, same_rows};
use crate::{case::Verdict, random::Rng};
use halite_hal::Pending;
use halite_kernels::{
    Backend, Stream, Tensor,
    rope::{Direction, Positions, RopeArgs, RopeScaling, RopeSpec, RopeStyle, Yarn},
};

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (heads, head_dim) = (3, 70);
    let values = Rng::new(9).spreads(ROWS * heads * head_dim);
    let positions: Vec<u32> = (0..ROWS as u32).map(|row| row * 313).collect();
    for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
        let yarn = RopeScaling::Yarn(Yarn::new(8.0, 4096));
        let spec = RopeSpec::new(head_dim, style, 20_000).with_rotary_dim(54).with_scaling(yarn);
        let mut plan = device.rope_plan(&spec, ROWS)?;
        same_rows(&format!("{spec:?}"), heads * head_dim * 4, |rows| {
            let step = Positions { positions: &positions[rows.clone()] }.check(&plan)?;
            device.rope_update(stream, &mut plan, &step)?;
            let values = &values[rows.start * heads * head_dim..rows.end * heads * head_dim];
            let x = Tensor::<B>::from_slice(stream, values, &[rows.len(), heads, head_dim])?;
            device.rope(stream, RopeArgs { plan: &plan, direction: Direction::Forward, x: &x }.check()?)?;
            Ok(stream.download(&x)?.wait()?)
        })?;
    }
    Ok(())
}
