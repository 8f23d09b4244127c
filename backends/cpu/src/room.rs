//! The lists of a plan: allocated once, filled anew each step.

use crate::buffer::DEVICE;
use halite_hal::{Error, Result};

/// An empty list with room for `count` elements.
pub(crate) fn room_for<T>(count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    let requested = (count as u64).saturating_mul(size_of::<T>() as u64);
    let no_room = |_| Error::OutOfMemory { device: DEVICE.to_owned(), requested };
    list.try_reserve_exact(count).map_err(no_room)?;
    Ok(list)
}
