//! INT8 weights of all groups next to each other, as CANN's grouped product reads them.
//!
//! Each layer is packed by itself. Those that are used together are moved once, into memory of their own that starts with a copy of
//! the first: rows before the first group are a group for CANN, whose results nobody reads.

use halite_hal::{DType, Device, Error, Result, Storage, Tensor};

use super::{AscendPacked, packed::Place};
use crate::{device::Ascend, room::bytes, stream::AscendStream};

/// The most groups that CANN takes.
const MOST_GROUPS: usize = 1024;

/// Weights of so many groups and one before them.
pub(crate) struct Stack {
    /// I8 `[groups + 1, weight_rows, in_features]`.
    pub(crate) elements: Tensor<Ascend>,
    /// F32 `[groups + 1, weight_rows]`.
    pub(crate) scales: Tensor<Ascend>,
}

/// The weights of these layers, which are of one spec, where they lie together; moved there if they do not yet.
pub(crate) fn stack(device: &Ascend, stream: &mut AscendStream, weights: &[AscendPacked]) -> Result<Stack> {
    let (got, limit) = (weights.len() as u64, MOST_GROUPS as u64 - 1);
    let Some(first) = weights.first().filter(|_| got <= limit) else {
        return Err(Error::Limit { operator: "grouped", argument: "weights", got, limit });
    };
    let spec = first.as_ref();
    let (groups, rows) = (weights.len() + 1, spec.weight_rows());
    let dims = [groups, rows, spec.in_features];
    let (one, each) = ((rows * spec.in_features) as u64, 4 * rows as u64);
    let all = |at: &Place| Stack::at(at, dims);
    let start = first.place();
    let begin = start.elements.checked_sub(one).zip(start.scales.checked_sub(each));
    if let Some((elements, scales)) = begin {
        let together = weights.iter().map(AscendPacked::place).zip(0..).all(|(place, group)| {
            place.buffer.same(&start.buffer)
                && place.elements == start.elements + group * one
                && place.scales == start.scales + group * each
        });
        // A layer of a plain packing has no room for another before its scales.
        if together && scales >= elements + groups as u64 * one {
            return all(&Place { buffer: start.buffer, elements, scales });
        }
    }
    stream.not_while_captured(
        "grouped",
        "weights are moved together when they are first used: run it once before",
    )?;
    let scales = bytes(DType::I8, &dims);
    let total = scales.saturating_add(bytes(DType::F32, &dims[..2]));
    let base = Place { buffer: device.alloc(total)?, elements: 0, scales };
    let mut moved = Vec::new();
    for (layer, group) in weights.iter().take(1).chain(weights).zip(0..) {
        let (from, to) = (
            layer.place(),
            Place { buffer: base.buffer.clone(), elements: group * one, scales: scales + group * each },
        );
        stream.copy_bytes((&to.buffer, to.elements), (&from.buffer, from.elements), one)?;
        stream.copy_bytes((&to.buffer, to.scales), (&from.buffer, from.scales), each)?;
        moved.push(to);
    }
    // Other streams may use them at once.
    stream.finish()?;
    for (layer, to) in weights.iter().zip(moved.into_iter().skip(1)) {
        layer.moved(to);
    }
    all(&base)
}

impl Stack {
    fn at(place: &Place, dims: [usize; 3]) -> Result<Self> {
        let elements = Tensor::from_buffer(place.buffer.clone(), place.elements, DType::I8, &dims)?;
        let scales = Tensor::from_buffer(place.buffer.clone(), place.scales, DType::F32, &dims[..2])?;
        Ok(Stack { elements, scales })
    }
}
