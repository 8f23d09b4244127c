//! Where the memories lie in the space of generic addresses.

use crate::ir::Space;

/// First generic address of a block's shared memory.
pub(crate) const SHARED: u64 = 0x0100_0000;
/// First generic address of a thread's local memory.
pub(crate) const LOCAL: u64 = 0x0400_0000;
/// First generic address of the parameters.
pub(crate) const PARAM: u64 = 0x4000_0000;
/// Bytes of the shared window.
pub(crate) const SHARED_BYTES: u64 = 0x0100_0000;
/// Bytes of the local window.
const LOCAL_BYTES: u64 = 0x2000_0000;
/// Bytes of the window of parameters.
const PARAM_BYTES: u64 = 0x0010_0000;
/// Global memory and constants lie at and above.
pub(crate) const GLOBAL: u64 = 1 << SLOT_BITS;
/// Allocations lie in slots of this many bits of addresses, so that an address's upper bits name its allocation.
pub(crate) const SLOT_BITS: u32 = 33;
/// An allocation begins in the middle of its first slot: what lies before or behind it is nobody's.
pub(crate) const SLOT_START: u64 = 1 << (SLOT_BITS - 1);

/// The memory that a generic address means, and the address in it.
#[inline]
pub(crate) fn resolve(address: u64) -> (Space, u64) {
    if address >= GLOBAL {
        (Space::Global, address)
    } else if address.wrapping_sub(SHARED) < SHARED_BYTES {
        (Space::Shared, address - SHARED)
    } else if address.wrapping_sub(LOCAL) < LOCAL_BYTES {
        (Space::Local, address - LOCAL)
    } else if address.wrapping_sub(PARAM) < PARAM_BYTES {
        (Space::Param, address - PARAM)
    } else {
        (Space::Global, address)
    }
}

/// An address in shared memory, where a generic one may stand for it.
#[inline]
pub(crate) fn in_shared(address: u64) -> u64 {
    match resolve(address) {
        (Space::Shared, offset) => offset,
        _ => address,
    }
}

/// What is added to an address in a memory to make it generic.
pub(crate) fn start(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED,
        Space::Local => LOCAL,
        Space::Param => PARAM,
        Space::Generic | Space::Global | Space::Const => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generic_address_tells_its_memory() {
        for space in [Space::Shared, Space::Local, Space::Param] {
            assert_eq!(resolve(start(space) + 20), (space, 20));
        }
        assert_eq!(resolve(GLOBAL + SLOT_START), (Space::Global, GLOBAL + SLOT_START));
        assert_eq!(resolve(8), (Space::Global, 8));
    }
}
